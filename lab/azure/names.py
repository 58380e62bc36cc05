# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resource ids of everything in a fleet, written as ARM writes them."""

from __future__ import annotations

from ..fleet import Fleet, Instance
from ..model import NIC


def group(fleet: Fleet) -> str:
    return f"/subscriptions/{fleet.description.subscription}/resourceGroups/{fleet.description.resource_group}"


def scale_set(fleet: Fleet, name: str) -> str:
    return f"{group(fleet)}/providers/Microsoft.Compute/virtualMachineScaleSets/{name}"


def is_uniform(fleet: Fleet, instance: Instance) -> bool:
    return fleet.scale_set(instance.scale_set).uniform


def instance(fleet: Fleet, item: Instance) -> str:
    """A Uniform instance lies below its set; a Flexible one is a virtual machine of its own."""
    if is_uniform(fleet, item):
        return f"{scale_set(fleet, item.scale_set)}/virtualMachines/{item.instance_id}"
    return f"{group(fleet)}/providers/Microsoft.Compute/virtualMachines/{item.name}"


def interface(fleet: Fleet, item: Instance) -> str:
    """A Uniform instance's NIC lies below the instance and has the name of the model's; a Flexible one is its own resource."""
    if is_uniform(fleet, item):
        return f"{instance(fleet, item)}/networkInterfaces/{NIC}"
    return f"{group(fleet)}/providers/Microsoft.Network/networkInterfaces/{item.name}-nic"


def virtual_network(fleet: Fleet, name: str) -> str:
    return f"{group(fleet)}/providers/Microsoft.Network/virtualNetworks/{name}"


def subnet(fleet: Fleet, vnet: str, name: str) -> str:
    return f"{virtual_network(fleet, vnet)}/subnets/{name}"
