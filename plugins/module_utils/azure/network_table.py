# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A network plan for people: plain text in columns. Scale sets that differ in name and subnet alone are one line."""

from __future__ import annotations

import itertools
import textwrap
import typing as t

from . import network_limits as limits
from .network_plan import Plan
from .network_refusals import counted
from .network_subnets import PlannedCluster, PlannedSet
from .network_wish import FORMS, Form

Row = t.Sequence[str]
_WIDTH = 120


def table(plan: Plan) -> str:
    """Without a line's end at the end."""
    nodes = sum(cluster.cluster.nodes for cluster in plan.clusters)
    sets = [item.scale_set for cluster in plan.clusters for item in cluster.sets]
    pods = sum(item.capacity * item.pods_per_node for item in sets)
    growth = sum(item.growth for item in sets)
    room = f", room for {growth:,} more" if growth else ""
    parts = [
        [
            f"{counted(nodes, 'node')}{room}, {counted(pods, 'pod address', 'pod addresses')} as {FORMS[plan.form]}: it fits.",
            *(textwrap.wrap(f"Why blocks: {plan.because}.", _WIDTH) if plan.because else []),
        ],
        _columns(
            ("Cluster", "Scale sets", "Nodes", "Growth", "Pods", "ipConfigurations", "Subnets"),
            [row for cluster in plan.clusters for row in _sets(cluster, plan.form)],
            right={2, 3, 4},
        ),
        _columns(
            ("Private addresses as Azure counts them", "Planned", "Others", "Limit"),
            [
                *((f"VNet {item.names[0]}", *_numbers(item.planned, item.others, limits.VNET_ADDRESSES)) for item in plan.networks),
                *(
                    (f"peered: {', '.join(item.names)}", *_numbers(item.planned, item.others, limits.GROUP_ADDRESSES))
                    for item in plan.groups
                ),
                *(
                    (f"application security group {name}", *_numbers(count, 0, limits.ASG_CONFIGURATIONS))
                    for name, count in plan.security_groups.items()
                ),
            ],
            right={1, 2, 3},
        ),
        _to_do(plan),
    ]
    return "\n\n".join("\n".join(part) for part in parts)


def _sets(cluster: PlannedCluster, form: Form) -> t.Iterator[Row]:
    name = cluster.cluster.name
    for _same, members in itertools.groupby(cluster.sets, _alike):
        first, *others = members
        last = others[-1] if others else first
        count, wanted = 1 + len(others), first.scale_set
        times = f"{count} x " if others else ""
        blocks = f" (1 + {counted(wanted.blocks_per_node, 'block')})" if form == "blocks" else ""
        yield (
            name,
            wanted.name + (f" .. {last.scale_set.name}" if others else ""),
            f"{times}{wanted.nodes:,}",
            f"{times}{wanted.growth:,}" if wanted.growth else "0",
            f"{wanted.pods_per_node:,}",
            f"{wanted.configurations_per_node(form):,} a node{blocks}",
            _subnets(first, last if others else None),
        )
        name = ""


def _alike(item: PlannedSet) -> tuple[object, ...]:
    wanted = item.scale_set
    # An existing subnet that several share is one line, one for each of them is not.
    return (wanted.nodes, wanted.growth, wanted.pods_per_node, item.new, None if item.new else item.subnet, item.range.prefixlen)


def _subnets(first: PlannedSet, last: PlannedSet | None) -> str:
    if not first.new:
        return f"{first.subnet} {first.range} (exists)"
    return f"new {first.range}" + (f" .. {last.range}" if last else "")


def _numbers(planned: int, others: int, limit: limits.Limit) -> Row:
    return f"{planned:,}", f"{others:,}", f"{limit.value:,}"


def _to_do(plan: Plan) -> list[str]:
    new = sum(item.new for cluster in plan.clusters for item in cluster.sets)
    lines = [f"Subnets to make: {new:,}, each with the name of its scale set." if new else "Subnets to make: none."]
    peerings = [f"{one} to {other}" for one, other in plan.missing_peerings]
    lines.append(f"Peerings to make: {', '.join(peerings) or 'none'}.")
    if plan.wish.on_premises:
        lines.append(
            f"Routes: pods need none; behind an appliance in the hub {len(plan.wish.on_premises):,} for on_premises, "
            f"of {limits.TABLE_ROUTES.value} in a route table."
        )
    if plan.form == "blocks":
        lines.append(
            "Blocks are new in Azure: scale sets take them from API version 2026-04-01 (azure-mgmt-compute 39). Try one set first."
        )
    return [part for line in lines for part in textwrap.wrap(line, _WIDTH, subsequent_indent="  ")]


def _columns(heading: Row, rows: t.Sequence[Row], *, right: t.Collection[int]) -> list[str]:
    widths = [max(len(row[index]) for row in (heading, *rows)) for index in range(len(heading))]

    def line(row: Row) -> str:
        cells = (
            cell.rjust(width) if index in right else cell.ljust(width) for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join(cells).rstrip()

    return [line(heading), "  ".join("-" * width for width in widths), *map(line, rows)]
