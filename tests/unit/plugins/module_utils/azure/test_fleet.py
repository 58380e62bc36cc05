# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import documents as arm
import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import fleet, interfaces
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.errors import AzureError

UNIFORM = fleet.scale_set(arm.scale_set())
FLEXIBLE = fleet.scale_set(arm.scale_set("cpub", mode="Flexible", size="Standard_D96ds_v5"))
OWNER = f"{arm.set_id()}/virtualMachines/0"


def one(machine: arm.Document, *documents: arm.Document, parent: fleet.ScaleSet = UNIFORM) -> fleet.Instance:
    owned = interfaces.by_owner(interfaces.interface(document) for document in documents)
    (found,) = fleet.joined([fleet.instance(parent, machine)], owned)
    return found


def test_a_scale_set() -> None:
    assert (
        fleet.ScaleSet(
            name="gpua",
            resource_id=arm.set_id(),
            resource_group="Train-West",
            subscription_id=arm.SUBSCRIPTION,
            location="westeurope",
            orchestration="uniform",
            size="Standard_ND96isr_H100_v5",
            tags={},
        )
        == UNIFORM
    )
    assert FLEXIBLE.flexible


def test_a_scale_set_from_before_flexible_is_uniform() -> None:
    assert fleet.scale_set(arm.scale_set(mode=None)).orchestration == "uniform"


@pytest.mark.parametrize("wrong", [{}, {"id": None}, {"id": "/subscriptions/s/resourceGroups/g"}])
def test_a_scale_set_without_identity_is_refused(wrong: dict[str, t.Any]) -> None:
    with pytest.raises(AzureError, match="whose id is"):
        fleet.scale_set(wrong)


def test_a_uniform_instance() -> None:
    instance = one(arm.uniform(0), arm.interface(OWNER, [arm.configuration("10.1.0.4", primary=True), arm.configuration("10.1.0.5")]))
    assert instance == fleet.Instance(
        name="gpua_0",
        computer_name="gpua000000",
        resource_id=OWNER,
        vm_id="vm-gpua-0",
        instance_id="0",
        subscription_id=arm.SUBSCRIPTION,
        resource_group="Train-West",
        scale_set="gpua",
        orchestration="uniform",
        location="westeurope",
        size="Standard_ND96isr_H100_v5",
        zone="1",
        fault_domain=0,
        placement_group="a7f1a4b2-0000-4000-8000-000000000001",
        provisioning_state="succeeded",
        power_state="running",
        state="running",
        health="healthy",
        latest_model=True,
        protected=False,
        primary_address="10.1.0.4",
        alias_addresses=("10.1.0.5",),
        tags={"cluster": "a"},
    )


def test_a_flexible_instance_whose_id_is_spelled_otherwise() -> None:
    machine = arm.flexible("cpub_1a2b3c4d")
    owner = machine["id"].replace(arm.GROUP.upper(), arm.GROUP.lower())
    instance = one(machine, arm.interface(owner, [arm.configuration("10.2.0.4", primary=True)]), parent=FLEXIBLE)
    assert (instance.instance_id, instance.scale_set, instance.resource_group) == ("cpub_1a2b3c4d", "cpub", "Train-West")
    assert (instance.size, instance.fault_domain, instance.latest_model, instance.zone) == ("Standard_D96ds_v5", 1, None, "")
    assert instance.primary_address == "10.2.0.4"


@pytest.mark.parametrize(
    ("provisioning", "power", "state"),
    [
        ("Succeeded", "running", "running"),
        ("Updating", "running", "running"),
        ("Succeeded", "deallocated", "deallocated"),
        ("Deleting", "running", "deleting"),
        ("Creating", "running", "creating"),
        ("Failed", "running", "failed"),
    ],
)
def test_state(provisioning: str, power: str, state: str) -> None:
    assert one(arm.uniform(0, power=power, provisioning=provisioning)).state == state


@pytest.mark.parametrize("hole", ["properties", "sku", "tags", "zones"])
def test_null_for_what_may_be_absent(hole: str) -> None:
    instance = one({**arm.uniform(0), hole: None})
    assert instance.resource_id == OWNER


@pytest.mark.parametrize("hole", ["instanceView", "osProfile", "protectionPolicy", "vmId", "provisioningState", "latestModelApplied"])
def test_null_in_properties(hole: str) -> None:
    machine = arm.uniform(0)
    machine["properties"][hole] = None
    instance = one(machine)
    assert instance.state == ("unknown" if hole == "instanceView" else "running")


def test_an_instance_of_which_only_id_and_location_are_given() -> None:
    instance = one({"id": OWNER, "location": "westeurope"})
    assert (instance.state, instance.instance_id, instance.computer_name, instance.vm_id) == ("unknown", "0", "", "")


def test_an_instance_without_id_is_refused() -> None:
    with pytest.raises(AzureError, match="instance without id"):
        one({"location": "westeurope"})


def test_an_instance_on_two_pages_counts_once_as_the_later_page_has_it() -> None:
    pages = [fleet.instance(UNIFORM, machine) for machine in (arm.uniform(1), arm.uniform(0), arm.uniform(1, power="stopped"))]
    assert [(item.instance_id, item.state) for item in fleet.joined(pages, {})] == [("0", "running"), ("1", "stopped")]


def test_an_instance_that_runs_without_address_is_no_whole_answer() -> None:
    stopped, running = fleet.instance(UNIFORM, arm.uniform(0, power="stopped")), fleet.instance(UNIFORM, arm.uniform(1))
    assert fleet.without_address([stopped, running]) == [running]


def test_an_interface_of_an_instance_that_is_not_listed_is_left_alone() -> None:
    stranger = arm.interface(f"{arm.set_id()}/virtualMachines/9", [arm.configuration("10.1.0.99", primary=True)])
    free = {"name": "free", "properties": {"ipConfigurations": []}}
    assert one(arm.uniform(0), stranger, free).primary_address == ""


def test_the_raw_documents_are_kept_only_when_asked_for() -> None:
    machine, interface = arm.uniform(0), arm.interface(OWNER, [arm.configuration("10.1.0.4", primary=True)])
    owned = interfaces.by_owner([interfaces.interface(interface, keep_document=True)])
    (found,) = fleet.joined([fleet.instance(UNIFORM, machine, keep_document=True)], owned)
    assert found.document == {"instance": machine, "interfaces": [interface]}
    assert one(machine, interface).document is None
