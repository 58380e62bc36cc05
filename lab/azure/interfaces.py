# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NICs and their ipConfigurations."""

from __future__ import annotations

import typing as t
import uuid

from ..fleet import Fleet, Instance
from . import names

Document = dict[str, t.Any]


def render(fleet: Fleet, item: Instance) -> Document:
    """One NIC with every private address. Of a Uniform set it has no type and no location, as in Azure."""
    resource = names.interface(fleet, item)
    document: Document = {
        "name": resource.rpartition("/")[2],
        "id": resource,
        "etag": etag(item),
        "properties": {
            "provisioningState": "Succeeded",
            "resourceGuid": item.vm_id,
            "ipConfigurations": [ip_configuration(fleet, item, number) for number in range(len(item.configurations))],
            "dnsSettings": {"dnsServers": [], "appliedDnsServers": []},
            "macAddress": item.mac.replace(":", "-").upper(),
            "enableAcceleratedNetworking": True,
            "enableIPForwarding": True,
            "primary": True,
            "virtualMachine": {"id": names.instance(fleet, item)},
        },
    }
    if not names.is_uniform(fleet, item):
        document |= {"type": "Microsoft.Network/networkInterfaces", "location": fleet.description.location}
    return document


def etag(item: Instance) -> str:
    """Another one for other ipConfigurations, the only thing about a NIC that changes here. Weak, as Microsoft.Network writes it."""
    held = " ".join(f"{each.name}={each.address}/{each.prefix_length}" for each in item.configurations)
    return f'W/"{uuid.uuid5(uuid.UUID(item.vm_id), held)}"'


def ip_configuration(fleet: Fleet, item: Instance, number: int) -> Document:
    """One ipConfiguration, by its place on the NIC."""
    place = fleet.scale_set(item.scale_set).described
    held = item.configurations[number]
    document: Document = {
        "name": held.name,
        "id": f"{names.interface(fleet, item)}/ipConfigurations/{held.name}",
        "properties": {
            "provisioningState": "Succeeded",
            "privateIPAddress": held.address,
            "privateIPAllocationMethod": "Dynamic",
            "privateIPAddressVersion": "IPv4",
            "subnet": {"id": names.subnet(fleet, place.vnet, place.subnet)},
            "primary": number == 0,
        },
    }
    if held.prefix_length != 32:
        document["properties"] |= {
            "privateIPAddress": f"{held.address}/{held.prefix_length}",
            "privateIPAddressPrefixLength": held.prefix_length,
        }
    return document
