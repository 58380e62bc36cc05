# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A network plan for machines: plain JSON data. Its shape is a promise, described in the module alias_plan and in docs/network-plan.md."""

from __future__ import annotations

import typing as t

from . import network_limits as limits
from .network_plan import Count, Plan
from .network_subnets import PlannedCluster, PlannedSet
from .network_wish import Form

# Raised with every change that a reader of the last one could not bear.
FORMAT = 1
Document = dict[str, t.Any]


def to_document(plan: Plan) -> Document:
    sets = [item.scale_set for cluster in plan.clusters for item in cluster.sets]
    return {
        "format": FORMAT,
        "address_form": plan.form,
        "because": plan.because,
        "totals": {
            "clusters": len(plan.clusters),
            "scale_sets": len(sets),
            "nodes": sum(item.nodes for item in sets),
            "growth": sum(item.growth for item in sets),
            "pod_addresses": sum(item.capacity * item.pods_per_node for item in sets),
            "ip_configurations": sum(item.configurations(plan.form) for item in sets),
        },
        "clusters": [_cluster(item, plan.form) for item in plan.clusters],
        "virtual_networks": [_count(item, limits.VNET_ADDRESSES) for item in plan.networks],
        "peered_groups": [_count(item, limits.GROUP_ADDRESSES) for item in plan.groups],
        "application_security_groups": [
            {"name": name, "ip_configurations": count, "limit": limits.ASG_CONFIGURATIONS.value}
            for name, count in plan.security_groups.items()
        ],
        "peerings_to_make": [{"from": one, "to": other} for one, other in plan.missing_peerings],
        "on_premises_routes": len(plan.wish.on_premises),
    }


def _cluster(item: PlannedCluster, form: Form) -> Document:
    return {
        "name": item.cluster.name,
        "virtual_network": item.network.name,
        "hub": item.cluster.hub or None,
        "scale_sets": [_set(each, form) for each in item.sets],
    }


def _set(item: PlannedSet, form: Form) -> Document:
    wanted = item.scale_set
    return {
        "name": wanted.name,
        "size": wanted.size,
        "orchestration": wanted.orchestration,
        "infiniband": wanted.infiniband,
        "nodes": wanted.nodes,
        "growth": wanted.growth,
        "pods_per_node": wanted.pods_per_node,
        "blocks_per_node": wanted.blocks_per_node if form == "blocks" else 0,
        "ip_configurations_per_node": wanted.configurations_per_node(form),
        "ip_configurations": wanted.configurations(form),
        "application_security_group": wanted.application_security_group or None,
        "subnet": {"name": item.subnet, "prefix": str(item.range), "new": item.new},
    }


def _count(item: Count, limit: limits.Limit) -> Document:
    return {"names": list(item.names), "planned": item.planned, "others": item.others, "total": item.total, "limit": limit.value}
