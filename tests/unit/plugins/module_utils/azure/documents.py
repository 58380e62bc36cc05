# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hand-written ARM documents, with only the properties that matter here, in the shapes ARM gives them."""

from __future__ import annotations

import typing as t

SUBSCRIPTION = "11111111-2222-4333-8444-555555555555"
GROUP = "Train-West"

Document = dict[str, t.Any]


def set_id(name: str = "gpua", *, group: str = GROUP) -> str:
    return f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachineScaleSets/{name}"


def scale_set(name: str = "gpua", *, group: str = GROUP, mode: str | None = "Uniform", size: str = "Standard_ND96isr_H100_v5") -> Document:
    document: Document = {
        "name": name,
        "id": set_id(name, group=group),
        "location": "westeurope",
        "sku": {"name": size, "tier": "Standard", "capacity": 2},
        "properties": {"provisioningState": "Succeeded"},
    }
    if mode:
        document["properties"]["orchestrationMode"] = mode
    return document


def uniform(number: int, *, name: str = "gpua", group: str = GROUP, power: str = "running", provisioning: str = "Succeeded") -> Document:
    return {
        "name": f"{name}_{number}",
        "id": f"{set_id(name, group=group)}/virtualMachines/{number}",
        "instanceId": str(number),
        "location": "westeurope",
        "zones": ["1"],
        "sku": {"name": "Standard_ND96isr_H100_v5", "tier": "Standard"},
        "tags": {"cluster": "a"},
        "properties": {
            "vmId": f"vm-{name}-{number}",
            "latestModelApplied": True,
            "provisioningState": provisioning,
            "osProfile": {"computerName": f"{name}00000{number}", "adminUsername": "azureuser"},
            "protectionPolicy": {"protectFromScaleIn": False, "protectFromScaleSetActions": False},
            "instanceView": {
                "placementGroupId": "a7f1a4b2-0000-4000-8000-000000000001",
                "platformFaultDomain": 0,
                "platformUpdateDomain": number,
                "vmHealth": {"status": {"code": "HealthState/healthy"}},
                "statuses": [{"code": "ProvisioningState/succeeded"}, {"code": f"PowerState/{power}"}],
            },
        },
    }


def flexible(name: str, *, scale_set_name: str = "cpub", group: str = GROUP, computer: str = "cpub000000") -> Document:
    return {
        "name": name,
        "id": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group.upper()}/providers/Microsoft.Compute/virtualMachines/{name}",
        "type": "Microsoft.Compute/virtualMachines",
        "location": "westeurope",
        "properties": {
            "vmId": f"vm-{name}",
            "hardwareProfile": {"vmSize": "Standard_D96ds_v5"},
            "virtualMachineScaleSet": {"id": set_id(scale_set_name, group=group)},
            "provisioningState": "Succeeded",
            "osProfile": {"computerName": computer},
            "instanceView": {"platformFaultDomain": 1, "statuses": [{"code": "PowerState/running"}]},
        },
    }


def configuration(address: str | None, *, primary: bool = False, **further: t.Any) -> Document:
    return {
        "name": "ipconfig",
        "properties": {"privateIPAddress": address, "primary": primary, "privateIPAddressVersion": "IPv4", **further},
    }


def interface(owner: str, configurations: list[Document], *, name: str = "nic0", primary: bool = True) -> Document:
    return {
        "name": name,
        "id": f"{owner}/networkInterfaces/{name}",
        "properties": {
            "primary": primary,
            "macAddress": "00-0D-3A-00-00-01",
            "ipConfigurations": configurations,
            "virtualMachine": {"id": owner},
        },
    }
