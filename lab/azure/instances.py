# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instances: of Uniform sets as children of the set, of Flexible sets as virtual machines."""

from __future__ import annotations

import typing as t

from .. import model
from ..fleet import Fleet, Instance
from . import names

Document = dict[str, t.Any]


def uniform(fleet: Fleet, item: Instance, *, view: bool) -> Document:
    """One instance of a Uniform set, with its instance view if asked."""
    scale_set, applied = fleet.scale_set(item.scale_set), fleet.model_of(item)
    document: Document = {
        "name": item.name,
        "id": names.instance(fleet, item),
        "type": "Microsoft.Compute/virtualMachineScaleSets/virtualMachines",
        "location": fleet.description.location,
        "tags": dict(scale_set.tags if item.tags is None else item.tags),
        "instanceId": item.instance_id,
        "sku": dict(applied["sku"]),
        "properties": {
            "latestModelApplied": item.model_version == scale_set.version,
            "modelDefinitionApplied": "VirtualMachineScaleSet" if item.user_data is None else "VirtualMachine",
            "networkProfileConfiguration": applied["virtualMachineProfile"]["networkProfile"],
            **_machine(fleet, item),
        },
    }
    if item.protected_from_scale_in or item.protected_from_scale_set_actions:
        document["properties"]["protectionPolicy"] = {
            "protectFromScaleIn": item.protected_from_scale_in,
            "protectFromScaleSetActions": item.protected_from_scale_set_actions,
        }
    extensions = applied["virtualMachineProfile"].get("extensionProfile", {}).get("extensions", [])
    if extensions:
        document["resources"] = [_extension(fleet, item, each) for each in extensions]
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
        "tags": dict(scale_set.tags if item.tags is None else item.tags),
        "properties": {
            "virtualMachineScaleSet": {"id": names.scale_set(fleet, item.scale_set)},
            "hardwareProfile": {"vmSize": model.size(fleet.model_of(item))},
            **_machine(fleet, item),
        },
    }
    if item.zone:
        document["zones"] = [item.zone]
    if view:
        document["properties"]["instanceView"] = instance_view(item, uniform=False)
    return document


def _extension(fleet: Fleet, item: Instance, extension: Document) -> Document:
    """An extension of the model as the instance has it: a resource of its own."""
    return {
        "name": extension["name"],
        "id": f"{names.instance(fleet, item)}/extensions/{extension['name']}",
        "type": "Microsoft.Compute/virtualMachines/extensions",
        "location": fleet.description.location,
        "properties": {**extension.get("properties", {}), "provisioningState": "Succeeded"},
    }


def instance_view(item: Instance, *, uniform: bool) -> Document:
    """How an instance runs."""
    statuses = [
        {
            "code": f"ProvisioningState/{item.provisioning.lower()}",
            "level": "Error" if item.provisioning == "Failed" else "Info",
            "displayStatus": "Provisioning succeeded" if item.provisioning == "Succeeded" else item.provisioning,
            "time": model.CREATED,
        }
    ]
    if item.provisioning != "Creating":
        statuses.append({"code": f"PowerState/{item.power}", "level": "Info", "displayStatus": f"VM {item.power}"})
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
    applied = fleet.model_of(item)
    return {
        "vmId": item.vm_id,
        "provisioningState": item.provisioning,
        "osProfile": model.os_profile(fleet.public_key, {"computerName": item.computer_name}),
        "storageProfile": applied["virtualMachineProfile"]["storageProfile"],
        "networkProfile": {"networkInterfaces": [{"id": names.interface(fleet, item), "properties": {"primary": True}}]},
        "timeCreated": model.CREATED,
    }


def user_data(fleet: Fleet, item: Instance) -> str:
    """Base64; an instance's own wins over its model's."""
    return model.user_data(fleet.model_of(item)) if item.user_data is None else item.user_data
