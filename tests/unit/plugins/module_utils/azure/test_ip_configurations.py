# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which ipConfigurations a model or a NIC gets, and that nothing else of it changes."""

from __future__ import annotations

import copy
import dataclasses
import json
import typing as t

import pytest
from alias_documents import ASG, SUBNET, configuration, configurations, interface, names, scale_set
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import ip_configurations as planner
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.errors import AzureError
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.ip_configurations import Aliases
from hypothesis import given
from hypothesis import strategies as st

PRIMARY = configuration("primary", primary=True)
IPV6 = configuration("six", privateIPAddressVersion="IPv6")
PUBLIC = configuration("door", publicIPAddressConfiguration={"name": "door"})
BLOCKS = Aliases(count=2, prefix_length=28)


@pytest.mark.parametrize(
    ("held", "wanted", "expected"),
    [
        ([PRIMARY], Aliases(count=2), ["primary", "alias001", "alias002"]),
        ([PRIMARY], BLOCKS, ["primary", "block001", "block002"]),
        ([PRIMARY], Aliases(count=0), ["primary"]),
        # What there is counts, whatever its name; what goes goes from the end.
        ([PRIMARY, configuration("mine")], Aliases(count=2), ["primary", "mine", "alias001"]),
        ([PRIMARY, configuration("mine"), configuration("alias001")], Aliases(count=1), ["primary", "mine"]),
        ([PRIMARY, configuration("alias002")], Aliases(count=3), ["primary", "alias002", "alias001", "alias003"]),
        # ARM's names have no case.
        ([PRIMARY, configuration("ALIAS001")], Aliases(count=2), ["primary", "ALIAS001", "alias002"]),
        # The primary one is not always the first.
        ([configuration("alias001"), PRIMARY], Aliases(count=0), ["primary"]),
        # IPv6 and what the world comes in by are nobody's alias.
        ([PRIMARY, IPV6, PUBLIC], Aliases(count=1), ["primary", "six", "door", "alias001"]),
        ([PRIMARY, IPV6, PUBLIC], Aliases(count=0), ["primary", "six", "door"]),
        # One kind takes the place of the other, under names that were not there.
        ([PRIMARY, configuration("block001")], BLOCKS, ["primary", "block002", "block003"]),
        ([PRIMARY, configuration("b", privateIPAddressPrefixLength=28)], Aliases(count=1), ["primary", "alias001"]),
        # The only one is primary though it does not say so.
        ([configuration("only", primary=None)], Aliases(count=1), ["only", "alias001"]),
    ],
)
def test_the_aliases_of_a_nic(held: list[t.Any], wanted: Aliases, expected: list[str]) -> None:
    assert names(planner.changed(held, wanted)) == expected


def test_a_new_one_is_like_the_primary_one() -> None:
    primary = configuration("primary", primary=True, applicationSecurityGroups=[ASG])
    _primary, alias, *_more = planner.changed([primary], BLOCKS)
    assert alias["properties"] == {
        "primary": False,
        "subnet": SUBNET,
        "privateIPAddressVersion": "IPv4",
        "applicationSecurityGroups": [ASG],
        "privateIPAddressPrefixLength": 28,
    }


def test_a_nic_of_its_own_says_how_it_is_allocated() -> None:
    nic = planner.changed_interface(interface([PRIMARY]), Aliases(count=1))
    assert nic["properties"]["ipConfigurations"][1]["properties"]["privateIPAllocationMethod"] == "Dynamic"
    assert nic["etag"] == interface([PRIMARY])["etag"]


@pytest.mark.parametrize(
    ("held", "wanted", "said"),
    [
        ([PRIMARY], Aliases(count=256), "256 addresses and 1 other ipConfigurations are more than the 256 of one NIC; at most 255"),
        ([PRIMARY, IPV6], Aliases(count=255, prefix_length=28), "255 /28 blocks and 2 other"),
        ([configuration("a"), configuration("b")], Aliases(count=1), "of 2 ipConfigurations 0 are primary"),
        ([], Aliases(count=1), "of 0 ipConfigurations"),
    ],
)
def test_what_cannot_be(held: list[t.Any], wanted: Aliases, said: str) -> None:
    with pytest.raises(AzureError, match=said):
        planner.changed(held, wanted)


def test_the_primary_nic_of_several_is_the_one() -> None:
    document = scale_set([PRIMARY])
    network = document["properties"]["virtualMachineProfile"]["networkProfile"]
    other = {"name": "storage", "properties": {"primary": False, "ipConfigurations": [configuration("x", primary=True)]}}
    network["networkInterfaceConfigurations"].insert(0, other)
    after = planner.changed_model(document, Aliases(count=1))
    first, second = after["properties"]["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"]
    assert first == other and names(second["properties"]["ipConfigurations"]) == ["primary", "alias001"]
    del second["properties"]["primary"]
    with pytest.raises(AzureError, match="of 2 networkInterfaceConfigurations 0 are primary"):
        planner.changed_model(after, Aliases(count=1))


def test_a_flexible_set_without_a_model_has_nothing_to_change() -> None:
    bare = {"name": "bare", "properties": {"orchestrationMode": "Flexible"}}
    assert planner.of_model(bare) is None
    assert planner.changed_model(bare, Aliases(count=3)) == bare


def test_what_leaves() -> None:
    held = [
        PRIMARY,
        configuration("alias001", privateIPAddress="10.0.0.5"),
        configuration("Alias002", privateIPAddress="10.0.0.6"),
        # As versions of the API say it: with the length in the address, beside it, or not at all.
        configuration("block001", privateIPAddress="10.0.0.16/28"),
        configuration("block002", privateIPAddress="10.0.0.32", privateIPAddressPrefixLength=28),
        configuration("block003", privateIPAddress="10.0.0.48"),
        configuration("stopped"),
    ]
    going = {"alias002": 32, "block001": 28, "block002": 28, "block003": 28, "stopped": 32}
    assert planner.leaving(held, going) == ["10.0.0.6", "10.0.0.16/28", "10.0.0.32/28", "10.0.0.48/28"]
    assert planner.leaving(held, {}) == []


# Properties

WANTED = st.builds(Aliases, count=st.integers(0, 40), prefix_length=st.sampled_from([32, 28]))


@given(configurations(), WANTED)
def test_only_ip_configurations_change(held: list[t.Any], wanted: Aliases) -> None:
    document = scale_set(held)
    before = json.dumps(document)
    after = planner.changed_model(document, wanted)
    # The document that was read is not touched, and the order of keys is kept.
    assert json.dumps(document) == before
    restored = copy.deepcopy(after)
    restored["properties"]["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"][0]["properties"][
        "ipConfigurations"
    ] = held
    assert json.dumps(restored) == before


@given(configurations(), WANTED)
def test_the_wish_comes_true_and_stays(held: list[t.Any], wanted: Aliases) -> None:
    after = planner.changed(held, wanted)
    found = planner.aliases(after)
    assert len(found) == wanted.count and {planner.prefix_length(item) for item in found} <= {wanted.prefix_length}
    assert len({name.lower() for name in names(after)}) == len(after)
    assert planner.changed(after, wanted) == after
    # What stays is what there was, the primary one and all that is no alias among it, in the order it had.
    stayed = [item for item in after if item in held]
    assert stayed == [item for item in held if item in stayed]
    gone = [item for item in held if item not in stayed]
    assert all(item in planner.aliases(held) for item in gone)


@given(configurations(), WANTED, st.integers(0, 40))
def test_lowered_and_raised_again_it_is_what_it_was(held: list[t.Any], wanted: Aliases, fewer: int) -> None:
    """Also byte for byte, once aliases of the other kind are gone. Those that somebody else named are not taken away here: they would
    come again under other names."""
    kept = [item for item in planner.aliases(held) if planner.prefix_length(item) == wanted.prefix_length]
    alone = planner.changed(held, dataclasses.replace(wanted, count=len(kept)))
    full = planner.changed(alone, wanted)
    lowered = planner.changed(full, dataclasses.replace(wanted, count=min(max(fewer, len(kept)), wanted.count)))
    assert json.dumps(planner.changed(lowered, wanted)) == json.dumps(full)


@given(configurations(), st.integers(0, 30), st.integers(0, 30))
def test_names_do_not_move_when_the_number_does(held: list[t.Any], one: int, two: int) -> None:
    smaller, larger = (names(planner.changed(held, Aliases(count=count))) for count in sorted((one, two)))
    assert [name for name in larger if name in smaller] == smaller
