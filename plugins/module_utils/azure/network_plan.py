# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a wished fleet fits Azure's networks, and which subnets it needs for that. Pure.

First what no network can mend (sizes of scale sets and jobs, routes), then how the VNets lie to each other, then the counts from
a NIC to a group of peered VNets, at last the subnets. The first limit that is broken ends it. Growth always counts.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import typing as t

from . import network_limits as limits
from . import sizes
from .network_refusals import RefusedError, counted
from .network_subnets import PlannedCluster, already_there, planned_cluster
from .network_topology import Group, Topology, topology
from .network_wish import FORMS, Form, ScaleSet, Wish
from .virtual_networks import VirtualNetwork

# What counts a block as one. Where single addresses break one of these, blocks are worth a try.
_HELPED_BY_BLOCKS = frozenset({limits.VNET_ADDRESSES, limits.GROUP_ADDRESSES, limits.ASG_CONFIGURATIONS})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Count:
    """What Azure counts as private addresses of VNets: ``planned`` is the fleet's, ``others`` what else is there."""

    names: tuple[str, ...]
    planned: int
    others: int

    @property
    def total(self) -> int:
        return self.planned + self.others


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """A fleet that fits. ``because`` is why blocks were taken where single addresses were tried first, else "".

    ``networks`` has one count for each cluster's VNet, ``groups`` one for each group of peered VNets, and
    ``security_groups`` the ipConfigurations of each application security group.
    """

    form: Form
    because: str
    wish: Wish
    clusters: tuple[PlannedCluster, ...]
    networks: tuple[Count, ...]
    groups: tuple[Count, ...]
    security_groups: t.Mapping[str, int]
    missing_peerings: tuple[tuple[str, str], ...]


def plan(wish: Wish, networks: t.Sequence[VirtualNetwork]) -> Plan:
    """The plan for a fleet. Raises RefusedError for the first limit that is broken, AzureError for a VNet that does not exist."""
    for cluster in wish.clusters:
        for item in cluster.scale_sets:
            _check_nodes(item, wish.infiniband_domain_nodes)
    _check_job(wish)
    _check_routes(wish)
    found = topology(wish, networks)
    if wish.address_form == "blocks":
        return _plan(wish, found, "blocks", because="")
    try:
        return _plan(wish, found, "single", because="")
    except RefusedError as error:
        if error.limit not in _HELPED_BY_BLOCKS:
            raise
        if wish.address_form == "single":
            raise error.but(
                advice=f"set address_form: auto for {FORMS['blocks']}, each of which counts as one, or {error.advice}"
            ) from error
        single = error
    because = f"single addresses do not fit: {single.where}: {single.what}; to keep them, {single.advice}"
    try:
        return _plan(wish, found, "blocks", because=because)
    except RefusedError as error:
        raise error.but(what=f"{error.what} (single addresses break {single.limit.name}: {single.where}: {single.what})") from error


def _plan(wish: Wish, found: Topology, form: Form, *, because: str) -> Plan:
    for cluster in wish.clusters:
        for item in cluster.scale_sets:
            _check_interface(item, form)
    networks = {network.key: count for network, count in _network_counts(wish, found, form)}
    groups = tuple(_group_count(group, networks, wish, form) for group in found.groups)
    security_groups = _security_groups(wish, form)
    return Plan(
        form=form,
        because=because,
        wish=wish,
        clusters=tuple(planned_cluster(cluster, found.homes[cluster.name], form) for cluster in wish.clusters),
        networks=tuple(networks[found.homes[cluster.name].key] for cluster in wish.clusters),
        groups=groups,
        security_groups=security_groups,
        missing_peerings=tuple((one.name, other.name) for one, other in found.missing),
    )


# Scale sets and jobs


def _check_nodes(item: ScaleSet, infiniband_domain_nodes: int) -> None:
    limit, advice = limits.SET_NODES, ""
    most = limit.value
    if item.orchestration == "Flexible" and item.fault_domains > 1 and sizes.family(item.size) != "cpu":
        limit, advice = limits.SPREAD_GPU_SET_NODES, ", or set fault_domains: 1"
        most = limit.value
    if item.infiniband and infiniband_domain_nodes < most:
        limit, advice = limits.INFINIBAND_NODES, ", or raise infiniband_domain_nodes if Microsoft has raised it for you"
        most = infiniband_domain_nodes
    if item.capacity > most:
        raise RefusedError(
            limit,
            where=f"scale set {item.name}",
            what=f"{_nodes(item)}, and Azure allows {most:,} {limit.unit}",
            advice=f"make {counted(math.ceil(item.capacity / most), 'set')} of it (count){advice}",
            needed=item.capacity,
        )


def _nodes(item: ScaleSet) -> str:
    return counted(item.nodes, "node") + (f" and {item.growth:,} of growth" if item.growth else "")


def _check_job(wish: Wish) -> None:
    """A job over InfiniBand stays in one scale set; one without stays in one cluster, since clusters do not reach each other."""
    job = wish.largest_job_nodes
    if job is None:
        return
    fast = [item for cluster in wish.clusters for item in cluster.scale_sets if item.infiniband]
    if fast and job > wish.infiniband_domain_nodes:
        raise RefusedError(
            limits.INFINIBAND_NODES,
            where="largest_job_nodes",
            what=f"a job of {counted(job, 'node')} does not fit one InfiniBand domain, which has {wish.infiniband_domain_nodes:,} nodes at most: "
            "InfiniBand reaches only inside one scale set with a single placement group",
            advice="run smaller jobs, have Microsoft raise the limit and set infiniband_domain_nodes to it, or set infiniband: false for jobs over Ethernet",
            needed=job,
        )
    nodes, where = max(
        [(item.nodes, f"scale set {item.name}") for item in fast] or [(item.nodes, f"cluster {item.name}") for item in wish.clusters]
    )
    if job > nodes:
        reason = "InfiniBand does not leave a scale set" if fast else "clusters do not reach each other"
        raise RefusedError(
            limits.LARGEST_JOB,
            where="largest_job_nodes",
            what=f"a job of {counted(job, 'node')} finds {nodes:,} at most, in {where}: {reason}",
            advice="give one of them that many nodes, or run smaller jobs",
            needed=job,
        )


def _check_routes(wish: Wish) -> None:
    """Behind a hub's appliance each range on premises is a route in the clusters' route table; pods need none."""
    most = limits.TABLE_ROUTES.value
    if len(wish.on_premises) > most:
        raise RefusedError(
            limits.TABLE_ROUTES,
            where="on_premises",
            what=f"{len(wish.on_premises):,} ranges, neighbours merged, are as many routes, and Azure allows {most:,} in a route table",
            advice="name fewer, wider ranges",
            needed=len(wish.on_premises),
        )


# Counting


def _check_interface(item: ScaleSet, form: Form) -> None:
    most = limits.NIC_ADDRESSES.value
    needed = item.addresses_per_node(form)
    if needed > most:
        pods = most - 1 if form == "single" else (most - 1) // limits.BLOCK_ADDRESSES * limits.BLOCK_ADDRESSES
        raise RefusedError(
            limits.NIC_ADDRESSES,
            where=f"scale set {item.name}",
            what=f"{counted(item.pods_per_node, 'pod')} a node as {FORMS[form]} are {needed:,} private addresses of its NIC with its own, "
            f"and Azure allows {most:,}",
            advice=f"lower pods_per_node to {pods:,} or less",
            needed=needed,
        )


def _network_counts(wish: Wish, found: Topology, form: Form) -> t.Iterator[tuple[VirtualNetwork, Count]]:
    """For every VNet of the fleet's groups. Raises RefusedError."""
    clusters = {found.homes[cluster.name].key: cluster for cluster in wish.clusters}
    most = limits.VNET_ADDRESSES.value
    for network in (network for group in found.groups for network in group.networks):
        cluster = clusters.get(network.key)
        own = sum(already_there(subnet, network, cluster.scale_sets) for subnet in network.subnets) if cluster else 0
        count = Count(names=(network.name,), planned=cluster.configurations(form) if cluster else 0, others=network.used - own)
        if cluster and count.total > most:
            raise RefusedError(
                limits.VNET_ADDRESSES,
                where=f"cluster {cluster.name} in VNet {network.name}",
                what=f"{_said(count)} as {FORMS[form]}, and Azure allows {most:,} in a VNet",
                advice=_spread(
                    count.planned,
                    most,
                    f"clusters, each in a VNet of its own, with {limits.GROUP_ADDRESSES.value:,} addresses at one hub at most",
                ),
                needed=count.total,
            )
        yield network, count


def _group_count(group: Group, networks: t.Mapping[str, Count], wish: Wish, form: Form) -> Count:
    """Raises RefusedError."""
    counts = [networks[network.key] for network in group.networks]
    count = Count(
        names=(*(network.name for network in group.networks), *group.unlisted),
        planned=sum(each.planned for each in counts),
        others=sum(each.others for each in counts) + (wish.unlisted_addresses or 0 if group.unlisted else 0),
    )
    most = limits.GROUP_ADDRESSES.value
    if count.total > most:
        raise RefusedError(
            limits.GROUP_ADDRESSES,
            where=f"peered VNets {group.names}",
            what=f"{_said(count)} as {FORMS[form]}, and Azure allows {most:,} in a group of peered VNets",
            advice=_spread(count.planned, most, "hubs that are not peered with each other"),
            needed=count.total,
        )
    return count


def _said(count: Count) -> str:
    others = f" and {count.others:,} that are in use" if count.others else ""
    return f"{count.planned:,} private addresses{others}"


def _spread(planned: int, most: int, over: str) -> str:
    return f"spread the fleet over at least {max(2, math.ceil(planned / most)):,} {over}"


def _security_groups(wish: Wish, form: Form) -> dict[str, int]:
    """ipConfigurations of each application security group that is named. Raises RefusedError."""
    members: collections.Counter[str] = collections.Counter()
    for cluster in wish.clusters:
        for item in cluster.scale_sets:
            if item.application_security_group:
                members[item.application_security_group] += item.configurations(form)
    most = limits.ASG_CONFIGURATIONS.value
    for name, count in members.items():
        if count > most:
            raise RefusedError(
                limits.ASG_CONFIGURATIONS,
                where=f"application security group {name}",
                what=f"its scale sets have {count:,} ipConfigurations as {FORMS[form]}, and Azure allows {most:,}",
                advice="name several groups, or none and write the subnets' ranges into the security rules",
                needed=count,
            )
    return dict(members)
