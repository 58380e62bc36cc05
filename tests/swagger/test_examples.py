# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Microsoft's published answers, written into the lab and read again: what was in them comes out as it was."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import typing as t

import pytest
from served_azure import running

from lab import changes
from lab.azure import interfaces
from lab.fleet import IpConfiguration

SET = "/subscriptions/5ab00000-0000-4000-8000-000000000001/resourceGroups/gpufleet-lab/providers/Microsoft.Compute/virtualMachineScaleSets/gpua"
# What a server computes, or what a set cannot change; an example has them of another set.
COMPUTED = ("provisioningState", "uniqueId", "timeCreated", "etag", "orchestrationMode", "platformFaultDomainCount", "singlePlacementGroup")


@pytest.fixture
def azure(tmp_path: pathlib.Path) -> t.Iterator[t.Any]:
    with running(tmp_path) as found:
        yield found


def leaves(value: t.Any, path: str = "") -> dict[str, t.Any]:
    """Every value of a document that is no container, by its place."""
    if isinstance(value, dict):
        return {place: leaf for key, item in value.items() if key not in COMPUTED for place, leaf in leaves(item, f"{path}/{key}").items()}
    if isinstance(value, list):
        return {place: leaf for number, item in enumerate(value) for place, leaf in leaves(item, f"{path}/{number}").items()}
    return {path: value}


@pytest.mark.parametrize("name", ["VirtualMachineScaleSet_Get", "VirtualMachineScaleSet_Create_WithAutomaticRepairs"])
def test_a_published_scale_set_comes_back_whole(azure: t.Any, corpus: pathlib.Path, name: str) -> None:
    example = json.loads((corpus / f"{name}.json").read_text(encoding="utf-8"))
    published = example["responses"]["200"]["body"]
    profile = {key: value for key, value in published["properties"]["virtualMachineProfile"].items() if key not in COMPUTED}
    properties = {key: value for key, value in published["properties"].items() if key not in COMPUTED}
    body = {"sku": {**published["sku"], "capacity": 2}, "properties": {**properties, "virtualMachineProfile": profile}}
    sets = azure.compute().virtual_machine_scale_sets
    sets.begin_update("gpufleet-lab", "gpua", body).result()
    found = leaves(sets.get("gpufleet-lab", "gpua", expand="userData").as_dict())
    expected = leaves(body)
    assert len(expected) > 15
    assert {place: found.get(place) for place in expected} == expected


def test_a_published_instance_comes_back_where_the_lab_has_its_properties(azure: t.Any, corpus: pathlib.Path) -> None:
    published = json.loads((corpus / "VirtualMachineScaleSetVM_Get_WithUserData.json").read_text(encoding="utf-8"))["responses"]["200"][
        "body"
    ]
    properties = published["properties"]
    profile = {"networkProfile": properties["networkProfileConfiguration"], "storageProfile": properties["storageProfile"]}
    compute = azure.compute()
    body = {
        "tags": published["tags"],
        "properties": {"virtualMachineProfile": {**profile, "userData": properties["userData"]}},
    }
    compute.virtual_machine_scale_sets.begin_update("gpufleet-lab", "gpua", body).result()
    compute.virtual_machine_scale_sets.begin_update_instances("gpufleet-lab", "gpua", {"instanceIds": ["0"]}).result()
    found = compute.virtual_machine_scale_set_vms.get("gpufleet-lab", "gpua", "0").as_dict()
    expected = {
        "tags": published["tags"],
        "properties": {
            key: properties[key]
            for key in ("latestModelApplied", "modelDefinitionApplied", "networkProfileConfiguration", "storageProfile")
        },
    }
    ours, theirs = leaves(found), leaves(expected)
    assert {place: ours.get(place) for place in theirs} == theirs
    assert (
        azure.current.fleet.model_of(azure.current.fleet.instances_of("gpua")[0])["virtualMachineProfile"]["userData"]
        == properties["userData"]
    )


def test_a_published_nic_comes_back_where_the_lab_has_its_properties(azure: t.Any, corpus: pathlib.Path) -> None:
    published = json.loads((corpus / "VmssNetworkInterfaceGet.json").read_text(encoding="utf-8"))["responses"]["200"]["body"]
    properties = published["properties"]
    configurations = tuple(
        IpConfiguration(name=item["name"], address=item["properties"]["privateIPAddress"]) for item in properties["ipConfigurations"]
    )
    mac = properties["macAddress"].replace("-", ":").lower()
    held = azure.current.fleet
    item = dataclasses.replace(held.instances_of("gpua")[0], configurations=configurations, mac=mac)
    ours = interfaces.render(changes.with_instances(held, [item]), item)["properties"]
    assert [one["name"] for one in ours["ipConfigurations"]] == [one["name"] for one in properties["ipConfigurations"]]
    for mine, theirs in zip(ours["ipConfigurations"], properties["ipConfigurations"], strict=True):
        for key in ("provisioningState", "privateIPAddress", "privateIPAllocationMethod", "primary", "privateIPAddressVersion"):
            assert mine["properties"][key] == theirs["properties"][key]
    for key in ("macAddress", "primary", "provisioningState"):
        assert ours[key] == properties[key]
    # What is on or off by the set's model has the same type.
    assert {type(ours[key]) for key in ("enableIPForwarding", "enableAcceleratedNetworking")} == {bool}
