# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each limit at its number and one above it."""

from __future__ import annotations

import ipaddress
import typing as t

import pytest
import wishes
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import network_limits as limits
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.network_refusals import RefusedError

Document = dict[str, t.Any]
WIDE = wishes.network("a", "10.0.0.0/8")


def one(*sets: Document, **given: t.Any) -> Document:
    """One cluster in VNet a, at no hub."""
    return wishes.parameters(wishes.cluster("a", *sets), **given)


def refused(given: Document, *networks: Document) -> RefusedError:
    with pytest.raises(RefusedError) as error:
        wishes.plan(given, *networks)
    return error.value


def check(limit: limits.Rule, given: Document, *networks: Document, needed: int | None = None) -> None:
    """The plan breaks ``limit`` with ``needed``; None is a plan that fits."""
    if needed is None:
        wishes.plan(given, *networks)
        return
    error = refused(given, *networks)
    assert (error.limit, error.needed) == (limit, needed), str(error)


# The published cluster


def test_7500_nodes_of_27_pods_fit_as_blocks() -> None:
    plan = wishes.plan(
        one(wishes.scale_set(count=75, nodes=100, size=wishes.GPU), largest_job_nodes=100), wishes.network("a", "10.16.0.0/12")
    )
    assert plan.form == "blocks" and "210,000 private addresses" in plan.because and "at least 4 clusters" in plan.because
    sets = plan.clusters[0].sets
    assert len(sets) == 75 and all(item.new and item.subnet == item.scale_set.name and item.range.prefixlen == 20 for item in sets)
    assert next(iter(ipaddress.collapse_addresses(item.range for item in sets))) == ipaddress.IPv4Network("10.16.0.0/14")
    assert [count.total for count in (*plan.networks, *plan.groups)] == [22_500, 22_500]


def test_202500_single_addresses_do_not_fit_one_mesh() -> None:
    clusters = [wishes.cluster(name, wishes.scale_set(f"gpu-{name}", count=19, nodes=100, pods_per_node=26), hub="hub") for name in "abcd"]
    networks = [wishes.network(name, f"10.{16 * number}.0.0/12") for number, name in enumerate("abcd", start=1)]
    hub = wishes.network("hub", "10.0.0.0/24")
    error = refused(wishes.parameters(*clusters, address_form="single"), hub, *networks)
    assert error.limit is limits.GROUP_ADDRESSES and error.needed == 4 * 19 * 100 * 27
    assert "address_form: auto" in error.advice and "2 hubs that are not peered" in error.advice


def test_202500_single_addresses_fit_four_vnets_at_two_hubs() -> None:
    clusters = [
        wishes.cluster(name, wishes.scale_set(f"gpu-{name}", count=19, nodes=100, pods_per_node=26), hub=hub)
        for name, hub in zip("abcd", "hhii", strict=True)
    ]
    networks = [wishes.network(name, f"10.{16 * number}.0.0/12") for number, name in enumerate("abcd", start=1)]
    plan = wishes.plan(wishes.parameters(*clusters), *networks, wishes.network("h", "10.0.0.0/24"), wishes.network("i", "10.0.1.0/24"))
    assert plan.form == "single" and [count.total for count in plan.groups] == [102_600, 102_600]


# Scale sets and jobs


@pytest.mark.parametrize(
    ("given", "limit", "most"),
    [
        ({"size": wishes.GPU}, limits.INFINIBAND_NODES, 100),
        ({"size": wishes.GPU, "orchestration": "Flexible"}, limits.INFINIBAND_NODES, 100),
        ({"size": wishes.GPU, "infiniband": False}, limits.SET_NODES, 1000),
        ({"size": wishes.CPU}, limits.SET_NODES, 1000),
        ({"size": wishes.GPU, "infiniband": False, "orchestration": "Flexible"}, limits.SET_NODES, 1000),
        ({"size": wishes.GPU, "infiniband": False, "orchestration": "Flexible", "fault_domains": 2}, limits.SPREAD_GPU_SET_NODES, 200),
        ({"size": wishes.CPU, "orchestration": "Flexible", "fault_domains": 3}, limits.SET_NODES, 1000),
        ({"size": wishes.GPU, "infiniband": False, "fault_domains": 5}, limits.SET_NODES, 1000),
    ],
)
def test_a_scale_set_has_a_size(given: Document, limit: limits.Rule, most: int) -> None:
    check(limit, one(wishes.scale_set(nodes=most, pods_per_node=1, **given)), WIDE)
    check(limit, one(wishes.scale_set(nodes=most + 1, pods_per_node=1, **given)), WIDE, needed=most + 1)
    check(limit, one(wishes.scale_set(nodes=1, growth=most, pods_per_node=1, **given)), WIDE, needed=most + 1)


@pytest.mark.parametrize(
    ("domain", "nodes", "limit"), [(300, 300, None), (300, 301, limits.INFINIBAND_NODES), (5000, 1001, limits.SET_NODES)]
)
def test_an_infiniband_domain_may_have_been_raised(domain: int, nodes: int, limit: limits.Rule | None) -> None:
    given = one(wishes.scale_set(nodes=nodes, size=wishes.GPU), infiniband_domain_nodes=domain)
    check(limit or limits.SET_NODES, given, WIDE, needed=nodes if limit else None)


@pytest.mark.parametrize(
    ("sets", "job", "limit"),
    [
        ([{"nodes": 100, "size": wishes.GPU}], 100, None),
        ([{"nodes": 100, "size": wishes.GPU, "count": 2}], 101, limits.INFINIBAND_NODES),
        # Growth is not there yet.
        ([{"nodes": 60, "growth": 40, "size": wishes.GPU}], 60, None),
        ([{"nodes": 60, "growth": 40, "size": wishes.GPU}], 61, limits.LARGEST_JOB),
        ([{"nodes": 60, "size": wishes.GPU}, {"nodes": 500}], 100, limits.LARGEST_JOB),
        # Over Ethernet a job may use the whole cluster.
        ([{"nodes": 500, "count": 2, "pods_per_node": 1}], 1000, None),
        ([{"nodes": 500, "count": 2, "pods_per_node": 1}], 1001, limits.LARGEST_JOB),
    ],
)
def test_the_largest_job_has_a_place(sets: list[Document], job: int, limit: limits.Rule | None) -> None:
    given = one(*(wishes.scale_set(f"set-{number}", **each) for number, each in enumerate(sets)), largest_job_nodes=job)
    check(limit or limits.LARGEST_JOB, given, WIDE, needed=job if limit else None)


def test_a_job_does_not_span_clusters() -> None:
    clusters = [wishes.cluster(name, wishes.scale_set(f"set-{name}", nodes=50)) for name in "ab"]
    networks = [wishes.network("a", "10.1.0.0/16"), wishes.network("b", "10.2.0.0/16")]
    wishes.plan(wishes.parameters(*clusters, largest_job_nodes=50), *networks)
    error = refused(wishes.parameters(*clusters, largest_job_nodes=51), *networks)
    assert error.limit is limits.LARGEST_JOB and "clusters do not reach each other" in str(error)


@pytest.mark.parametrize(("count", "needed"), [(400, None), (401, 401)])
def test_a_route_table_has_400_routes(count: int, needed: int | None) -> None:
    ranges = [f"172.{16 + number // 128}.{number % 128 * 2}.0/24" for number in range(count)]
    check(limits.TABLE_ROUTES, one(wishes.scale_set(), on_premises=ranges), WIDE, needed=needed)


# Counts


@pytest.mark.parametrize(
    ("form", "pods", "needed"),
    [("single", 255, None), ("single", 256, 257), ("auto", 256, 257), ("blocks", 240, None), ("blocks", 241, 257)],
)
def test_a_nic_has_256_addresses(form: str, pods: int, needed: int | None) -> None:
    check(limits.NIC_ADDRESSES, one(wishes.scale_set(pods_per_node=pods), address_form=form), WIDE, needed=needed)


# 65,536 = 256 nodes x 256 addresses.
@pytest.mark.parametrize(("others", "form", "needed"), [(0, "single", None), (1, "single", 65_537), (1, "auto", None)])
def test_a_vnet_has_65536_addresses(others: int, form: str, needed: int | None) -> None:
    network = wishes.network("a", "10.0.0.0/8", subnets=[wishes.subnet("other", "10.0.0.0/24", *wishes.of_others(others))])
    given = one(wishes.scale_set(nodes=256, pods_per_node=255 if form == "single" else 240), address_form=form)
    check(limits.VNET_ADDRESSES, given, network, needed=needed)


def test_blocks_count_as_one_each() -> None:
    """65,536 = 1,000 nodes x 16 entries x 4 sets, and 1,536 others."""
    for others, needed in ((1_536, None), (1_537, 65_537)):
        network = wishes.network("a", "10.0.0.0/8", subnets=[wishes.subnet("other", "10.0.0.0/20", *wishes.of_others(others))])
        check(limits.VNET_ADDRESSES, one(wishes.scale_set(count=4, nodes=1_000, pods_per_node=240)), network, needed=needed)


def hubbed(pods: tuple[int, int] = (127, 127), **given: t.Any) -> Document:
    """Two clusters of 500 nodes at one hub: 128,000 private addresses with 127 pods a node."""
    sets = [wishes.scale_set(f"set-{name}", nodes=500, pods_per_node=each) for name, each in zip("ab", pods, strict=True)]
    return wishes.parameters(wishes.cluster("a", sets[0], hub="hub"), wishes.cluster("b", sets[1], hub="hub"), **given)


def mesh(others: int = 0, peers: t.Sequence[str] = ()) -> list[Document]:
    hub = wishes.network("hub", "10.0.0.0/16", subnets=[wishes.subnet("people", "10.0.0.0/20", *wishes.of_others(others))], peers=peers)
    return [hub, wishes.network("a", "10.16.0.0/12"), wishes.network("b", "10.32.0.0/12")]


def test_a_group_of_peered_vnets_has_128000_addresses() -> None:
    for others, needed in ((0, None), (1, 128_001)):
        check(limits.GROUP_ADDRESSES, hubbed(address_form="single"), *mesh(others), needed=needed)
    assert wishes.plan(hubbed(), *mesh(0)).form == "single"
    assert wishes.plan(hubbed(), *mesh(1)).form == "blocks"


def test_what_no_document_shows_counts_too() -> None:
    for others, needed in ((0, None), (1, 128_001)):
        given = hubbed(address_form="single", unlisted_addresses=others)
        check(limits.GROUP_ADDRESSES, given, *mesh(peers=["corp"]), needed=needed)
    # Where all is shown, it says nothing.
    check(limits.GROUP_ADDRESSES, hubbed(address_form="single", unlisted_addresses=9), *mesh())


def test_a_refusal_of_both_forms_names_both() -> None:
    clusters = [wishes.cluster("a", wishes.scale_set(count=5, nodes=1000, pods_per_node=240))]
    error = refused(wishes.parameters(*clusters), WIDE)
    assert error.limit is limits.VNET_ADDRESSES and error.needed == 5 * 1000 * 16
    assert "80,000 private addresses as /28 blocks" in str(error) and "single addresses break vnet_addresses" in str(error)


@pytest.mark.parametrize(("others", "form", "needed"), [(0, "single", None), (1, "single", 4_028), (1, "auto", None)])
def test_an_application_security_group_has_4000_members(others: int, form: str, needed: int | None) -> None:
    """4,000 = 125 nodes x 32."""
    sets = [wishes.scale_set("set-a", nodes=125, pods_per_node=31, application_security_group="train")]
    sets += [wishes.scale_set("set-b", nodes=1, application_security_group="train")] * others
    check(limits.ASG_CONFIGURATIONS, one(*sets, address_form=form), WIDE, needed=needed)


def test_members_of_several_security_groups_are_counted_apart() -> None:
    sets = [wishes.scale_set(f"set-{name}", nodes=100, pods_per_node=31, application_security_group=name) for name in ("x", "y")]
    assert wishes.plan(one(*sets), WIDE).security_groups == {"x": 3_200, "y": 3_200}


# Subnets


@pytest.mark.parametrize(("there", "needed"), [(2_998, None), (2_999, 3_001)])
def test_a_vnet_has_3000_subnets(there: int, needed: int | None) -> None:
    first = int(ipaddress.IPv4Address("10.0.0.0"))
    subnets = [wishes.subnet(f"s{number}", f"{ipaddress.IPv4Address(first + 8 * number)}/29") for number in range(there)]
    network = wishes.network("a", "10.0.0.0/8", subnets=subnets)
    check(limits.VNET_SUBNETS, one(wishes.scale_set(count=2)), network, needed=needed)


@pytest.mark.parametrize(("space", "needed"), [("10.0.0.0/22", None), ("10.0.0.0/23", 1_024)])
def test_new_subnets_need_free_ranges(space: str, needed: int | None) -> None:
    check(limits.ADDRESS_SPACE, one(wishes.scale_set(count=2)), wishes.network("a", space), needed=needed)


def test_a_refusal_for_space_says_how_much_to_add() -> None:
    error = refused(one(wishes.scale_set(count=3)), wishes.network("a", "10.0.0.0/23"))
    assert "3 new subnets of /23, 1,536 addresses, do not fit its free ranges (512 addresses, the largest 10.0.0.0/23)" in str(error)
    assert "for example a /21" in error.advice


def living(count: int, others: int, **given: t.Any) -> tuple[Document, Document]:
    """A set of 8 nodes, 224 addresses, in a subnet of 251; ``count`` of its ipConfigurations are there."""
    subnets = [wishes.subnet("nodes", "10.0.0.0/24", *wishes.of_set("gpu", count), *wishes.of_others(others))]
    return one(wishes.scale_set(nodes=8, **given)), wishes.network("a", "10.0.0.0/16", subnets=subnets)


@pytest.mark.parametrize(("count", "others", "needed"), [(0, 27, None), (0, 28, 224), (216, 27, None), (216, 28, 224)])
def test_a_named_subnet_has_room_beside_others(count: int, others: int, needed: int | None) -> None:
    given, network = living(count, others, subnet="Nodes")
    check(limits.SUBNET_ADDRESSES, given, network, needed=needed)


def test_a_set_stays_where_it_is() -> None:
    planned = wishes.plan(*living(3, 0)).clusters[0].sets[0]
    assert (planned.subnet, str(planned.range), planned.new) == ("nodes", "10.0.0.0/24", False)


def test_its_own_addresses_are_counted_once() -> None:
    plan = wishes.plan(*living(200, 7))
    assert (plan.networks[0].planned, plan.networks[0].others) == (224, 7)


def test_a_scale_set_has_one_subnet() -> None:
    given, network = living(3, 0, subnet="more")
    network["properties"]["subnets"].append(wishes.subnet("more", "10.0.4.0/22"))
    error = refused(given, network)
    assert error.limit is limits.SET_SUBNET and "it has its addresses in subnet nodes" in str(error)


def test_a_subnet_that_is_not_there_is_named() -> None:
    error = refused(*living(0, 0, subnet="nodez"))
    assert error.limit is limits.SET_SUBNET and "VNet a has no subnet nodez; name one that exists (nodes)" in str(error)


def test_pods_have_a_subnet_with_one_range() -> None:
    network = wishes.network("a", "10.0.0.0/16", subnets=[wishes.subnet("wide", None, prefixes=["10.0.0.0/24", "10.0.1.0/24"])])
    assert refused(one(wishes.scale_set(subnet="wide")), network).limit is limits.SUBNET_PREFIXES


def test_sets_may_share_a_subnet_that_holds_all() -> None:
    network = wishes.network("a", "10.0.0.0/16", subnets=[wishes.subnet("nodes", "10.0.0.0/23")])
    check(limits.SUBNET_ADDRESSES, one(*(wishes.scale_set(f"s{number}", nodes=9, subnet="nodes") for number in (1, 2))), network)
    check(
        limits.SUBNET_ADDRESSES, one(*(wishes.scale_set(f"s{number}", nodes=10, subnet="nodes") for number in (1, 2))), network, needed=560
    )


def test_a_refusal_for_room_says_how_wide() -> None:
    error = refused(*living(0, 28, subnet="nodes"))
    assert "224 addresses do not fit 251 addresses (5 of 256 are Azure's), of which others use 28; widen it to /23" in str(error)


@pytest.mark.parametrize("orchestration", ["Uniform", "Flexible"])
@pytest.mark.parametrize("form", ["single", "blocks"])
def test_a_plan_that_has_been_carried_out_stays_the_same(orchestration: str, form: str) -> None:
    given = one(wishes.scale_set("gpu", nodes=9, growth=3, orchestration=orchestration), address_form=form)
    first = wishes.plan(given, wishes.network("a", "10.0.0.0/16"))
    planned = first.clusters[0].sets[0]
    count = 9 * planned.scale_set.configurations_per_node(first.form)
    there = wishes.of_set("gpu", count) if orchestration == "Uniform" else wishes.of_others(count)
    second = wishes.plan(given, wishes.network("a", "10.0.0.0/16", subnets=[wishes.subnet("gpu", str(planned.range), *there)]))
    assert second.clusters[0].sets[0].range == planned.range and not second.clusters[0].sets[0].new
    assert second.networks == first.networks
