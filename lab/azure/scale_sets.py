# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scale sets as Microsoft.Compute renders them."""

from __future__ import annotations

import typing as t

from ..description import ScaleSet
from ..fleet import ADMIN_USER, Fleet
from . import names

Document = dict[str, t.Any]
# What an image reference of the lab's root file systems looks like.
PUBLISHER = "Debian"
CREATED = "2026-01-01T00:00:00+00:00"


def render(fleet: Fleet, item: ScaleSet) -> Document:
    """One scale set: its model, with every ipConfiguration of the NIC."""
    uniform = item.orchestration == "Uniform"
    document: Document = {
        "name": item.name,
        "id": names.scale_set(fleet, item.name),
        "type": "Microsoft.Compute/virtualMachineScaleSets",
        "location": fleet.description.location,
        "tags": dict(item.tags),
        "sku": {"name": item.sku, "tier": "Standard", "capacity": item.instances},
        "properties": {
            "orchestrationMode": item.orchestration,
            "provisioningState": "Succeeded",
            "uniqueId": fleet.instances_of(item.name)[0].placement_group_id if item.instances else "",
            "platformFaultDomainCount": 1,
            "singlePlacementGroup": uniform and item.instances <= 100,
            "timeCreated": CREATED,
            "virtualMachineProfile": {
                "osProfile": os_profile(fleet, {"computerNamePrefix": item.name}),
                "storageProfile": storage_profile(item),
                "networkProfile": {"networkInterfaceConfigurations": [_interface(fleet, item)]},
                "timeCreated": CREATED,
            },
        },
    }
    if uniform:
        document["properties"] |= {
            "upgradePolicy": {"mode": "Manual"},
            "overprovision": False,
            "doNotRunExtensionsOnOverprovisionedVMs": False,
        }
    if item.zones:
        document["zones"] = list(item.zones)
    return document


def instance_view(item: ScaleSet) -> Document:
    """Counts of states, as the call for a Uniform set's instance view gives them."""
    return {
        "virtualMachine": {
            "statusesSummary": [
                {"code": "ProvisioningState/succeeded", "count": item.instances},
                {"code": "PowerState/running", "count": item.instances},
            ]
        },
        "statuses": [{"code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Provisioning succeeded", "time": CREATED}],
    }


def sku(item: ScaleSet) -> Document:
    return {
        "resourceType": "Microsoft.Compute/virtualMachineScaleSets",
        "sku": {"name": item.sku, "tier": "Standard"},
        "capacity": {"minimum": 0, "maximum": 1000, "defaultCapacity": 1, "scaleType": "Automatic"},
    }


def os_profile(fleet: Fleet, names_given: Document) -> Document:
    key = {"path": f"/home/{ADMIN_USER}/.ssh/authorized_keys", "keyData": fleet.public_key}
    return {
        **names_given,
        "adminUsername": ADMIN_USER,
        "linuxConfiguration": {"disablePasswordAuthentication": True, "ssh": {"publicKeys": [key]}, "provisionVMAgent": True},
        "secrets": [],
        "allowExtensionOperations": True,
    }


def storage_profile(item: ScaleSet) -> Document:
    return {
        "osDisk": {
            "osType": "Linux",
            "createOption": "FromImage",
            "caching": "ReadOnly",
            "managedDisk": {"storageAccountType": "Premium_LRS"},
            "diskSizeGB": 64,
        },
        "imageReference": {"publisher": PUBLISHER, "offer": f"debian-{item.image}", "sku": item.image, "version": "latest"},
    }


def _interface(fleet: Fleet, item: ScaleSet) -> Document:
    subnet = {"id": names.subnet(fleet, item.vnet, item.subnet)}
    configurations = [
        {
            "name": names.ip_configuration(number),
            "properties": {"primary": number == 0, "subnet": subnet, "privateIPAddressVersion": "IPv4"},
        }
        for number in range(item.ip_configurations)
    ]
    properties: Document = {
        "primary": True,
        "enableAcceleratedNetworking": True,
        "disableTcpStateTracking": False,
        "enableIPForwarding": True,
        "dnsSettings": {"dnsServers": []},
        "ipConfigurations": configurations,
    }
    return {"name": "nic", "properties": properties}
