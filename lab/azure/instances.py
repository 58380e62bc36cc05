# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instances: of Uniform sets as children of the set, of Flexible sets as virtual machines."""

from __future__ import annotations

import typing as t

from ..fleet import Fleet, Instance
from . import names, scale_sets

Document = dict[str, t.Any]


def uniform(fleet: Fleet, item: Instance, *, view: bool) -> Document:
    """One instance of a Uniform set, with its instance view if asked."""
    scale_set = fleet.scale_set(item.scale_set)
    document: Document = {
        "name": item.name,
        "id": names.instance(fleet, item),
        "type": "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
        "location": fleet.description.location,
        "tags": dict(scale_set.tags),
        "instanceId": item.instance_id,
        "sku": {"name": scale_set.sku, "tier": "Standard"},
        "properties": {
            "latestModelApplied": True,
            "modelDefinitionApplied": "VirtualMachineScaleSet",
            "networkProfileConfiguration": scale_sets.render(fleet, scale_set)["properties"]["virtualMachineProfile"]["networkProfile"],
            **_machine(fleet, item),
        },
    }
    if item.zone:
        document["zones"] = [item.zone]
    if view:
        document["properties"]["instanceView"] = instance_view(item, uniform=True)
    return document


def flexible(fleet: Fleet, item: Instance, *, view: bool) -> Document:
    """One virtual machine of a Flexible set, with its instance view if asked."""
    scale_set = fleet.scale_set(item.scale_set)
    document: Document = {
        "name": item.name,
        "id": names.instance(fleet, item),
        "type": "Microsoft.Compute/virtualMachines",
        "location": fleet.description.location,
        "tags": dict(scale_set.tags),
        "properties": {
            "virtualMachineScaleSet": {"id": names.scale_set(fleet, item.scale_set)},
            "hardwareProfile": {"vmSize": scale_set.sku},
            **_machine(fleet, item),
        },
    }
    if item.zone:
        document["zones"] = [item.zone]
    if view:
        document["properties"]["instanceView"] = instance_view(item, uniform=False)
    return document


def instance_view(item: Instance, *, uniform: bool) -> Document:
    """How an instance runs."""
    statuses = [
        {"code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Provisioning succeeded", "time": scale_sets.CREATED},
        {"code": "PowerState/running", "level": "Info", "displayStatus": "VM running"},
    ]
    view: Document = {"computerName": item.computer_name, "osName": "debian", "hyperVGeneration": "V2", "statuses": statuses}
    if uniform:
        view |= {
            "platformUpdateDomain": item.update_domain,
            "platformFaultDomain": item.fault_domain,
            "placementGroupId": item.placement_group_id,
        }
    else:
        view |= {"platformFaultDomain": item.fault_domain}
    return view


def _machine(fleet: Fleet, item: Instance) -> Document:
    scale_set = fleet.scale_set(item.scale_set)
    return {
        "vmId": item.vm_id,
        "provisioningState": "Succeeded",
        "osProfile": scale_sets.os_profile(fleet, {"computerName": item.computer_name}),
        "storageProfile": scale_sets.storage_profile(scale_set),
        "networkProfile": {"networkInterfaces": [{"id": names.interface(fleet, item), "properties": {"primary": True}}]},
        "timeCreated": scale_sets.CREATED,
    }
