# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What people see: a small plan whole, and the documentation's."""

from __future__ import annotations

import pathlib
import re

import wishes
import yaml
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import network_limits, network_table

DOCS = pathlib.Path(__file__).parents[5] / "docs"

SMALL = """\
59 nodes, room for 5 more, 1,728 pod addresses as single addresses: it fits.

Cluster  Scale sets         Nodes  Growth  Pods  ipConfigurations  Subnets
-------  ----------------  ------  ------  ----  ----------------  ------------------------------
a        gpu-01 .. gpu-02  2 x 10   2 x 2    27  28 a node         new 10.1.4.0/23 .. 10.1.6.0/23
         old                    9       0    27  28 a node         nodes 10.1.0.0/22 (exists)
b        big                   30       1    27  28 a node         new 10.2.0.0/22

Private addresses as Azure counts them  Planned  Others    Limit
--------------------------------------  -------  ------  -------
VNet a                                      924       3   65,536
VNet b                                      868       0   65,536
peered: a, hub                              924       3  128,000
peered: b                                   868       0  128,000
application security group train            868       0    4,000

Subnets to make: 3, each with the name of its scale set.
Peerings to make: hub to a.
Routes: pods need none; behind an appliance in the hub 1 for on_premises, of 400 in a route table."""


def test_a_small_plan() -> None:
    sets = [wishes.scale_set("gpu", count=2, growth=2), wishes.scale_set("old", nodes=9)]
    big = wishes.scale_set("big", nodes=30, growth=1, application_security_group="train")
    used = wishes.subnet("nodes", "10.1.0.0/22", *wishes.of_set("old", 5), *wishes.of_others(3))
    plan = wishes.plan(
        wishes.parameters(wishes.cluster("a", *sets, hub="hub"), wishes.cluster("b", big), on_premises=["192.168.0.0/16"]),
        wishes.network("a", "10.1.0.0/16", subnets=[used], peers=["hub"]),
        wishes.network("hub", "10.0.0.0/24"),
        wishes.network("b", "10.2.0.0/16"),
    )
    assert network_table.table(plan) == SMALL


def test_the_documentation_shows_what_the_example_gives() -> None:
    given = yaml.safe_load((DOCS / "examples" / "network_plan.yml").read_text(encoding="utf-8"))
    clusters = [
        wishes.cluster(
            item["name"], *(wishes.scale_set(**entry) for entry in item["scale_sets"]), hub=item["hub"], network=item["virtual_network"]
        )
        for item in given["network_plan_fleet"]["clusters"]
    ]
    wanted = wishes.parameters(
        *clusters, on_premises=given["network_plan_on_premises"], largest_job_nodes=given["network_plan_largest_job_nodes"]
    )
    plan = wishes.plan(wanted, *given["network_plan_virtual_networks"])
    assert f"```\n{network_table.table(plan)}\n```" in (DOCS / "network-plan.md").read_text(encoding="utf-8")


def test_the_documentation_names_every_limit_with_its_number() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| ([\d,]*) ?\|", (DOCS / "network-plan.md").read_text(encoding="utf-8"), re.MULTILINE))
    limits = [item for item in vars(network_limits).values() if isinstance(item, network_limits.Rule)]
    assert {item.name: f"{item.value:,}" if isinstance(item, network_limits.Limit) else "" for item in limits} == rows
