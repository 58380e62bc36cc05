# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which subnet each scale set of a cluster gets: the one where it is, the one it names, or a new one in what is free. Pure."""

from __future__ import annotations

import collections
import dataclasses
import typing as t

from . import network_limits as limits
from . import network_space as space
from .network_refusals import RefusedError, counted
from .network_space import Need, Range
from .network_wish import Cluster, Form, ScaleSet
from .virtual_networks import Subnet, VirtualNetwork


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlannedSet:
    """A scale set and its subnet; ``new`` is whether that has to be made."""

    scale_set: ScaleSet
    subnet: str
    range: Range
    new: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlannedCluster:
    cluster: Cluster
    network: VirtualNetwork
    sets: tuple[PlannedSet, ...]


def planned_cluster(cluster: Cluster, network: VirtualNetwork, form: Form) -> PlannedCluster:
    """Every scale set in the subnet where it is, in the one it names, or in a new one. Raises RefusedError."""
    chosen = {item.name: _chosen(item, network) for item in cluster.scale_sets}
    by_subnet: dict[str, list[ScaleSet]] = collections.defaultdict(list)
    for item in cluster.scale_sets:
        subnet = chosen[item.name]
        if subnet:
            by_subnet[subnet.name].append(item)
    for subnet in network.subnets:
        if subnet.name in by_subnet:
            _check_room(network, subnet, by_subnet[subnet.name], form)
    fresh = _new_subnets([item for item in cluster.scale_sets if not chosen[item.name]], network, form)
    sets = []
    for item in cluster.scale_sets:
        subnet = chosen[item.name]
        name, where = (subnet.name, subnet.ranges[0]) if subnet else (item.name, fresh[item.name])
        sets.append(PlannedSet(scale_set=item, subnet=name, range=where, new=subnet is None))
    return PlannedCluster(cluster=cluster, network=network, sets=tuple(sets))


def _chosen(item: ScaleSet, network: VirtualNetwork) -> Subnet | None:
    """The subnet of a set that has one; one of the set's own name is that of an earlier plan. Raises RefusedError."""
    wanted = item.subnet or item.name
    named = next((subnet for subnet in network.subnets if subnet.name.lower() == wanted.lower()), None)
    if item.subnet and not named:
        raise RefusedError(
            limits.SET_SUBNET,
            where=f"scale set {item.name}",
            what=f"VNet {network.name} has no subnet {item.subnet}",
            advice=f"name one that exists ({', '.join(subnet.name for subnet in network.subnets[:20]) or 'there is none'}), or none for a new one",
        )
    living = next((subnet for subnet in network.subnets if already_there(subnet, network, (item,))), None)
    if living and named and living.name != named.name:
        raise RefusedError(
            limits.SET_SUBNET,
            where=f"scale set {item.name}",
            what=f"it has its addresses in subnet {living.name} and would get further ones in {named.name}, and a scale set has one subnet",
            advice=f"leave it in {living.name}, or plan a new set",
        )
    return living or named


def already_there(subnet: Subnet, network: VirtualNetwork, sets: t.Iterable[ScaleSet]) -> int:
    """How many of a subnet's ipConfigurations these scale sets have already, which the plan counts itself.

    An interface of a Flexible set does not name its set; a subnet of the set's own name is taken to be for it alone.
    """
    count = 0
    for item in sets:
        count += network.by_scale_set.get(item.name.lower(), {}).get(subnet.name, 0)
        if item.orchestration == "Flexible" and item.name.lower() == subnet.name.lower():
            count += min(subnet.used.get("", 0), item.configurations("single"))
    return count


def _need(item: ScaleSet, form: Form) -> Need:
    if form == "single":
        return Need(singles=item.configurations(form))
    return Need(singles=item.capacity, blocks=item.capacity * item.blocks_per_node)


def _check_room(network: VirtualNetwork, subnet: Subnet, sets: t.Sequence[ScaleSet], form: Form) -> None:
    where = f"subnet {subnet.name} of VNet {network.name}"
    if len(subnet.ranges) != 1:
        raise RefusedError(
            limits.SUBNET_PREFIXES,
            where=where,
            what=f"it has {counted(len(subnet.ranges), 'IPv4 range')}, and Azure gives secondary addresses only in a subnet with one",
            advice="name another subnet, or none for a new one",
        )
    need = sum((_need(item, form) for item in sets), Need())
    others = sum(subnet.used.values()) - already_there(subnet, network, sets)
    if not space.fits(subnet.ranges[0].prefixlen, need, others=others):
        room = space.usable(subnet.ranges[0].prefixlen)
        wanted = f"{need.singles:,} addresses" + (f" and {need.blocks:,} aligned /{limits.BLOCK_LENGTH} blocks" if need.blocks else "")
        raise RefusedError(
            limits.SUBNET_ADDRESSES,
            where=f"{where} ({subnet.ranges[0]})",
            what=f"{wanted} do not fit {room:,} addresses ({limits.SUBNET_ADDRESSES.value} of {subnet.ranges[0].num_addresses:,} are Azure's)"
            + (f", of which others use {others:,}" if others else ""),
            advice=f"widen it to /{space.length_for(need, others=others)}, or name no subnet for a new one",
            needed=need.singles + need.blocks * limits.BLOCK_ADDRESSES,
        )


def _new_subnets(sets: t.Sequence[ScaleSet], network: VirtualNetwork, form: Form) -> dict[str, Range]:
    most = limits.VNET_SUBNETS.value
    if len(network.subnets) + len(sets) > most:
        raise RefusedError(
            limits.VNET_SUBNETS,
            where=f"VNet {network.name}",
            what=f"it has {counted(len(network.subnets), 'subnet')} and needs {len(sets):,} more, and Azure allows {most:,}",
            advice="make fewer, larger scale sets, or let several name one subnet",
            needed=len(network.subnets) + len(sets),
        )
    holes = space.free(network.ranges, (item for subnet in network.subnets for item in subnet.ranges))
    lengths = [space.length_for(_need(item, form)) for item in sets]
    placed = space.place(holes, lengths)
    if placed is None:
        wanted = sum(1 << 32 - length for length in lengths)
        raise RefusedError(
            limits.ADDRESS_SPACE,
            where=f"VNet {network.name}",
            what=f"{counted(len(sets), 'new subnet')} of {_lengths(lengths)}, {wanted:,} addresses, do not fit its free ranges "
            f"({space.size(holes):,} addresses, the largest {max(holes, key=lambda hole: hole.num_addresses) if holes else 'none'})",
            advice=f"add an address range to the VNet, for example a /{32 - (wanted - 1).bit_length()} that nothing else uses",
            needed=wanted,
        )
    return {item.name: where for item, where in zip(sets, placed, strict=True)}


def _lengths(lengths: t.Sequence[int]) -> str:
    return " and ".join(f"/{length}" for length in sorted(set(lengths)))
