# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import sizes


@pytest.mark.parametrize(
    ("size", "family"),
    [
        ("Standard_ND96isr_H100_v5", "gpu_h100"),
        ("standard_nd96isr_h100_v5", "gpu_h100"),
        ("Standard_ND96isr_H200_v5", "gpu_h200"),
        ("Standard_ND96is_flex_H100_v5", "gpu_h100"),
        ("Standard_ND128isr_NDR_GB200_v6", "gpu_gb200"),
        ("Standard_ND128isr_GB300_v6", "gpu_gb300"),
        ("Standard_ND96isr_MI300X_v5", "gpu_mi300x"),
        ("Standard_ND96amsr_A100_v4", "gpu_a100"),
        ("Standard_ND96asr_v4", "gpu_a100"),
        ("Standard_ND40rs_v2", "gpu_v100"),
        ("Standard_NC24rs_v3", "gpu_v100"),
        ("Standard_NC80adis_H100_v5", "gpu_h100"),
        ("Standard_NC64as_T4_v3", "gpu_t4"),
        ("Standard_NV36adms_A10_v5", "gpu_a10"),
        ("Standard_NX1_v9", "gpu_other"),
        ("Standard_D96ds_v5", "cpu"),
        ("Standard_E4-2ds_v5", "cpu"),
        ("Standard_HB176rs_v4", "cpu"),
        ("", "cpu"),
    ],
)
def test_family(size: str, family: str) -> None:
    assert sizes.family(size) == family
