# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which variable set a file or a kernel parameter of this node."""

from __future__ import annotations

import typing as t

from .converge import plan_all, state_path
from .facts.model import Facts
from .spec import NodeError


def explain(facts: Facts, document: t.Mapping[str, t.Any], target: str) -> list[str]:
    """One line for each thing of ours that sets ``target``. Raises NodeError when nothing of ours does."""
    lines = []
    for item in plan_all(facts, document):
        name = item.subsystem.name
        lines += [
            f"{target}: file of subsystem {name}, decided by {', '.join(file.variables) or 'the program itself'} (in {state_path(name)})"
            for file in item.desired.files
            if file.path == target
        ]
        lines += [
            f"{target} = {sysctl.value}: set by subsystem {name}, "
            f"decided by {sysctl.variable or 'the program itself'} (in {state_path(name)})"
            for sysctl in item.desired.sysctls
            if sysctl.key == target
        ]
    if not lines:
        raise NodeError(f"{target} is set by no subsystem on this node; give the whole path of a file, or a sysctl key with dots")
    return lines
