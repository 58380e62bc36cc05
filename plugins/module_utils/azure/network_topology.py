# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which VNets a fleet touches: every cluster in one of its own, at a hub, apart from the others."""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import typing as t

from . import network_limits as limits
from .errors import AzureError
from .network_refusals import RefusedError, counted
from .network_wish import Cluster, Wish
from .virtual_networks import VirtualNetwork


@dataclasses.dataclass(frozen=True, kw_only=True)
class Group:
    """VNets that peerings connect, directly or through others. ``unlisted`` are names of those whose documents are not at hand."""

    networks: tuple[VirtualNetwork, ...]
    unlisted: tuple[str, ...]

    @property
    def names(self) -> str:
        return ", ".join((*(network.name for network in self.networks), *self.unlisted))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Topology:
    """``homes`` is each cluster's VNet by the cluster's name, ``missing`` the peerings to make, each in one direction."""

    homes: t.Mapping[str, VirtualNetwork]
    missing: tuple[tuple[VirtualNetwork, VirtualNetwork], ...]
    groups: tuple[Group, ...]


def topology(wish: Wish, networks: t.Sequence[VirtualNetwork]) -> Topology:
    """The fleet's VNets as they will be. Raises AzureError for a VNet that does not exist, RefusedError for what may not be."""
    homes = {
        cluster.name: _find(networks, cluster.virtual_network, f"cluster {cluster.name}: virtual_network") for cluster in wish.clusters
    }
    hubs = {cluster.name: _find(networks, cluster.hub, f"cluster {cluster.name}: hub") for cluster in wish.clusters if cluster.hub}
    _check_apart(wish.clusters, homes, hubs)
    missing = _missing(wish.clusters, homes, hubs)
    _check_peerings(networks, missing)
    groups = _groups(networks, missing, homes.values())
    _check_overlap(groups, wish.on_premises)
    for group in groups:
        if group.unlisted and wish.unlisted_addresses is None:
            raise RefusedError(
                limits.GROUP_ADDRESSES,
                where=f"VNets {group.names}",
                what=f"they are one group of peered VNets, and no document says how many addresses {', '.join(group.unlisted)} use",
                advice="add what is missing to virtual_networks, or set unlisted_addresses to the addresses in use there and in what is peered with it",
            )
    return Topology(homes=homes, missing=missing, groups=groups)


def _find(networks: t.Sequence[VirtualNetwork], wanted: str, where: str) -> VirtualNetwork:
    """By id or by name."""
    found = [item for item in networks if wanted.lower() in (item.key, item.name.lower())]
    if len(found) > 1:
        raise AzureError(f"{where}: there are {len(found)} VNets {wanted}; give the id of the one that is meant")
    if not found:
        known = [item.name for item in networks]
        near = difflib.get_close_matches(wanted, known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known[:20]) or 'none'}"
        raise AzureError(f"{where}: there is no VNet {wanted} in virtual_networks; correct it ({hint})")
    return found[0]


def _check_apart(clusters: t.Sequence[Cluster], homes: t.Mapping[str, VirtualNetwork], hubs: t.Mapping[str, VirtualNetwork]) -> None:
    owners: dict[str, str] = {}
    for cluster in clusters:
        home = homes[cluster.name]
        other = owners.setdefault(home.key, cluster.name)
        if other != cluster.name:
            raise _together(cluster, f"it shares VNet {home.name} with cluster {other}", "give each cluster a VNet of its own")
    for cluster in clusters:
        hub = hubs.get(cluster.name)
        if hub and hub.key in owners:
            raise _together(cluster, f"its hub {hub.name} is the VNet of cluster {owners[hub.key]}", "take a VNet without a cluster as hub")
        for peering in homes[cluster.name].peerings:
            other = owners.get(peering.remote, cluster.name)
            if other != cluster.name:
                raise _together(
                    cluster,
                    f"its VNet {homes[cluster.name].name} is peered with {peering.name}, the VNet of cluster {other}",
                    "delete this peering on both sides, and let people come from a hub",
                )


def _together(cluster: Cluster, what: str, advice: str) -> RefusedError:
    return RefusedError(
        limits.CLUSTERS_APART,
        where=f"cluster {cluster.name}",
        what=f"{what}, and a failure of one cluster must not reach another",
        advice=advice,
    )


def _missing(
    clusters: t.Sequence[Cluster], homes: t.Mapping[str, VirtualNetwork], hubs: t.Mapping[str, VirtualNetwork]
) -> tuple[tuple[VirtualNetwork, VirtualNetwork], ...]:
    pairs = [pair for cluster in clusters if cluster.name in hubs for pair in _both(hubs[cluster.name], homes[cluster.name])]
    return tuple((one, other) for one, other in pairs if all(peering.remote != other.key for peering in one.peerings))


def _both(one: VirtualNetwork, other: VirtualNetwork) -> tuple[tuple[VirtualNetwork, VirtualNetwork], ...]:
    return ((one, other), (other, one))


def _check_peerings(networks: t.Iterable[VirtualNetwork], missing: t.Sequence[tuple[VirtualNetwork, VirtualNetwork]]) -> None:
    most = limits.VNET_PEERINGS.value
    for network in networks:
        count = len(network.peerings) + sum(one.key == network.key for one, _other in missing)
        if count > most:
            raise RefusedError(
                limits.VNET_PEERINGS,
                where=f"VNet {network.name}",
                what=f"it has {counted(len(network.peerings), 'peering')} and needs {count:,} for the clusters, and Azure allows {most:,}",
                advice="put some of the clusters to another hub",
                needed=count,
            )


def _groups(
    networks: t.Sequence[VirtualNetwork],
    missing: t.Iterable[tuple[VirtualNetwork, VirtualNetwork]],
    homes: t.Iterable[VirtualNetwork],
) -> tuple[Group, ...]:
    """The groups with a cluster in them."""
    links: dict[str, set[str]] = {network.key: set() for network in networks}
    names: dict[str, str] = {}
    made = [(one.key, other.key) for one, other in missing]
    for network in networks:
        made += [(network.key, peering.remote) for peering in network.peerings]
        names.update({peering.remote: peering.name for peering in network.peerings})
    for one, other in made:
        links.setdefault(one, set()).add(other)
        links.setdefault(other, set()).add(one)
    groups: list[Group] = []
    seen: set[str] = set()
    for home in homes:
        if home.key in seen:
            continue
        reached, ahead = set[str](), [home.key]
        while ahead:
            key = ahead.pop()
            if key not in reached:
                reached.add(key)
                ahead += links[key]
        seen |= reached
        members = tuple(network for network in networks if network.key in reached)
        absent = reached - {network.key for network in members}
        groups.append(Group(networks=members, unlisted=tuple(sorted(names[key] for key in absent))))
    return tuple(groups)


def _check_overlap(groups: t.Iterable[Group], on_premises: t.Iterable[ipaddress.IPv4Network]) -> None:
    """Peered VNets may not overlap at all; the others of the fleet not either, so that an address always means one machine."""
    # By key, "" for what is on premises, as several hubs may name one VNet.
    ranges = {("", item): "on_premises" for item in on_premises}
    for network in (network for group in groups for network in group.networks):
        ranges.update({(network.key, item): f"VNet {network.name}" for item in network.ranges})
    for network in (network for group in groups for network in group.networks):
        for peering in network.peerings:
            for item in peering.ranges:
                ranges.setdefault((peering.remote, item), f"VNet {peering.name} (peered with {network.name})")
    ordered = sorted(ranges, key=lambda entry: (int(entry[1].network_address), entry[1].prefixlen))
    widest: tuple[str, ipaddress.IPv4Network] | None = None
    for entry in ordered:
        if widest and entry[1].network_address <= widest[1].broadcast_address:
            # A VNet's own ranges may be said twice, by itself and by an older peering.
            if entry[0] != widest[0]:
                raise RefusedError(
                    limits.OVERLAP,
                    where=f"{ranges[entry]} {entry[1]}",
                    what=f"it overlaps {ranges[widest]} {widest[1]}",
                    advice="give one of them another range, so that no address means two machines"
                    + (", or take out of on_premises what is not in use there" if "" in (entry[0], widest[0]) else ""),
                )
            continue
        widest = entry
