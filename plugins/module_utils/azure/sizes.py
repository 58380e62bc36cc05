# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a VM size's name says about its accelerator and network: "Standard_ND96isr_H100_v5" -> "gpu_h100", InfiniBand.

This is for grouping hosts and for planning only. What a node really has is read from its PCI bus.
"""

from __future__ import annotations

import re

# learn.microsoft.com, "Virtual machine sizes naming conventions": [Family][sub-family][vCPUs][features]_[Accelerator]_[Version].
# Only the N family carries GPUs; a name may hold more than one word between vCPUs and version (NDR_GB200).
_NAME = re.compile(r"^standard_n[a-z]*\d+[a-z0-9-]*_(?:(?P<words>.+)_)?v(?P<version>\d+)$")
# [Features] holds an "r" for a network that is read and written by remote direct memory access; same page.
_RDMA = re.compile(r"^standard_[nh][a-z]*\d+(?:-\d+)?[a-z]*r[a-z]*(?:_|$)")
# Sizes from before accelerators were part of the name, from the pages of these series on learn.microsoft.com.
_UNNAMED = (
    (re.compile(r"^standard_nd96asr_v4$"), "a100"),
    (re.compile(r"^standard_nd96ams_v4$"), "a100"),
    (re.compile(r"^standard_nd40rs_v2$"), "v100"),
    (re.compile(r"^standard_nc\d+r?s_v3$"), "v100"),
    (re.compile(r"^standard_nv\d+s_v3$"), "m60"),
    (re.compile(r"^standard_nv\d+as_v4$"), "mi25"),
)


def family(size: str) -> str:
    """The group of a size: "gpu_<accelerator>", "gpu_other" for an N size this does not know, else "cpu"."""
    name = size.lower()
    if not name.startswith("standard_n"):
        return "cpu"
    for pattern, accelerator in _UNNAMED:
        if pattern.match(name):
            return f"gpu_{accelerator}"
    match = _NAME.match(name)
    words = match.group("words") if match else None
    return f"gpu_{words.rpartition('_')[2]}" if words else "gpu_other"


def rdma(size: str) -> bool:
    """Whether a size has InfiniBand: the feature letter "r" of the naming conventions, in the families that have such a network."""
    return bool(_RDMA.match(size.lower()))
