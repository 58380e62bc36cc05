# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The model of a scale set: what its instances are made from, in the form in which ARM holds it.

A model is a document with two keys, "sku" and "virtualMachineProfile". It is never changed in place.
"""

from __future__ import annotations

import copy
import dataclasses
import typing as t

from . import description as described

Document = dict[str, t.Any]
ADMIN_USER = "azureuser"
# What an image reference of the lab's root file systems looks like.
PUBLISHER = "Debian"
CREATED = "2026-01-01T00:00:00+00:00"
# Azure: at most 256 private addresses on one NIC (learn.microsoft.com, "Azure subscription and service limits").
CONFIGURATIONS_PER_NIC = 256
# The name of the one NIC, and of its ipConfigurations, in a model made from a description.
NIC = "nic"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Configuration:
    """One ipConfiguration of a model: its name, and how long a block it asks for (32 is one address)."""

    name: str
    primary: bool
    prefix_length: int = 32


def initial(scale_set: described.ScaleSet, *, subnet_id: str, public_key: str) -> Document:
    """The model that a description asks for."""
    subnet = {"id": subnet_id}
    configurations = [
        {
            "name": "primary" if number == 0 else f"alias{number:03d}",
            "properties": {"primary": number == 0, "subnet": subnet, "privateIPAddressVersion": "IPv4"},
        }
        for number in range(scale_set.ip_configurations)
    ]
    interface: Document = {
        "primary": True,
        "enableAcceleratedNetworking": True,
        "disableTcpStateTracking": False,
        "enableIPForwarding": True,
        "dnsSettings": {"dnsServers": []},
        "ipConfigurations": configurations,
    }
    return {
        "sku": {"name": scale_set.sku, "tier": "Standard"},
        "virtualMachineProfile": {
            "osProfile": os_profile(public_key, {"computerNamePrefix": scale_set.name}),
            "storageProfile": {
                "osDisk": {
                    "osType": "Linux",
                    "createOption": "FromImage",
                    "caching": "ReadOnly",
                    "managedDisk": {"storageAccountType": "Premium_LRS"},
                    "diskSizeGB": 64,
                },
                "imageReference": {
                    "publisher": PUBLISHER,
                    "offer": f"debian-{scale_set.image}",
                    "sku": scale_set.image,
                    "version": "latest",
                },
            },
            "networkProfile": {"networkInterfaceConfigurations": [{"name": NIC, "properties": interface}]},
            "timeCreated": CREATED,
        },
    }


def os_profile(public_key: str, names_given: Document) -> Document:
    """The osProfile with the user that may log in by key alone."""
    key = {"path": f"/home/{ADMIN_USER}/.ssh/authorized_keys", "keyData": public_key}
    return {
        **names_given,
        "adminUsername": ADMIN_USER,
        "linuxConfiguration": {"disablePasswordAuthentication": True, "ssh": {"publicKeys": [key]}, "provisionVMAgent": True},
        "secrets": [],
        "allowExtensionOperations": True,
    }


def size(model: Document) -> str:
    return str(model["sku"]["name"])


def image(model: Document) -> str:
    """The name of the lab's root file system: the image reference's sku."""
    return str(model["virtualMachineProfile"]["storageProfile"]["imageReference"]["sku"])


def user_data(model: Document) -> str:
    """Base64, as Azure wants it written; empty when there is none."""
    return str(model["virtualMachineProfile"].get("userData", ""))


def configurations(model: Document) -> tuple[Configuration, ...]:
    """The ipConfigurations of the NIC, the primary first."""
    interface = model["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"][0]
    found = [
        Configuration(
            name=str(item["name"]),
            primary=bool(item["properties"].get("primary", False)),
            prefix_length=int(item["properties"].get("privateIPAddressPrefixLength") or 32),
        )
        for item in interface["properties"]["ipConfigurations"]
    ]
    if len(found) == 1:
        found = [dataclasses.replace(found[0], primary=True)]
    return tuple(sorted(found, key=lambda item: not item.primary))


def merged(document: Document, patch: t.Mapping[str, t.Any]) -> Document:
    """A PATCH as ARM does it: objects are merged key by key, everything else is replaced; null removes."""
    result = dict(document)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def differences(applied: Document, latest: Document) -> frozenset[str]:
    """In which parts an instance's model differs from the set's: "sku", and the keys of virtualMachineProfile."""
    parts = {"sku"} if applied["sku"]["name"] != latest["sku"]["name"] else set()
    old, new = applied["virtualMachineProfile"], latest["virtualMachineProfile"]
    return frozenset(parts | {key for key in {*old, *new} if old.get(key) != new.get(key)})
