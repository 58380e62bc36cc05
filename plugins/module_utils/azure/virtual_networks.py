# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VNets: ARM's documents made into small records. Pure.

Property names and shapes: Microsoft.Network 2024-05-01. What ``az network vnet list`` prints is taken too; it is the
same without the level ``properties``.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import ipaddress
import typing as t

from .documents import Document, at, parts
from .errors import AzureError

Range = ipaddress.IPv4Network


@dataclasses.dataclass(frozen=True, kw_only=True)
class Subnet:
    """``used`` counts the ipConfigurations by their Uniform scale set, "RESOURCE_GROUP/NAME" in lower case; "" for all others."""

    name: str
    ranges: tuple[Range, ...]
    used: t.Mapping[str, int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Peering:
    """``remote`` is the lower-case id of the other VNet, ``name`` its name."""

    remote: str
    name: str
    ranges: tuple[Range, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class VirtualNetwork:
    """IPv4 alone. ``key`` is the lower-case id, or the name of a VNet that does not exist yet."""

    key: str
    name: str
    ranges: tuple[Range, ...]
    subnets: tuple[Subnet, ...]
    peerings: tuple[Peering, ...]

    @property
    def used(self) -> int:
        """ipConfigurations in all subnets."""
        return sum(sum(subnet.used.values()) for subnet in self.subnets)

    @functools.cached_property
    def by_scale_set(self) -> t.Mapping[str, t.Mapping[str, int]]:
        """For each scale set, by its name in lower case, its ipConfigurations in each subnet, by that one's name.

        A name that is there in two resource groups is left out: it cannot be told which of them is meant.
        """
        owners: dict[str, set[str]] = collections.defaultdict(set)
        found: dict[str, dict[str, int]] = collections.defaultdict(dict)
        for subnet in self.subnets:
            for owner, count in subnet.used.items():
                if owner:
                    name = owner.rpartition("/")[2]
                    owners[name].add(owner)
                    found[name][subnet.name] = count
        return {name: counts for name, counts in found.items() if len(owners[name]) == 1}


def virtual_network(document: Document) -> VirtualNetwork:
    """One VNet. Raises AzureError for a document of another shape and for ranges that are none."""
    name = str(document.get("name") or "")
    if not name:
        raise AzureError("virtual_networks: a document has no name; give documents as ARM returns them")
    where = f"VNet {name}"
    properties = _properties(document)
    space = at(properties, "addressSpace").get("addressPrefixes")
    if not space:
        # azure_rm_virtualnetwork_info and the like: no peerings in them, so clusters could not be held apart.
        raise AzureError(
            f"{where}: its document has no addressSpace.addressPrefixes; give what `az network vnet list` or "
            "azure.azcollection.azure_rm_resource_info returns, or name subscription_ids to have the VNets read"
        )
    return VirtualNetwork(
        key=str(document.get("id") or name).lower(),
        name=name,
        ranges=_ranges(space, where),
        subnets=tuple(_subnet(item, where) for item in _list(properties, "subnets")),
        peerings=tuple(_peering(item, where) for item in _list(properties, "virtualNetworkPeerings")),
    )


def _subnet(document: Document, where: str) -> Subnet:
    name = str(document.get("name") or "")
    properties = _properties(document)
    given = properties.get("addressPrefixes") or [properties.get("addressPrefix")]
    used = collections.Counter(_scale_set(str(item.get("id") or "")) for item in _list(properties, "ipConfigurations"))
    return Subnet(name=name, ranges=_ranges(given, f"{where}, subnet {name}"), used=used)


def _peering(document: Document, where: str) -> Peering:
    properties = _properties(document)
    remote = str(at(properties, "remoteVirtualNetwork").get("id") or "")
    space = at(properties, "remoteVirtualNetworkAddressSpace") or at(properties, "remoteAddressSpace")
    if not remote:
        raise AzureError(f"{where}: peering {document.get('name')} names no remoteVirtualNetwork.id; give documents as ARM returns them")
    return Peering(
        remote=remote.lower(),
        name=remote.rpartition("/")[2],
        ranges=_ranges(space.get("addressPrefixes") or [], f"{where}, peering {document.get('name')}"),
    )


def _scale_set(configuration: str) -> str:
    """RESOURCE_GROUP/NAME, lower case, of the Uniform scale set that has an ipConfiguration; "" for another one's."""
    if "virtualmachinescalesets" not in configuration.lower():
        return ""
    named = parts(configuration)
    return f"{named.get('resourcegroups', '')}/{named.get('virtualmachinescalesets', '')}".lower()


def _properties(document: Document) -> Document:
    return at(document, "properties") or document


def _list(document: Document, key: str) -> list[Document]:
    return [item for item in document.get(key) or [] if isinstance(item, dict)]


def _ranges(given: t.Iterable[object], where: str) -> tuple[Range, ...]:
    ranges = []
    for text in given:
        try:
            network = ipaddress.ip_network(str(text))
        except ValueError as error:
            raise AzureError(f"{where}: {text!r} is not an address range ({error}); give documents as ARM returns them") from error
        if isinstance(network, ipaddress.IPv4Network):
            ranges.append(network)
    return tuple(ranges)
