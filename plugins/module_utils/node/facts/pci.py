# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PCI devices as sysfs has them."""

from __future__ import annotations

from ..system import System
from .model import PciDevice

DEVICES = "/sys/bus/pci/devices"


def read(system: System) -> tuple[PciDevice, ...]:
    """Every PCI device, by address; empty where there is no PCI bus."""
    return tuple(_device(system, address) for address in system.names(DEVICES))


def _device(system: System, address: str) -> PciDevice:
    def value(name: str) -> str:
        return (system.text(f"{DEVICES}/{address}/{name}") or "").strip()

    numa = value("numa_node")
    return PciDevice(
        address=address,
        vendor=value("vendor").removeprefix("0x"),
        device=value("device").removeprefix("0x"),
        # 0x030200 -> 0302: class and subclass, without the programming interface.
        pci_class=value("class").removeprefix("0x")[:4],
        numa_node=int(numa) if numa.lstrip("-").isdigit() else -1,
    )
