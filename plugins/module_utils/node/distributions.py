# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between distributions, as data. The source of each name is that distribution's package archive."""

from __future__ import annotations

import dataclasses

from .spec import NodeError


@dataclasses.dataclass(frozen=True, kw_only=True)
class Distribution:
    """Package names, and where packages put what we call."""

    iptables_package: str
    cni_package: str
    cni_directory: str


_DEBIAN = Distribution(iptables_package="iptables", cni_package="containernetworking-plugins", cni_directory="/usr/lib/cni")

BY_ID = {
    "debian": _DEBIAN,
    # Ubuntu takes both packages from Debian (universe) under the same names and paths.
    "ubuntu": _DEBIAN,
}


def distribution(name: str) -> Distribution:
    """The facts of a distribution by its os-release ID. Raises NodeError for one that nobody has described."""
    if name not in BY_ID:
        raise NodeError(f"distribution {name} is not supported; supported: {', '.join(sorted(BY_ID))} (add it to distributions.py)")
    return BY_ID[name]
