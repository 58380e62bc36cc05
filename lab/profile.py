# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hardware profiles: the PCI devices that a node's facts see, as a tree in the form of /sys/bus/pci/devices."""

from __future__ import annotations

import pathlib
import typing as t

import yaml

from .paths import ROOT, LabError

PROFILES = ROOT / "lab" / "profiles"


def load(name: str) -> list[dict[str, t.Any]]:
    """The devices of a profile, one entry each."""
    path = PROFILES / f"{name}.yml"
    if not path.exists():
        known = ", ".join(sorted(item.stem for item in PROFILES.glob("*.yml")))
        raise LabError(f"profile {name} is not known; known: {known}")
    devices = yaml.safe_load(path.read_text(encoding="utf-8"))["devices"]
    return [{key: value for key, value in item.items() if key != "count"} for item in devices for _ in range(item.get("count", 1))]


def write(name: str, target: pathlib.Path) -> None:
    """Write the tree. Azure gives each passed-through device a PCI domain of its own."""
    for number, device in enumerate(load(name), start=1):
        folder = target / f"{number:04x}:00:00.0"
        folder.mkdir(parents=True, exist_ok=True)
        content = {
            "vendor": f"0x{device['vendor']}",
            "device": f"0x{device['device']}",
            "class": f"0x{device['class']}00",
            "numa_node": str(device["numa_node"]),
        }
        for key, value in content.items():
            (folder / key).write_text(value + "\n", encoding="ascii")
