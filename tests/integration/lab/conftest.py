# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import pytest


@pytest.fixture(scope="session")
def lab(start_lab: t.Callable[..., t.Any]) -> t.Any:
    """Two clusters, and two scale sets of stubs that need several pages."""
    return start_lab("tlab", "two_clusters")
