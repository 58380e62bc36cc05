# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ipaddress
import typing as t

import pytest
import wishes
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import network_wish, sizes
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.errors import AzureError


def names(count: int) -> list[str]:
    wish = network_wish.wish(wishes.parameters(wishes.cluster("a", wishes.scale_set(count=count))))
    return [item.name for item in wish.clusters[0].scale_sets]


def test_several_sets_alike_are_numbered() -> None:
    assert names(1) == ["gpu"]
    assert names(2) == ["gpu-01", "gpu-02"]
    assert names(100)[::99] == ["gpu-001", "gpu-100"]


@pytest.mark.parametrize(
    ("pods", "single", "blocks", "addresses"), [(1, 2, 2, 17), (16, 17, 2, 17), (17, 18, 3, 33), (27, 28, 3, 33), (240, 241, 16, 241)]
)
def test_a_nic_has_its_own_address_and_its_pods(pods: int, single: int, blocks: int, addresses: int) -> None:
    item = network_wish.wish(wishes.parameters(wishes.cluster("a", wishes.scale_set(pods_per_node=pods)))).clusters[0].scale_sets[0]
    assert item.configurations_per_node("single") == item.addresses_per_node("single") == single
    assert (item.configurations_per_node("blocks"), item.addresses_per_node("blocks")) == (blocks, addresses)


@pytest.mark.parametrize(
    ("size", "answer"),
    [
        ("Standard_ND96isr_H100_v5", True),
        ("standard_nd96asr_v4", True),
        ("Standard_ND128isr_NDR_GB200_v6", True),
        ("Standard_NC24rs_v3", True),
        ("Standard_NC24r", True),
        ("Standard_HB120-16rs_v3", True),
        ("Standard_NC24ads_A100_v4", False),
        ("Standard_NC40ads_H100_v5", False),
        ("Standard_ND40s_v3", False),
        ("Standard_D96ds_v5", False),
        ("Standard_L8s_v3", False),
        ("", False),
    ],
)
def test_a_sizes_name_says_whether_it_has_infiniband(size: str, answer: bool) -> None:
    assert sizes.rdma(size) is answer


def test_infiniband_is_what_is_said_else_that_of_the_size() -> None:
    sets = [wishes.scale_set("a", size=wishes.GPU), wishes.scale_set("b", size=wishes.GPU, infiniband=False), wishes.scale_set("c")]
    wish = network_wish.wish(wishes.parameters(wishes.cluster("a", *sets)))
    assert [item.infiniband for item in wish.clusters[0].scale_sets] == [True, False, False]


def test_neighbouring_ranges_on_premises_are_one() -> None:
    wish = network_wish.wish(wishes.parameters(wishes.cluster("a", wishes.scale_set()), on_premises=["10.0.0.0/9", "10.128.0.0/9"]))
    assert wish.on_premises == (ipaddress.IPv4Network("10.0.0.0/8"),)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (wishes.parameters(), "fleet.clusters: is empty"),
        (wishes.parameters(wishes.cluster("a")), "fleet.clusters[0].scale_sets: is empty"),
        (
            wishes.parameters(wishes.cluster("a", wishes.scale_set()), wishes.cluster("A", wishes.scale_set("x"))),
            "there are two clusters A",
        ),
        (wishes.parameters(wishes.cluster("a", wishes.scale_set("x"), wishes.scale_set("X"))), "there are two scale sets X"),
        (
            wishes.parameters(wishes.cluster("a", wishes.scale_set("x", count=2), wishes.scale_set("x-02"))),
            "there are two scale sets x-02",
        ),
        *(
            (wishes.parameters(wishes.cluster("a", wishes.scale_set(**{key: value}))), f"scale_sets[0] (a).{key}: {value} is too small")
            for key, value in (("nodes", 0), ("count", 0), ("pods_per_node", 0), ("growth", -1), ("fault_domains", 0))
        ),
        *(
            (wishes.parameters(wishes.cluster("a", wishes.scale_set()), **{key: value}), f"{key}: {value} is too small")
            for key, value in (("largest_job_nodes", 0), ("infiniband_domain_nodes", 0), ("unlisted_addresses", -1))
        ),
        (wishes.parameters(wishes.cluster("a", wishes.scale_set()), on_premises=["10.0.0.1/8"]), "on_premises: '10.0.0.1/8' is not"),
    ],
)
def test_a_wish_that_means_nothing_is_one_message(given: dict[str, t.Any], said: str) -> None:
    with pytest.raises(AzureError) as error:
        network_wish.wish(given)
    assert said in str(error.value)
