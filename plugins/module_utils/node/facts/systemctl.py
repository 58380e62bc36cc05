# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parser for ``systemctl show --property=Id,Names,UnitFileState,ActiveState,NeedDaemonReload UNIT ...``."""

from __future__ import annotations

from ..spec import NodeError
from .model import Unit

PROPERTIES = "Id,Names,UnitFileState,ActiveState,NeedDaemonReload"
# systemctl enable and disable end well with such units, and change nothing (systemctl(1), is-enabled).
FIXED = ("static", "indirect", "generated", "transient", "alias")


def parse(text: str, names: list[str]) -> dict[str, Unit]:
    """One Unit for each asked name: systemd answers in the order asked, an empty line between. Raises NodeError when some are missing."""
    blocks = [dict(line.partition("=")[::2] for line in block.splitlines() if "=" in line) for block in text.strip().split("\n\n")]
    if len(blocks) != len(names):
        raise NodeError(
            f"systemctl show answered for {len(blocks)} of {len(names)} units; look at `systemctl show {' '.join(names)}` on the node"
        )
    return {name: _unit(block) for name, block in zip(names, blocks, strict=True)}


def _unit(block: dict[str, str]) -> Unit:
    state = block.get("UnitFileState", "")
    return Unit(
        # enabled-runtime is not counted: it is gone after a reboot.
        enabled=state == "enabled",
        fixed=state if state in FIXED else "",
        active=block.get("ActiveState") in ("active", "activating", "reloading"),
        needs_reload=block.get("NeedDaemonReload") == "yes",
    )
