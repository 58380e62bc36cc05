# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import pytest
import wishes
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import network_limits, network_wish
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.errors import AzureError
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.network_refusals import RefusedError
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.network_topology import Topology, topology
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.virtual_networks import virtual_network

Document = dict[str, t.Any]
HUB = wishes.network("hub", "10.0.0.0/24")
A, B = wishes.network("a", "10.1.0.0/16"), wishes.network("b", "10.2.0.0/16")


def two(hub: str | None = "hub", other: str | None = "hub", **given: t.Any) -> Document:
    """Clusters a and b in VNets of their names."""
    sets = [wishes.scale_set("set-a"), wishes.scale_set("set-b")]
    return wishes.parameters(wishes.cluster("a", sets[0], hub=hub), wishes.cluster("b", sets[1], hub=other), **given)


def lie(given: Document, *networks: Document) -> Topology:
    return topology(network_wish.wish(given), [virtual_network(document) for document in networks])


def groups(found: Topology) -> list[str]:
    return [group.names for group in found.groups]


def test_what_is_not_there_of_hub_and_spokes_is_to_be_made() -> None:
    found = lie(two(), HUB, A, B)
    assert [(one.name, other.name) for one, other in found.missing] == [("hub", "a"), ("a", "hub"), ("hub", "b"), ("b", "hub")]
    assert groups(found) == ["hub, a, b"]


def test_what_is_there_is_not_made_again() -> None:
    networks = [
        wishes.network("hub", "10.0.0.0/24", peers=["a", "b"]),
        wishes.network("a", "10.1.0.0/16", peers=["hub"]),
        wishes.network("b", "10.2.0.0/16"),
    ]
    assert [(one.name, other.name) for one, other in lie(two(), *networks).missing] == [("b", "hub")]


def test_clusters_at_two_hubs_and_without_one_are_groups_of_their_own() -> None:
    assert groups(lie(two("hub", "hub2"), HUB, A, B, wishes.network("hub2", "10.9.0.0/24"))) == ["hub, a", "b, hub2"]
    assert groups(lie(two(None, None), HUB, A, B)) == ["a", "b"]


def test_what_is_peered_further_on_is_of_the_group_and_what_is_not_peered_is_left_alone() -> None:
    networks = [
        wishes.network("hub", "10.0.0.0/24", peers=["far"]),
        A,
        B,
        wishes.network("far", "10.8.0.0/16"),
        wishes.network("x", "10.1.0.0/16"),
    ]
    assert groups(lie(two(), *networks)) == ["hub, a, b, far"]


def test_a_vnet_is_found_by_name_and_by_id() -> None:
    given = two(wishes.identifier("HUB"))
    given["fleet"]["clusters"][0]["virtual_network"] = "A"
    assert lie(given, HUB, A, B).homes["a"].name == "a"


@pytest.mark.parametrize(
    ("networks", "said"),
    [
        ([HUB, A], "cluster b: virtual_network: there is no VNet b in virtual_networks; correct it (there are: hub, a)"),
        (
            [wishes.network("hubb", "10.0.0.0/24"), A, B],
            "cluster a: hub: there is no VNet hub in virtual_networks; correct it (did you mean hubb?)",
        ),
        ([HUB, A, B, {**A, "id": "/other/a"}], "cluster a: virtual_network: there are 2 VNets a; give the id"),
    ],
)
def test_a_vnet_that_is_not_there_is_named(networks: list[Document], said: str) -> None:
    with pytest.raises(AzureError) as error:
        lie(two(), *networks)
    assert said in str(error.value)


def refused(given: Document, *networks: Document) -> RefusedError:
    with pytest.raises(RefusedError) as error:
        lie(given, *networks)
    return error.value


@pytest.mark.parametrize(
    ("change", "networks", "said"),
    [
        ({"virtual_network": "a"}, [HUB, A, B], "cluster b: it shares VNet a with cluster a"),
        ({"hub": "a"}, [HUB, A, B], "cluster b: its hub a is the VNet of cluster a"),
        ({}, [HUB, wishes.network("a", "10.1.0.0/16", peers=["b"]), B], "cluster a: its VNet a is peered with b, the VNet of cluster b"),
        ({}, [HUB, A, wishes.network("b", "10.2.0.0/16", peers=["a"])], "cluster b: its VNet b is peered with a, the VNet of cluster a"),
    ],
)
def test_clusters_are_kept_apart(change: Document, networks: list[Document], said: str) -> None:
    given = two()
    given["fleet"]["clusters"][1].update(change)
    error = refused(given, *networks)
    assert error.limit is network_limits.CLUSTERS_APART and said in str(error)


@pytest.mark.parametrize(
    ("given", "networks", "said"),
    [
        (two(), [HUB, A, wishes.network("b", "10.1.128.0/17")], "VNet b 10.1.128.0/17: it overlaps VNet a 10.1.0.0/16"),
        (two(None, None), [A, wishes.network("b", "10.0.0.0/8")], "VNet a 10.1.0.0/16: it overlaps VNet b 10.0.0.0/8"),
        (two(), [HUB, A, wishes.network("b", "10.2.0.0/16", "10.1.0.0/16")], "it overlaps VNet a 10.1.0.0/16"),
        (two(on_premises=["10.2.3.0/24"]), [HUB, A, B], "on_premises 10.2.3.0/24: it overlaps VNet b 10.2.0.0/16"),
        (two(on_premises=["10.0.0.0/8"]), [HUB, A, B], "VNet hub 10.0.0.0/24: it overlaps on_premises 10.0.0.0/8"),
        (
            two(unlisted_addresses=0),
            [wishes.network("hub", "10.0.0.0/24", peers=["corp 10.2.0.0/20"]), A, B],
            "VNet corp (peered with hub) 10.2.0.0/20: it overlaps VNet b 10.2.0.0/16",
        ),
    ],
)
def test_an_address_means_one_machine(given: Document, networks: list[Document], said: str) -> None:
    error = refused(given, *networks)
    assert error.limit is network_limits.OVERLAP and said in str(error)


def test_neighbours_and_what_is_said_twice_do_not_overlap() -> None:
    networks = [
        wishes.network("hub", "10.0.0.0/24", peers=["a 10.1.0.0/16", "corp 10.3.0.0/16"]),
        wishes.network("a", "10.1.0.0/16", peers=["hub 10.0.0.0/24"]),
        wishes.network("b", "10.2.0.0/16", peers=["corp 10.3.0.0/16"]),
    ]
    found = lie(two(unlisted_addresses=0, on_premises=["10.4.0.0/16", "10.0.1.0/24"]), *networks)
    assert groups(found) == ["hub, a, b, corp"]


@pytest.mark.parametrize(("there", "fits"), [(498, True), (499, False)])
def test_a_hub_has_500_peerings(there: int, fits: bool) -> None:
    hub = wishes.network("hub", "10.0.0.0/24", peers=[f"spoke-{number}" for number in range(there)])
    given = two(unlisted_addresses=0)
    if fits:
        assert len(lie(given, hub, A, B).missing) == 4
        return
    error = refused(given, hub, A, B)
    assert error.limit is network_limits.VNET_PEERINGS and error.needed == 501
    assert str(error).startswith("VNet hub: it has 499 peerings and needs 501 for the clusters, and Azure allows 500;")


def test_a_vnet_without_a_document_is_not_taken_for_an_empty_one() -> None:
    hub = wishes.network("hub", "10.0.0.0/24", peers=["corp"])
    error = refused(two(), hub, A, B)
    assert error.limit is network_limits.GROUP_ADDRESSES and "how many addresses corp use" in str(error)
    assert "unlisted_addresses" in error.advice
    assert groups(lie(two(unlisted_addresses=5), hub, A, B)) == ["hub, a, b, corp"]
