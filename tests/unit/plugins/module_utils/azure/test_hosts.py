# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import typing as t

import documents as arm
import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import fleet, hosts, interfaces
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.errors import AzureError

PARENT = fleet.scale_set(arm.scale_set())


def instance(number: int = 0, **changes: t.Any) -> fleet.Instance:
    machine = arm.uniform(number)
    interface = arm.interface(machine["id"], [arm.configuration(f"10.1.{number}.4", primary=True), arm.configuration(f"10.1.{number}.5")])
    (found,) = fleet.joined([fleet.instance(PARENT, machine)], interfaces.by_owner([interfaces.interface(interface)]))
    return dataclasses.replace(found, **changes)


def test_variables_are_few_and_flat() -> None:
    assert hosts.variables(instance()) == {
        "ansible_host": "10.1.0.4",
        "vm_id": "vm-gpua-0",
        "scale_set": "gpua",
        "instance_id": "0",
        "resource_group": "Train-West",
        "subscription_id": arm.SUBSCRIPTION,
        "location": "westeurope",
        "zone": "1",
        "fault_domain": 0,
        "placement_group": "a7f1a4b2-0000-4000-8000-000000000001",
        "orchestration": "uniform",
        "vm_size": "Standard_ND96isr_H100_v5",
        "power_state": "running",
        "provisioning_state": "succeeded",
        "health_state": "healthy",
        "latest_model": True,
        "primary_address": "10.1.0.4",
        "alias_addresses": "10.1.0.5",
        "protected": False,
    }


def test_what_arm_does_not_say_is_absent() -> None:
    bare = instance(zone="", fault_domain=None, health="", latest_model=None, alias_addresses=(), placement_group="")
    assert not {"zone", "fault_domain", "health_state", "latest_model", "alias_addresses", "placement_group"} & set(hosts.variables(bare))


def test_groups() -> None:
    assert hosts.groups(instance()) == (
        "fault_domain_0",
        "gpu_h100",
        "health_healthy",
        "latest_model",
        "location_westeurope",
        "orchestration_uniform",
        "placement_group_a7f1a4b2_0000_4000_8000_000000000001",
        "power_running",
        "resource_group_train_west",
        "scale_set_gpua",
        "size_standard_nd96isr_h100_v5",
        "zone_westeurope_1",
    )


@pytest.mark.parametrize(
    ("changes", "present", "absent"),
    [
        ({"protected": True}, {"protected"}, set()),
        ({"latest_model": False}, {"outdated_model"}, {"latest_model"}),
        ({"latest_model": None}, set(), {"outdated_model", "latest_model"}),
        ({"size": "Standard_D96ds_v5"}, {"cpu", "size_standard_d96ds_v5"}, {"gpu_h100"}),
        ({"zone": ""}, set(), {"zone_westeurope_", "zone_westeurope_1"}),
        ({"scale_set": "Größe-1"}, {"scale_set_gr__e_1"}, set()),
    ],
)
def test_groups_of(changes: dict[str, t.Any], present: set[str], absent: set[str]) -> None:
    found = set(hosts.groups(instance(**changes)))
    assert present <= found
    assert not absent & found


def test_keep_counts_and_names_the_others() -> None:
    fleet_of_four = [instance(0), instance(1, state="deallocated"), instance(2, state="deallocated"), instance(3, state="failed")]
    kept, line = hosts.keep(fleet_of_four, ["running"])
    assert [item.instance_id for item in kept] == ["0"]
    assert line.startswith("3 of 4 instances left out: 2 deallocated (gpua_1, gpua_2), 1 failed (gpua_3);")


def test_keep_says_nothing_when_nothing_is_left_out() -> None:
    assert hosts.keep([instance(0)], ["running"])[1] == ""


def test_many_left_out_stay_one_short_line() -> None:
    _kept, line = hosts.keep([instance(number % 10, state="stopped", name=f"gpua_{number}") for number in range(3000)], ["running"])
    assert "3000 stopped" in line
    assert "and 2995 more" in line
    assert len(line) < 250


def test_a_stopped_instance_needs_no_address() -> None:
    assert len(hosts.keep([instance(0, state="stopped", primary_address="")], ["stopped"])[0]) == 1


def test_two_instances_with_one_name() -> None:
    first, second = instance(0), instance(1)
    with pytest.raises(
        AzureError, match=r"host name Node belongs to two instances: .*/virtualMachines/0 and .*/virtualMachines/1; set `hostname`"
    ):
        hosts.check_names([("node", second), ("Node", first)])


def test_an_instance_without_name() -> None:
    with pytest.raises(AzureError, match="gets no host name"):
        hosts.check_names([("", instance(0))])


def test_different_names_that_make_one_group_are_told() -> None:
    fleet_of_three = [instance(scale_set="gpu-a"), instance(scale_set="gpu_a"), instance(scale_set="GPU-A")]
    assert hosts.blurred(fleet_of_three) == ["group scale_set_gpu_a holds the hosts of gpu-a and gpu_a"]
    assert hosts.blurred([instance(), instance()]) == []
