# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every subsystem, in the order of a run. Nothing is discovered at run time; a test compares this with the folder."""

from __future__ import annotations

from .spec import NodeError, nearest
from .subsystem import Subsystem
from .subsystems import alias_network, custom, node_program, traffic_accounting

SUBSYSTEMS: tuple[Subsystem, ...] = (
    node_program.SUBSYSTEM,
    custom.SUBSYSTEM,
    alias_network.SUBSYSTEM,
    traffic_accounting.SUBSYSTEM,
)

BY_NAME = {subsystem.name: subsystem for subsystem in SUBSYSTEMS}


def subsystem(name: str) -> Subsystem:
    """The subsystem of this name. Raises NodeError that names the nearest one."""
    if name not in BY_NAME:
        raise NodeError(f"there is no subsystem {name}{nearest(name, BY_NAME)}")
    return BY_NAME[name]
