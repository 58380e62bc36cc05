# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes through Azure's own clients, followed to the end of their operations."""

from __future__ import annotations

import json
import typing as t

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceModifiedError
from azure.core.rest import HttpRequest
from azure.mgmt.compute.models import VirtualMachineScaleSetIPConfiguration

GROUP = "gpufleet-lab"


@pytest.fixture
def sets(fresh_azure: t.Any) -> t.Any:
    return fresh_azure.compute().virtual_machine_scale_sets


@pytest.fixture
def machines(fresh_azure: t.Any) -> t.Any:
    return fresh_azure.compute().virtual_machine_scale_set_vms


def ids(machines: t.Any, name: str = "gpua") -> dict[str, str]:
    return {item.instance_id: item.vm_id for item in machines.list(GROUP, name)}


def interface(scale_set: t.Any) -> t.Any:
    return scale_set.virtual_machine_profile.network_profile.network_interface_configurations[0]


def with_aliases(scale_set: t.Any, count: int, **more: t.Any) -> t.Any:
    nic = interface(scale_set)
    start = len(nic.ip_configurations)
    for number in range(start, start + count):
        configuration = VirtualMachineScaleSetIPConfiguration(
            name=f"more{number}", subnet=nic.ip_configurations[0].subnet, primary=False, **more
        )
        nic.ip_configurations.append(configuration)
    return scale_set


def test_scaling_out_adds_machines_and_leaves_the_others(sets: t.Any, machines: t.Any) -> None:
    before = ids(machines)
    grown = sets.begin_update(GROUP, "gpua", {"sku": {"capacity": 4}}).result()
    assert grown.sku.capacity == 4
    after = ids(machines)
    assert list(after) == ["0", "1", "2", "3"]
    assert {key: after[key] for key in before} == before
    assert len(set(after.values())) == 4


def test_an_id_comes_again_with_another_identity(sets: t.Any, machines: t.Any) -> None:
    before = ids(machines)
    sets.begin_delete_instances(GROUP, "gpua", {"instanceIds": ["0"]}).result()
    assert list(ids(machines)) == ["1"]
    sets.begin_update(GROUP, "gpua", {"sku": {"capacity": 2}}).result()
    after = ids(machines)
    assert set(after) == {"0", "1"}
    assert after["1"] == before["1"] and after["0"] != before["0"]


def test_scaling_in_spares_the_protected(sets: t.Any, machines: t.Any) -> None:
    kept = machines.get(GROUP, "gpua", "1")
    kept.protection_policy = {"protectFromScaleIn": True}
    assert machines.begin_update(GROUP, "gpua", "1", kept).result().protection_policy.protect_from_scale_in
    sets.begin_update(GROUP, "gpua", {"sku": {"capacity": 1}}).result()
    assert list(ids(machines)) == ["1"]
    with pytest.raises(HttpResponseError, match="protected"):
        sets.begin_update(GROUP, "gpua", {"sku": {"capacity": 0}}).result()
    assert list(ids(machines)) == ["1"]


def test_a_written_model_waits_for_its_instances_to_be_upgraded(fresh_azure: t.Any, sets: t.Any, machines: t.Any) -> None:
    written = with_aliases(sets.get(GROUP, "gpua"), 2)
    sets.begin_create_or_update(GROUP, "gpua", written).result()
    assert [item.latest_model_applied for item in machines.list(GROUP, "gpua")] == [False, False]
    assert [item.instance_id for item in machines.list(GROUP, "gpua", filter="properties/latestModelApplied eq false")] == ["0", "1"]
    nics = fresh_azure.network().network_interfaces
    addresses = {"0": [], "1": []}  # type: dict[str, list[str]]

    def look() -> dict[str, list[str]]:
        listed = nics.list_virtual_machine_scale_set_network_interfaces(GROUP, "gpua")
        return {item.virtual_machine.id.rpartition("/")[2]: [one.private_ip_address for one in item.ip_configurations] for item in listed}

    addresses = look()
    sets.begin_update_instances(GROUP, "gpua", {"instanceIds": ["1"]}).result()
    assert [item.latest_model_applied for item in machines.list(GROUP, "gpua")] == [False, True]
    after = look()
    assert after["0"] == addresses["0"]
    assert after["1"][:3] == addresses["1"] and len(after["1"]) == 5
    assert len({address for held in after.values() for address in held}) == 8


def test_a_block_counts_as_one_configuration_and_lies_on_its_boundary(fresh_azure: t.Any, sets: t.Any) -> None:
    written = with_aliases(sets.get(GROUP, "gpua"), 1, private_ip_address_prefix_length=28)
    sets.begin_create_or_update(GROUP, "gpua", written).result()
    sets.begin_update_instances(GROUP, "gpua", {"instanceIds": ["0"]}).result()
    nic = next(iter(fresh_azure.network().network_interfaces.list_virtual_machine_scale_set_network_interfaces(GROUP, "gpua")))
    block = nic.ip_configurations[-1]
    assert block.private_ip_address == "10.1.0.16/28"
    assert block.private_ip_address_prefix_length == 28


def test_what_a_caller_does_not_name_stays(sets: t.Any) -> None:
    before = sets.get(GROUP, "gpua").as_dict()
    sets.begin_update(GROUP, "gpua", {"tags": {"owner": "ünïcode"}}).result()
    after = sets.get(GROUP, "gpua").as_dict()
    assert after.pop("tags") == {"owner": "ünïcode"}
    before.pop("tags")
    assert {key: value for key, value in after.items() if key != "etag"} == {key: value for key, value in before.items() if key != "etag"}


def test_an_unknown_property_of_the_model_comes_back_as_it_was_written(sets: t.Any) -> None:
    profile = {
        "extensionProfile": {"extensions": [{"name": "e", "properties": {"publisher": "p", "type": "t", "typeHandlerVersion": "1"}}]}
    }
    sets.begin_update(GROUP, "gpua", {"properties": {"virtualMachineProfile": profile}}).result()
    assert sets.get(GROUP, "gpua").virtual_machine_profile.extension_profile.extensions[0].name == "e"


def test_an_old_etag_is_refused(sets: t.Any) -> None:
    held = sets.get(GROUP, "gpua")
    sets.begin_update(GROUP, "gpua", {"tags": {"a": "b"}}, etag=held.etag, match_condition=MatchConditions.IfNotModified).result()
    with pytest.raises(ResourceModifiedError):
        sets.begin_update(GROUP, "gpua", {"tags": {"a": "c"}}, etag=held.etag, match_condition=MatchConditions.IfNotModified).result()
    assert sets.get(GROUP, "gpua").tags == {"a": "b"}


def test_protection_keeps_off_what_is_done_to_the_set_alone(sets: t.Any, machines: t.Any, fresh_azure: t.Any) -> None:
    held = machines.get(GROUP, "gpua", "0")
    held.protection_policy = {"protectFromScaleSetActions": True}
    machines.begin_update(GROUP, "gpua", "0", held).result()

    def generations() -> list[int]:
        return [item.generation for item in fresh_azure.current.fleet.instances_of("gpua")]

    sets.begin_reimage(GROUP, "gpua").result()
    assert generations() == [1, 2]
    machines.begin_reimage(GROUP, "gpua", "0").result()
    assert generations() == [2, 2]


@pytest.mark.parametrize(("image", "expected"), [("trixie", (2, 1)), ("", (1, 2))])
def test_an_upgrade_brings_every_difference_at_once(fresh_azure: t.Any, sets: t.Any, image: str, expected: tuple[int, int]) -> None:
    reference = {"storageProfile": {"imageReference": {"sku": image, "offer": f"debian-{image}"}}} if image else {}
    change: dict[str, t.Any] = {"sku": {"name": "Standard_ND96isr_H200_v5"}, "properties": {"virtualMachineProfile": reference}}
    sets.begin_update(GROUP, "gpua", change).result()
    sets.begin_update_instances(GROUP, "gpua", {"instanceIds": ["0"]}).result()
    item = fresh_azure.current.fleet.instances_of("gpua")[0]
    assert (item.generation, item.boots) == expected


def test_power(machines: t.Any) -> None:
    def power() -> str:
        return str(machines.get_instance_view(GROUP, "gpua", "0").statuses[-1].code)

    machines.begin_power_off(GROUP, "gpua", "0").result()
    assert power() == "PowerState/stopped"
    machines.begin_deallocate(GROUP, "gpua", "0").result()
    assert power() == "PowerState/deallocated"
    machines.begin_start(GROUP, "gpua", "0").result()
    assert power() == "PowerState/running"


def test_the_nic_of_a_flexible_instance_is_written_itself(fresh_azure: t.Any) -> None:
    nics = fresh_azure.network().network_interfaces
    nic = next(item for item in nics.list(GROUP) if item.name.startswith("cpub"))
    nic.ip_configurations = nic.ip_configurations[:2]
    assert len(nics.begin_create_or_update(GROUP, nic.name, nic).result().ip_configurations) == 2
    nic.ip_configurations = []
    with pytest.raises(HttpResponseError, match="at least one"):
        nics.begin_create_or_update(GROUP, nic.name, nic)


def test_an_old_etag_of_a_nic_is_refused(fresh_azure: t.Any) -> None:
    nics = fresh_azure.network().network_interfaces
    nic = next(item for item in nics.list(GROUP) if item.name.startswith("cpub"))
    old = nic.etag
    nic.ip_configurations = nic.ip_configurations[:2]
    written = nics.begin_create_or_update(GROUP, nic.name, nic, headers={"If-Match": old}).result()
    assert written.etag not in (None, old)
    nic.ip_configurations = nic.ip_configurations[:1]
    with pytest.raises(HttpResponseError) as caught:
        nics.begin_create_or_update(GROUP, nic.name, nic, headers={"If-Match": old})
    assert caught.value.status_code == 412 and caught.value.error and caught.value.error.code == "PreconditionFailed"
    assert nics.get(GROUP, nic.name).etag == written.etag


def test_an_instance_has_the_extensions_of_the_model_that_it_was_brought_to(sets: t.Any, machines: t.Any) -> None:
    added = {"name": "agent", "properties": {"publisher": "p", "type": "t", "typeHandlerVersion": "1.0"}}
    sets.begin_update(GROUP, "gpua", {"properties": {"virtualMachineProfile": {"extensionProfile": {"extensions": [added]}}}}).result()
    assert not machines.get(GROUP, "gpua", "0").resources
    sets.begin_update_instances(GROUP, "gpua", {"instanceIds": ["0"]}).result()
    (found,) = machines.get(GROUP, "gpua", "0").resources
    assert found.name == "agent" and found.as_dict()["properties"] == {**added["properties"], "provisioningState": "Succeeded"}


def test_flexible_instances_take_tags_and_user_data_and_go(fresh_azure: t.Any) -> None:
    machines = fresh_azure.compute().virtual_machines
    name = next(item.name for item in machines.list(GROUP) if item.name.startswith("cpub"))
    assert machines.begin_update(GROUP, name, {"tags": {"a": "b"}, "properties": {"userData": "aGk="}}).result().tags == {"a": "b"}
    assert fresh_azure.current.fleet.instances_of("cpub")[0].user_data == "aGk="
    machines.begin_delete(GROUP, name).result()
    assert fresh_azure.current.fleet.instances_of("cpub") == ()


def test_repairs_are_suspended_where_they_are_on(sets: t.Any) -> None:
    suspend = {"serviceName": "AutomaticRepairs", "action": "Suspend"}
    with pytest.raises(HttpResponseError, match="not enabled"):
        sets.begin_set_orchestration_service_state(GROUP, "gpua", suspend)
    sets.begin_update(GROUP, "gpua", {"properties": {"automaticRepairsPolicy": {"enabled": True, "gracePeriod": "PT10M"}}}).result()
    sets.begin_set_orchestration_service_state(GROUP, "gpua", suspend).result()
    assert sets.get_instance_view(GROUP, "gpua").orchestration_services[0].service_state == "Suspended"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"sku": {"capacity": -1}}, "InvalidParameter"),
        ({"sku": {"capacity": 101}}, "InvalidParameter"),
        ({"sku": {"capacity": "two"}}, "InvalidParameter"),
        ({"properties": {"orchestrationMode": "Flexible"}}, "PropertyChangeNotAllowed"),
        ({"location": "mars"}, "PropertyChangeNotAllowed"),
        ({"properties": {"virtualMachineProfile": {"networkProfile": None}}}, "InvalidRequestContent"),
        ({"properties": {"virtualMachineProfile": {"networkProfile": {"networkInterfaceConfigurations": []}}}}, "InvalidRequestContent"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(fresh_azure: t.Any, sets: t.Any, body: t.Any, code: str) -> None:
    before = fresh_azure.current.fleet
    with pytest.raises(HttpResponseError) as caught:
        sets.begin_update(GROUP, "gpua", body)
    assert caught.value.error and caught.value.error.code == code
    assert fresh_azure.current.fleet == before


def test_an_unknown_instance_is_refused(sets: t.Any) -> None:
    with pytest.raises(HttpResponseError, match="9 is not an active"):
        sets.begin_update_instances(GROUP, "gpua", {"instanceIds": ["9"]})


def test_an_operation_can_fail_or_never_end(fresh_azure: t.Any, sets: t.Any, machines: t.Any) -> None:
    before = ids(machines)
    fresh_azure.service.faults.add({"method": "PATCH", "path": "gpua", "operation": "failed"})
    with pytest.raises(HttpResponseError, match="internal execution error"):
        sets.begin_update(GROUP, "gpua", {"sku": {"capacity": 4}}).result()
    fresh_azure.service.faults.add({"method": "PATCH", "path": "gpua", "operation": "never"})
    poller = sets.begin_update(GROUP, "gpua", {"sku": {"capacity": 4}})
    poller.wait(1.5)
    assert not poller.done()
    assert ids(machines) == before


def test_user_data_is_said_only_where_it_is_asked_for(sets: t.Any) -> None:
    sets.begin_update(GROUP, "gpua", {"properties": {"virtualMachineProfile": {"userData": "aGVsbG8="}}}).result()
    assert sets.get(GROUP, "gpua").virtual_machine_profile.user_data is None
    assert sets.get(GROUP, "gpua", expand="userData").virtual_machine_profile.user_data == "aGVsbG8="
    sets.begin_update(GROUP, "gpua", {"tags": {"a": "b"}}).result()
    assert sets.get(GROUP, "gpua", expand="userData").virtual_machine_profile.user_data == "aGVsbG8="


def test_a_version_before_blocks_does_not_know_them(fresh_azure: t.Any, sets: t.Any) -> None:
    written = with_aliases(sets.get(GROUP, "gpua"), 1, private_ip_address_prefix_length=28)
    client = fresh_azure.compute()

    def patch(body: t.Any) -> t.Any:
        url = f"{fresh_azure.url}{written.id}?api-version=2024-07-01"
        return client.send_request(HttpRequest("PATCH", url, json=body))

    profile = {"networkProfile": written.virtual_machine_profile.network_profile.as_dict()}
    refused = patch({"properties": {"virtualMachineProfile": profile}})
    assert refused.status_code == 400
    assert "Could not find member 'privateIPAddressPrefixLength'" in refused.text()
    sets.begin_create_or_update(GROUP, "gpua", written).result()
    assert patch({"tags": {"a": "b"}}).status_code == 200


def test_what_is_answered_passes_the_typed_models_whole(fresh_azure: t.Any) -> None:
    """The SDK's default versions: what its models make of an answer is the answer, nothing lost and nothing unknown."""
    compute, network = fresh_azure.compute(), fresh_azure.network()
    seen: list[dict[str, t.Any]] = []

    def keep(response: t.Any) -> None:
        seen.append(json.loads(response.http_response.body()))

    typed = [
        compute.virtual_machine_scale_sets.get(GROUP, "gpua", raw_response_hook=keep),
        compute.virtual_machine_scale_set_vms.get(GROUP, "gpua", "0", expand="instanceView", raw_response_hook=keep),
        compute.virtual_machine_scale_sets.get_instance_view(GROUP, "gpua", raw_response_hook=keep),
        network.virtual_networks.get(GROUP, "cluster-a", raw_response_hook=keep),
        network.network_interfaces.get(GROUP, next(item.name for item in network.network_interfaces.list(GROUP)), raw_response_hook=keep),
    ]
    assert len(seen) == len(typed)
    for model, raw in zip(typed, seen, strict=True):
        assert comparable(model.as_dict()) == comparable(raw)


def comparable(value: t.Any) -> t.Any:
    """Times are written in more than one way."""
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return value.replace("+00:00", "Z") if isinstance(value, str) else value
