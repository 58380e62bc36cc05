# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VNets with their subnets and peerings: every cluster with the hub, no cluster with another."""

from __future__ import annotations

import typing as t

from .. import description
from ..fleet import Fleet
from . import names

Document = dict[str, t.Any]
HUB = "hub"


def all_of(fleet: Fleet) -> list[description.VirtualNetwork]:
    """The described VNets, and the hub."""
    subnets = (description.Subnet(name="hub", prefix=description.HUB_VNET),)
    return [description.VirtualNetwork(name=HUB, address_space=description.HUB_VNET, subnets=subnets), *fleet.description.vnets]


def render(fleet: Fleet, vnet: description.VirtualNetwork) -> Document:
    others = [item for item in all_of(fleet) if (item.name == HUB) != (vnet.name == HUB)]
    return {
        "name": vnet.name,
        "id": names.virtual_network(fleet, vnet.name),
        "type": "Microsoft.Network/virtualNetworks",
        "location": fleet.description.location,
        "properties": {
            "provisioningState": "Succeeded",
            "addressSpace": {"addressPrefixes": [str(vnet.address_space)]},
            "subnets": [subnet(fleet, vnet, item) for item in vnet.subnets],
            "virtualNetworkPeerings": [_peering(fleet, vnet, item) for item in others],
        },
    }


def subnet(fleet: Fleet, vnet: description.VirtualNetwork, item: description.Subnet) -> Document:
    """A subnet names every ipConfiguration in it, by its id alone."""
    here = [
        instance
        for scale_set in fleet.scale_sets
        if (scale_set.described.vnet, scale_set.described.subnet) == (vnet.name, item.name)
        for instance in fleet.instances_of(scale_set.name)
    ]
    return {
        "name": item.name,
        "id": names.subnet(fleet, vnet.name, item.name),
        "type": "Microsoft.Network/virtualNetworks/subnets",
        "properties": {
            "provisioningState": "Succeeded",
            "addressPrefix": str(item.prefix),
            "ipConfigurations": [
                {"id": f"{names.interface(fleet, instance)}/ipConfigurations/{held.name}"}
                for instance in here
                for held in instance.configurations
            ],
        },
    }


def _peering(fleet: Fleet, vnet: description.VirtualNetwork, other: description.VirtualNetwork) -> Document:
    return {
        "name": f"to-{other.name}",
        "id": f"{names.virtual_network(fleet, vnet.name)}/virtualNetworkPeerings/to-{other.name}",
        "properties": {
            "provisioningState": "Succeeded",
            "peeringState": "Connected",
            "remoteVirtualNetwork": {"id": names.virtual_network(fleet, other.name)},
            "remoteAddressSpace": {"addressPrefixes": [str(other.address_space)]},
            "allowVirtualNetworkAccess": True,
            "allowForwardedTraffic": True,
        },
    }
