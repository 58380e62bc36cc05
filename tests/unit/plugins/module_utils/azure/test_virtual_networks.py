# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ipaddress
import typing as t

import pytest
import wishes
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.errors import AzureError
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.virtual_networks import virtual_network


def test_a_document_becomes_a_record() -> None:
    found = virtual_network(
        wishes.network(
            "A",
            "10.1.0.0/16",
            "fd00::/48",
            subnets=[wishes.subnet("nodes", "10.1.0.0/20", *wishes.of_set("GPU", 3), *wishes.of_others(2))],
            peers=["hub 10.0.0.0/24"],
        )
    )
    assert found.key == wishes.identifier("A").lower() and found.name == "A"
    assert found.ranges == (ipaddress.IPv4Network("10.1.0.0/16"),)
    assert found.subnets[0].ranges == (ipaddress.IPv4Network("10.1.0.0/20"),)
    assert found.subnets[0].used == {"fleet/gpu": 3, "": 2} and found.used == 5
    assert found.by_scale_set == {"gpu": {"nodes": 3}}
    assert [(peering.name, peering.ranges) for peering in found.peerings] == [("hub", (ipaddress.IPv4Network("10.0.0.0/24"),))]


def test_what_the_command_line_prints_is_the_same() -> None:
    document = wishes.network("a", "10.1.0.0/16", subnets=[wishes.subnet("nodes", "10.1.0.0/20", *wishes.of_others(1))], peers=["hub"])

    def flat(part: t.Any) -> t.Any:
        if isinstance(part, list):
            return [flat(each) for each in part]
        if not isinstance(part, dict):
            return part
        return {key: flat(value) for key, value in {**part, **part.get("properties", {})}.items() if key != "properties"}

    assert virtual_network(flat(document)) == virtual_network(document)


def test_a_vnet_to_be_made_has_a_name_and_a_range() -> None:
    found = virtual_network({"name": "New", "addressSpace": {"addressPrefixes": ["10.1.0.0/16"]}})
    assert (found.key, found.name, found.subnets, found.peerings, found.used) == ("new", "New", (), (), 0)


def test_subnets_may_have_several_ranges_and_null_lists() -> None:
    document = wishes.network("a", "10.1.0.0/16", subnets=[wishes.subnet("wide", None, prefixes=["10.1.0.0/24", "10.1.4.0/24"])])
    document["properties"]["subnets"][0]["properties"]["ipConfigurations"] = None
    document["properties"]["virtualNetworkPeerings"] = None
    assert len(virtual_network(document).subnets[0].ranges) == 2


def test_a_set_of_one_name_in_two_resource_groups_is_nobodys() -> None:
    subnets = [
        wishes.subnet("one", "10.1.0.0/24", *wishes.of_set("gpu", 1, "a"), *wishes.of_set("cpu", 1)),
        wishes.subnet("two", "10.1.1.0/24", *wishes.of_set("gpu", 1, "b"), *wishes.of_set("cpu", 2)),
    ]
    assert virtual_network(wishes.network("a", "10.1.0.0/16", subnets=subnets)).by_scale_set == {"cpu": {"one": 1, "two": 2}}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "has no name"),
        ({"name": "a", "address_prefixes": ["10.1.0.0/16"], "subnets": []}, "VNet a: its document has no addressSpace.addressPrefixes"),
        (wishes.network("a", "10.1.0.0/99"), "VNet a: '10.1.0.0/99' is not an address range"),
        (wishes.network("a", "10.1.0.0/16", subnets=[wishes.subnet("s", "10.1.0.1/24")]), "VNet a, subnet s: '10.1.0.1/24'"),
        (
            {"name": "a", "addressSpace": {"addressPrefixes": ["10.1.0.0/16"]}, "virtualNetworkPeerings": [{"name": "p"}]},
            "peering p names no remoteVirtualNetwork.id",
        ),
    ],
)
def test_another_shape_is_one_message(document: dict[str, t.Any], said: str) -> None:
    with pytest.raises(AzureError) as error:
        virtual_network(document)
    assert said in str(error.value)
