# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parser for ``systemctl show --property=Id,UnitFileState,ActiveState,NeedDaemonReload UNIT ...``."""

from __future__ import annotations

from .model import Unit

PROPERTIES = "Id,Names,UnitFileState,ActiveState,NeedDaemonReload"


def parse(text: str, names: list[str]) -> dict[str, Unit]:
    """One Unit for each asked name, in the order asked: systemd answers in that order, an empty line between."""
    blocks = [dict(line.partition("=")[::2] for line in block.splitlines() if "=" in line) for block in text.strip().split("\n\n")]
    units = {name: Unit() for name in names}
    for name, block in zip(names, blocks):
        units[name] = Unit(
            enabled=block.get("UnitFileState") in ("enabled", "enabled-runtime"),
            active=block.get("ActiveState") in ("active", "activating", "reloading"),
            needs_reload=block.get("NeedDaemonReload") == "yes",
        )
    return units
