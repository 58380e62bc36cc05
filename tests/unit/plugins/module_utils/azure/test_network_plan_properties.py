# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Any fleet on any VNets: a plan that is made keeps every limit, judged from its document and the input alone; else a limit is named."""

from __future__ import annotations

import collections
import ipaddress
import itertools
import typing as t

import hypothesis
import wishes
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import network_document, network_limits, network_plan, network_table
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.network_refusals import RefusedError
from hypothesis import strategies as st

Document = dict[str, t.Any]
Draw = t.Callable[..., t.Any]
Range = ipaddress.IPv4Network
LIMITS = [item for item in vars(network_limits).values() if isinstance(item, network_limits.Rule)]
HUBS = ("hub-1", "hub-2", None)


def seldom(usual: st.SearchStrategy[t.Any], *others: t.Any) -> st.SearchStrategy[t.Any]:
    """``usual`` 29 times of 30, as a fleet has many parts and is refused for the first one alone."""
    return st.integers(0, 29).flatmap(lambda number: st.sampled_from(others) if number == 29 else usual)


@st.composite
def sets(draw: Draw, name: str) -> Document:
    size, most = draw(st.sampled_from([(wishes.GPU, 100), (wishes.CPU, 1000)]))
    return wishes.scale_set(
        name,
        count=draw(st.integers(1, 6)),
        nodes=draw(seldom(st.integers(1, most - 20), most, most + 1)),
        growth=draw(st.sampled_from([0, 1, 20])),
        pods_per_node=draw(seldom(st.sampled_from([1, 16, 17, 27, 30, 110]), 240, 255, 256)),
        size=size,
        infiniband=draw(seldom(st.none(), False)),
        orchestration=draw(st.sampled_from(["Uniform", "Flexible"])),
        fault_domains=draw(seldom(st.just(1), 3)),
        subnet=draw(seldom(st.none(), "old-0", "old-1")),
        application_security_group=draw(seldom(st.none(), "asg")),
    )


@st.composite
def networks(draw: Draw, name: str, number: int) -> Document:
    """A VNet of its own /12, with some old subnets, one of which may hold a set of a plan's name."""
    subnets = []
    for index in range(draw(st.integers(0, 3))):
        prefix = Range((int(ipaddress.IPv4Address(f"10.{number * 16 + index}.0.0")), draw(st.integers(16, 29))))
        owner = draw(st.sampled_from(["others", "others", f"{name}-x", f"{name}-y-01"]))
        count = draw(st.integers(0, min(60, prefix.num_addresses - 5)))
        there = wishes.of_others(count) if owner == "others" else wishes.of_set(owner, count)
        subnets.append(wishes.subnet(f"old-{index}", str(prefix), *there))
    peer = draw(seldom(st.none(), "hub-1", "hub-2", "a", "corp"))
    space = f"10.{number * 16}.0.0/{draw(st.sampled_from([12, 12, 13]))}"
    return wishes.network(name, space, subnets=subnets, peers=[peer] if peer and peer != name else [])


@st.composite
def fleets(draw: Draw) -> tuple[Document, list[Document]]:
    names = "abcd"[: draw(st.integers(1, 4))]
    clusters = []
    for name in names:
        wanted = [draw(sets(f"{name}-{letter}")) for letter in "xyz"[: draw(st.integers(1, 3))]]
        clusters.append(wishes.cluster(name, *wanted, hub=draw(st.sampled_from(HUBS))))
    old = wishes.subnet("old", "10.0.1.0/25", *wishes.of_others(9))
    hubs = [wishes.network("hub-1", "10.0.0.0/24"), wishes.network("hub-2", "10.0.1.0/24", subnets=[old])]
    given = wishes.parameters(
        *clusters,
        address_form=draw(st.sampled_from(["auto", "auto", "single", "blocks"])),
        on_premises=draw(seldom(st.just(["192.168.0.0/16"]), ["10.32.0.0/24"])),
        largest_job_nodes=draw(seldom(st.none(), 1, 100)),
        unlisted_addresses=draw(seldom(st.just(0), None, 50_000)),
    )
    return given, [draw(networks(name, number)) for number, name in enumerate(names, start=1)] + hubs


def ranges(document: Document) -> dict[str, list[Range]]:
    """The subnets of a VNet that are there, by their names."""
    return {item["name"]: [Range(item["properties"]["addressPrefix"])] for item in document["properties"]["subnets"]}


def laid_out(prefix: Range, sets: list[Document], single: bool) -> bool:
    """Whether the sets' blocks and addresses can be put into a subnet one by one, the largest first."""
    usable = list(range(4, prefix.num_addresses - 1))
    nodes = sum(item["nodes"] + item["growth"] for item in sets)
    if single:
        return len(usable) >= sum((item["nodes"] + item["growth"]) * (1 + item["pods_per_node"]) for item in sets)
    blocks = sum((item["nodes"] + item["growth"]) * -(-item["pods_per_node"] // 16) for item in sets)
    whole = [start for start in range(0, prefix.num_addresses, 16) if start >= 4 and start + 15 < prefix.num_addresses - 1]
    return len(whole) >= blocks and len(usable) - 16 * blocks >= nodes


def judged(drawn: tuple[Document, list[Document]]) -> network_plan.Plan | RefusedError:
    given, documents = drawn
    try:
        return wishes.plan(given, *documents)
    except RefusedError as error:
        return error


@hypothesis.given(fleets())
def test_a_refusal_names_a_limit_that_is_broken(drawn: tuple[Document, list[Document]]) -> None:
    error = judged(drawn)
    if not isinstance(error, RefusedError):
        return
    hypothesis.event(f"refused: {error.limit.name}")
    assert error.limit in LIMITS and str(error) == f"{error.where}: {error.what}; {error.advice}"
    # The number of subnet_addresses is what Azure keeps of a subnet; how large that is is in the words.
    if isinstance(error.limit, network_limits.Limit) and error.needed is not None and error.limit is not network_limits.SUBNET_ADDRESSES:
        assert error.needed > error.limit.value


@hypothesis.given(fleets())
def test_a_plan_keeps_every_limit(drawn: tuple[Document, list[Document]]) -> None:
    _given, documents = drawn
    made = judged(drawn)
    if isinstance(made, RefusedError):
        return
    hypothesis.event(f"planned: {made.form}")
    assert network_table.table(made)
    plan = network_document.to_document(made)
    single = plan["address_form"] == "single"
    members: collections.Counter[str] = collections.Counter()
    for cluster in plan["clusters"]:
        network = next(document for document in documents if document["name"] == cluster["virtual_network"])
        space = [Range(item) for item in network["properties"]["addressSpace"]["addressPrefixes"]]
        placed = ranges(network)
        by_subnet: dict[str, list[Document]] = collections.defaultdict(list)
        for item in cluster["scale_sets"]:
            where = item["subnet"]
            assert where["new"] is (where["name"] not in ranges(network))
            placed[where["name"]] = [Range(where["prefix"])]
            by_subnet[where["name"]].append(item)
            assert 1 + item["pods_per_node"] <= 256
            assert single or item["pods_per_node"] <= 16 * item["blocks_per_node"] <= 255
            nodes = item["nodes"] + item["growth"]
            assert nodes <= (100 if item["infiniband"] else 1000)
            assert item["ip_configurations"] == nodes * (1 + (item["pods_per_node"] if single else item["blocks_per_node"]))
            members[item["application_security_group"] or ""] += item["ip_configurations"]
        everything = [prefix for prefixes in placed.values() for prefix in prefixes]
        assert not any(one.overlaps(other) for one, other in itertools.combinations(everything, 2))
        assert all(any(prefix.subnet_of(whole) for whole in space) for prefix in everything)
        for name, items in by_subnet.items():
            assert laid_out(placed[name][0], items, single)
    del members[""]
    assert all(count <= 4_000 for count in members.values())
    assert {item["name"]: item["ip_configurations"] for item in plan["application_security_groups"]} == members
    for counts, most in ((plan["virtual_networks"], 65_536), (plan["peered_groups"], 128_000)):
        assert all(item["planned"] + item["others"] == item["total"] <= most for item in counts)
    assert sum(item["planned"] for item in plan["peered_groups"]) == plan["totals"]["ip_configurations"]
