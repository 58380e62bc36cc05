# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a lab description may say, and the fleet it becomes."""

from __future__ import annotations

import copy
import pathlib
import typing as t

import pytest

from lab import description, fleet

DEMO = pathlib.Path(__file__).resolve().parents[3] / "lab" / "fleets" / "demo.yml"
PLAIN: dict[str, t.Any] = {
    "vnets": [{"name": "cluster-a", "address_space": "10.1.0.0/16", "subnets": [{"name": "nodes", "prefix": "10.1.0.0/28"}]}],
    "scale_sets": [
        {"name": "gpua", "sku": "Standard_D2s_v5", "vnet": "cluster-a", "subnet": "nodes", "instances": 2, "ip_configurations": 5}
    ],
}


def changed(path: str, value: object) -> dict[str, t.Any]:
    document = copy.deepcopy(PLAIN)
    place: t.Any = document
    *parents, last = path.split(".")
    for key in parents:
        place = place[int(key)] if key.isdigit() else place[key]
    place[last] = value
    return document


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "a mapping is wanted, not list"),
        (changed("scale_sets.0.instnces", 2), "unknown key instnces; did you mean instances?"),
        (changed("scale_sets.0.instances", 3), "has 11 usable addresses, 15 are asked for"),
        (changed("scale_sets.0.ip_configurations", 257), "ip_configurations must be a whole number from 1 to 256"),
        (changed("scale_sets.0.subnet", "pods"), "names subnet cluster-a/pods, which is not described (known: cluster-a/nodes)"),
        (changed("scale_sets.0.kind", "vm"), "kind must be one of container, machine, stub"),
        (changed("scale_sets.0.name", "GPU_A"), "must be 2 to 32 lower-case letters"),
        (changed("vnets.0.address_space", "10.0.0.0/16"), "overlaps the lab's hub"),
        (changed("vnets.0.subnets.0.prefix", "10.9.0.0/28"), "lies outside vnet cluster-a"),
        (changed("vnets.0.address_space", "10.1.0.1/16"), "is not an IPv4 network"),
        ({**PLAIN, "scale_sets": PLAIN["scale_sets"] * 2}, "is there twice"),
    ],
)
def test_what_azure_would_refuse_is_one_message(document: object, says: str) -> None:
    with pytest.raises(description.DescriptionError) as error:
        description.parse(document)
    assert says in str(error.value)


def test_addresses_start_after_the_reserved_ones_and_are_unique() -> None:
    built = fleet.build(description.parse(PLAIN), prefix="t", public_key="")
    assert built.instances[0].addresses == ("10.1.0.4", "10.1.0.5", "10.1.0.6", "10.1.0.7", "10.1.0.8")
    assert built.instances[1].primary_address == "10.1.0.9"
    assert len(built.by_address()) == 10


def test_the_same_description_gives_the_same_fleet_and_another_prefix_another() -> None:
    parsed = description.parse(PLAIN)
    assert fleet.build(parsed, prefix="t", public_key="") == fleet.build(parsed, prefix="t", public_key="")
    ids = {item.vm_id for prefix in ("t", "u") for item in fleet.build(parsed, prefix=prefix, public_key="").instances}
    assert len(ids) == 4


def test_the_demo_has_a_set_of_each_orchestration_mode() -> None:
    built = fleet.build(description.load(DEMO), prefix="demo", public_key="")
    assert {built.scale_set(item.scale_set).described.orchestration for item in built.instances} == {"Uniform", "Flexible"}
    assert [item.name for item in built.instances_of("gpua")] == ["gpua_0", "gpua_1"]
