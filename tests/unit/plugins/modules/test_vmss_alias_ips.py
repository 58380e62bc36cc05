# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module against the lab's Resource Manager on loopback; what it wrote is read back by Azure's own clients."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import arguments, operations
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import ip_configurations as planner
from ansible_collections.gpufleet.vmss.plugins.modules import vmss_alias_ips as module
from served_azure import GROUP, Azure, running

from lab.azure.operations import Operations

# A Uniform set of four and a Flexible one of two, each instance with its primary and two secondary addresses.
FLEET = """
vnets:
  - {name: cluster, address_space: 10.1.0.0/16, subnets: [{name: nodes, prefix: 10.1.0.0/22}]}
scale_sets:
  - {name: gpu, kind: stub, sku: Standard_ND96isr_H100_v5, vnet: cluster, subnet: nodes, instances: 4, ip_configurations: 3}
  - {name: flex, kind: stub, orchestration: Flexible, sku: Standard_D8s_v5, vnet: cluster, subnet: nodes, instances: 2, ip_configurations: 3}
"""


class Module:
    """Runs the module as Ansible starts it, by default on the Uniform set and logged in."""

    def __init__(self, azure: Azure, capsys: pytest.CaptureFixture[str]) -> None:
        self.azure = azure
        self._capsys = capsys

    def __call__(self, *, check: bool = False, diff: bool = False, **given: t.Any) -> dict[str, t.Any]:
        arguments_given = {"resource_group": GROUP, "scale_set": "gpu", **given}
        with patch_module_args({"_ansible_check_mode": check, "_ansible_diff": diff, **arguments_given}), pytest.raises(SystemExit) as end:
            module.main()
        text = self._capsys.readouterr().out
        assert self.azure.service.principal.secret not in text
        answer: dict[str, t.Any] = json.loads(text)
        assert (end.value.code == 0) == (not answer.get("failed"))
        assert "skipped" not in answer, "Ansible takes a task with such an answer for skipped"
        return answer

    def fault(self, **document: t.Any) -> t.Any:
        """Turn a fault of Azure on, and give it back to see how often it was met."""
        self.azure.service.faults.add(document)
        return self.azure.service.faults.active[-1]

    # What Azure has

    def instances(self, name: str = "gpu") -> tuple[t.Any, ...]:
        return self.azure.current.fleet.instances_of(name)

    def vm_ids(self, *indices: int, name: str = "gpu") -> list[str]:
        return [self.instances(name)[index].vm_id for index in indices]

    def aliases(self, name: str = "gpu") -> list[int]:
        """How many secondary addresses each instance has."""
        return [len(item.secondary_addresses) for item in self.instances(name)]

    def model(self, name: str = "gpu") -> list[str]:
        held = self.azure.current.fleet.scale_set(name).model["virtualMachineProfile"]["networkProfile"]
        return [item["name"] for item in held["networkInterfaceConfigurations"][0]["properties"]["ipConfigurations"]]

    def generations(self) -> list[tuple[int, int]]:
        return [(item.generation, item.boots) for item in self.instances()]

    def protect(self, instance_id: str) -> None:
        machines = self.azure.compute().virtual_machine_scale_set_vms
        held = machines.get(GROUP, "gpu", instance_id)
        held.protection_policy = {"protectFromScaleSetActions": True}
        machines.begin_update(GROUP, "gpu", instance_id, held, polling_interval=0).result()

    def patch(self, body: dict[str, t.Any], name: str = "gpu") -> None:
        self.azure.compute().virtual_machine_scale_sets.begin_update(GROUP, name, body, polling_interval=0).result()


@pytest.fixture
def run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> t.Iterator[Module]:
    monkeypatch.setattr(operations, "POLL_SECONDS", 0.02)
    # "0" is no time for the SDK, which then asks as often as it is told here.
    monkeypatch.setattr(Operations, "retry_after", "0")
    (tmp_path / "fleet.yml").write_text(FLEET, encoding="utf-8")
    for names in arguments.VARIABLES.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
    with running(tmp_path, tmp_path / "fleet.yml") as azure:
        for name, value in azure.service.environment.items():
            monkeypatch.setenv(name, value)
        yield Module(azure, capsys)


# Uniform


def test_the_model_alone_where_nobody_is_idle(run: Module) -> None:
    answer = run(count=4)
    assert answer["changed"] and answer["model_changed"] and answer["waves"] == []
    assert answer["ip_configurations"] == ["alias001", "alias002", "alias003", "alias004"]
    assert run.model() == ["primary", *answer["ip_configurations"]]
    assert run.aliases() == [2, 2, 2, 2]
    assert {item["reason"] for item in answer["left_alone"]} == {"not_idle"} and len(answer["left_alone"]) == 4
    assert not run(count=4)["changed"]


def test_idle_instances_get_it_by_waves_and_nobody_else(run: Module) -> None:
    before = run.instances()
    answer = run(count=6, idle_instances=run.vm_ids(0, 2, 3), batch_size=2)
    assert answer["waves"] == [["0", "2"], ["3"]]
    assert run.aliases() == [6, 2, 6, 6]
    assert [item["instance_id"] for item in answer["left_alone"]] == ["1"]
    # Addresses that there were are kept, and nothing is restarted.
    after = run.instances()
    assert all(new.addresses[:3] == old.addresses for new, old in zip(after, before, strict=True))
    assert run.generations() == [(1, 1)] * 4
    assert not run(count=6, idle_instances=run.vm_ids(0, 2, 3), batch_size=2)["changed"]
    # The last one when its job has ended.
    assert run(count=6, idle_instances=run.vm_ids(0, 1, 2, 3))["waves"] == [["1"]]
    assert run.aliases() == [6, 6, 6, 6]


def test_azures_own_client_reads_what_was_written(run: Module) -> None:
    sets = run.azure.compute().virtual_machine_scale_sets
    before = sets.get(GROUP, "gpu").as_dict()
    run(blocks=2, idle_instances=["0"], addresses_in_use=[])
    after = sets.get(GROUP, "gpu").as_dict()
    interfaces = [
        item["properties"]["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"] for item in (before, after)
    ]
    held, written = (nics[0]["properties"].pop("ipConfigurations") for nics in interfaces)
    assert {key: value for key, value in after.items() if key != "etag"} == {key: value for key, value in before.items() if key != "etag"}
    assert written[0] == held[0]
    assert [item["name"] for item in written[1:]] == ["block001", "block002"]
    assert {item["properties"]["privateIPAddressPrefixLength"] for item in written[1:]} == {28}
    nics = run.azure.network().network_interfaces.list_virtual_machine_scale_set_network_interfaces(GROUP, "gpu")
    first = next(item for item in nics if item.virtual_machine.id.endswith("/0"))
    assert [item.private_ip_address_prefix_length for item in first.ip_configurations] == [None, 28, 28]
    assert run.aliases() == [32, 2, 2, 2]
    assert not run(blocks=2, idle_instances=["0"])["changed"]


def test_what_azure_does_not_show_survives_the_write(run: Module) -> None:
    run.patch({"properties": {"virtualMachineProfile": {"userData": "aGVsbG8="}}})
    assert run(count=3)["changed"]
    found = run.azure.compute().virtual_machine_scale_sets.get(GROUP, "gpu", expand="userData")
    assert found.virtual_machine_profile.user_data == "aGVsbG8="


@pytest.mark.parametrize("given", [{"count": 6}, {"blocks": 1, "addresses_in_use": []}, {"count": 1, "addresses_in_use": []}, {"count": 2}])
def test_check_mode_predicts_and_changes_nothing(run: Module, given: dict[str, t.Any]) -> None:
    given = {**given, "idle_instances": run.vm_ids(0, 1, 3), "batch_size": 2}
    run.protect("1")
    before = run.azure.current.fleet
    predicted = run(check=True, **given)
    assert run.azure.current.fleet == before
    real = run(**given)
    assert {key: value for key, value in real.items() if key != "invocation"} == {
        key: value for key, value in predicted.items() if key != "invocation"
    }
    again = run(check=True, **given)
    assert not again["changed"] and again["waves"] == []


def test_the_difference_is_shown(run: Module) -> None:
    model, instance = run(check=True, diff=True, count=3, idle_instances=["2"])["diff"]
    assert model["before_header"] == "gpu: model" and "alias003" not in model["before"]
    assert json.loads(model["before"])["networkInterfaceConfigurations"][0]["name"] == "nic"
    assert '"alias003"' in model["after"]
    assert (instance["before_header"], instance["after"]) == ("gpu: instance 2", "alias001\nalias002\nalias003\n")
    assert run(diff=True, count=2)["diff"] == []


def test_protected_ones_are_skipped_and_named(run: Module) -> None:
    run.protect("1")
    answer = run(count=4, idle_instances=run.vm_ids(0, 1))
    assert answer["waves"] == [["0"]] and run.aliases() == [4, 2, 2, 2]
    assert {item["instance_id"]: item["reason"] for item in answer["left_alone"]} == {"1": "protected", "2": "not_idle", "3": "not_idle"}


# Drift


def change_image(run: Module) -> None:
    reference = {"sku": "trixie", "offer": "debian-trixie"}
    run.patch({"properties": {"virtualMachineProfile": {"storageProfile": {"imageReference": reference}}}})


def test_an_image_does_not_ride_along(run: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    # Where a test before has loaded Ansible's controller, warnings are printed and not answered.
    monkeypatch.setattr(module.AnsibleModule, "warn", lambda _module, text: warned.append(text))
    change_image(run)
    answer = run(count=4, idle_instances=run.vm_ids(0, 1))
    assert answer["model_changed"] and answer["waves"] == []
    drifted = [item for item in answer["left_alone"] if item["reason"] == "drifted"]
    assert [item["instance_id"] for item in drifted] == ["0", "1"]
    assert drifted[0]["drift"] == ["storageProfile.imageReference.offer", "storageProfile.imageReference.sku"]
    assert len(warned) == 2 and warned[0] == (
        "instance 0 is left as it is, since bringing it to the latest model would also change storageProfile.imageReference.offer, "
        "storageProfile.imageReference.sku; name it in allow_model_drift if that is meant"
    )
    assert run.aliases() == [2, 2, 2, 2] and run.generations() == [(1, 1)] * 4


def test_it_does_where_the_caller_names_the_instance(run: Module) -> None:
    change_image(run)
    answer = run(count=4, idle_instances=run.vm_ids(0, 1), allow_model_drift=["1"])
    assert answer["waves"] == [["1"]]
    assert run.aliases() == [2, 4, 2, 2] and run.generations() == [(1, 1), (2, 1), (1, 1), (1, 1)]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"sku": {"name": "Standard_ND96isr_H200_v5"}}, ["sku.name"]),
        (
            {"properties": {"virtualMachineProfile": {"storageProfile": {"osDisk": {"diskSizeGB": 128}}}}},
            ["storageProfile.osDisk.diskSizeGB"],
        ),
        (
            {
                "properties": {
                    "virtualMachineProfile": {"storageProfile": {"dataDisks": [{"lun": 0, "createOption": "Empty", "diskSizeGB": 8}]}}
                }
            },
            ["storageProfile.dataDisks[0]"],
        ),
        (
            {
                "properties": {
                    "virtualMachineProfile": {"extensionProfile": {"extensions": [{"name": "e", "properties": {"publisher": "p"}}]}}
                }
            },
            ["extensionProfile[e]"],
        ),
        # ARM says that the instance is behind, and does not show in what.
        ({"properties": {"virtualMachineProfile": {"userData": "aGVsbG8="}}}, ["something that ARM does not show"]),
    ],
)
def test_every_other_difference_is_found(run: Module, body: dict[str, t.Any], said: list[str]) -> None:
    run.patch(body)
    answer = run(count=3, idle_instances=["0"])
    assert answer["waves"] == [] and answer["left_alone"][0]["drift"] == said
    assert run.generations() == [(1, 1)] * 4


def test_a_model_that_changes_between_two_waves_stops_them(run: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Rollout", lambda *given: module.alias_rollout.Rollout(*given, sleep=lambda _seconds: change_image(run)))
    answer = run(count=4, idle_instances=run.vm_ids(0, 1, 2, 3), batch_size=2)
    assert answer["failed"] and "changed by somebody else meanwhile" in answer["msg"]
    assert answer["changed"] and answer["waves"] == [["0", "1"]]
    assert run.aliases() == [4, 4, 2, 2] and run.generations() == [(1, 1)] * 4


def test_an_instance_that_is_protected_between_two_waves_is_left_alone(run: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Rollout", lambda *given: module.alias_rollout.Rollout(*given, sleep=lambda _seconds: run.protect("3")))
    answer = run(count=4, idle_instances=run.vm_ids(0, 1, 2, 3), batch_size=2, pause=60)
    assert answer["waves"] == [["0", "1"], ["2"]]
    assert [(item["instance_id"], item["reason"]) for item in answer["left_alone"]] == [("3", "protected")]


def test_one_that_is_replaced_between_two_waves_is_another_machine(run: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    def replace(_seconds: float) -> None:
        run.azure.compute().virtual_machine_scale_sets.begin_delete_instances(
            GROUP, "gpu", {"instanceIds": ["3"]}, polling_interval=0
        ).result()
        run.patch({"sku": {"capacity": 4}})

    monkeypatch.setattr(module, "Rollout", lambda *given: module.alias_rollout.Rollout(*given, sleep=replace))
    (old,) = run.vm_ids(3)
    answer = run(count=4, idle_instances=["2", "3"], batch_size=1)
    assert answer["waves"] == [["2"]]
    assert [(item["vm_id"], item["reason"]) for item in answer["left_alone"] if item["instance_id"] == "3"] == [(old, "gone")]


def change_nic(run: Module) -> None:
    held = run.azure.current.fleet.scale_set("gpu").model["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"][0]
    nic = {**held, "properties": {**held["properties"], "enableAcceleratedNetworking": False}}
    run.patch({"properties": {"virtualMachineProfile": {"networkProfile": {"networkInterfaceConfigurations": [nic]}}}})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (change_image, "changed by somebody else meanwhile"),
        (change_nic, "(networkProfile.networkInterfaceConfigurations[nic].properties.enableAcceleratedNetworking)"),
    ],
)
def test_a_model_that_is_not_as_it_was_written_reaches_nobody(
    run: Module, monkeypatch: pytest.MonkeyPatch, change: t.Callable[[Module], None], said: str
) -> None:
    def result(operation: t.Any, deadline: float) -> t.Any:
        found = followed(operation, deadline)
        change(run)
        return found

    followed = operations.Operation.result
    monkeypatch.setattr(operations.Operation, "result", result)
    answer = run(count=4, idle_instances=run.vm_ids(0))
    assert answer["failed"] and said in answer["msg"]
    assert answer["model_changed"] and answer["waves"] == [] and run.aliases() == [2, 2, 2, 2] and run.generations() == [(1, 1)] * 4


def test_arms_word_that_an_instance_had_the_latest_model_holds_for_all_waves(run: Module) -> None:
    """The lab shows no security profile of an instance, so that a comparison later than the write would find a difference."""
    run.patch({"properties": {"virtualMachineProfile": {"securityProfile": {"encryptionAtHost": True}}}})
    every = {"instanceIds": ["*"]}
    run.azure.compute().virtual_machine_scale_sets.begin_update_instances(GROUP, "gpu", every, polling_interval=0).result()
    assert run(count=3, idle_instances=["0", "1"], batch_size=1)["waves"] == [["0"], ["1"]]


def test_success_without_effect_is_no_success(run: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    """Azure leaves a protected instance out of an upgrade, and does not say so."""
    begin = operations.begin

    def begun(client: t.Any, method: str, path: str, **given: t.Any) -> t.Any:
        if method == "POST":
            run.protect("1")
        return begin(client, method, path, **given)

    monkeypatch.setattr(operations, "begin", begun)
    answer = run(count=3, idle_instances=["0", "1"])
    assert answer["failed"] and "Azure reports success, but instances 1 do not have 3 addresses" in answer["msg"]
    assert run.aliases() == [3, 2, 2, 2]


# Addresses in use


def test_lowering_wants_to_know_what_is_in_use(run: Module) -> None:
    before = run.azure.current.fleet
    answer = run(count=1, idle_instances=run.vm_ids(0))
    assert answer["failed"] and "4 addresses and blocks of 4 instances would go" in answer["msg"] and "addresses_in_use" in answer["msg"]
    assert run.azure.current.fleet == before
    assert run(count=1, idle_instances=run.vm_ids(0), addresses_in_use=[])["waves"] == [["0"]]
    assert run.aliases() == [1, 2, 2, 2]


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("given", [{"count": 1}, {"blocks": 1}])
def test_lowering_is_refused_with_the_pods_in_the_way(run: Module, given: dict[str, int], check: bool) -> None:
    before = run.azure.current.fleet
    kept, going = run.instances()[3].secondary_addresses
    record = {"namespace": "train", "container_id": "c0ffee", "uid": "u", "network": "gpufleet", "host_interface": "gf0"}
    uses = [
        {**record, "address": kept, "pod": "stays"},
        {**record, "address": going, "pod": "worker-7", "instance": "gpu000003"},
        {**record, "address": "10.99.0.1", "pod": "elsewhere"},
    ]
    answer = run(**given, idle_instances=run.vm_ids(0), addresses_in_use=uses, check=check)
    assert answer["failed"] and f"{going} of pod train/worker-7 on gpu000003" in answer["msg"]
    assert {"address": going, "namespace": "train", "pod": "worker-7", "instance": "gpu000003"} in answer["in_use"]
    assert ("stays" in answer["msg"]) == ("blocks" in given) and "elsewhere" not in answer["msg"]
    assert run.azure.current.fleet == before


def test_a_pod_in_a_block_that_goes(run: Module) -> None:
    run(blocks=2, idle_instances=["1"], addresses_in_use=[])
    inside = run.instances()[1].secondary_addresses[20]
    answer = run(blocks=1, idle_instances=["1"], addresses_in_use=[{"address": inside, "namespace": "n", "pod": "p"}])
    assert answer["failed"] and f"{inside} of pod n/p" in answer["msg"]


# Flexible


def test_the_nics_of_flexible_instances_are_written_themselves(run: Module) -> None:
    answer = run(scale_set="flex", count=5, idle_instances=run.vm_ids(1, name="flex"))
    assert answer["model_changed"] and answer["waves"] == [[run.instances("flex")[1].name]]
    assert run.aliases("flex") == [2, 5] and len(run.model("flex")) == 6
    assert not run(scale_set="flex", count=5, idle_instances=run.vm_ids(1, name="flex"))["changed"]
    lowered = run(scale_set="flex", count=1, idle_instances=run.vm_ids(0, 1, name="flex"), addresses_in_use=[])
    assert len(lowered["waves"][0]) == 2 and run.aliases("flex") == [1, 1]
    nic = next(
        item
        for item in run.azure.network().network_interfaces.list(GROUP)
        if item.virtual_machine.id.endswith(run.instances("flex")[1].name)
    )
    assert [item.name for item in nic.ip_configurations] == ["primary", "alias001"]


def test_another_image_does_not_keep_a_nic_from_being_written(run: Module) -> None:
    reference = {"sku": "trixie", "offer": "debian-trixie"}
    run.patch({"properties": {"virtualMachineProfile": {"storageProfile": {"imageReference": reference}}}}, name="flex")
    assert run(scale_set="flex", count=3, idle_instances=run.vm_ids(0, name="flex"))["waves"]
    assert run.aliases("flex") == [3, 2] and run.instances("flex")[0].generation == 1


def test_a_nic_that_changes_under_the_write_is_not_written_over(run: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = operations.begin
    nics = run.azure.network().network_interfaces

    def begun(client: t.Any, method: str, path: str, **given: t.Any) -> t.Any:
        if method == "PUT":
            held = nics.get(GROUP, path.rpartition("/")[2])
            held.ip_configurations = held.ip_configurations[:1]
            nics.begin_create_or_update(GROUP, held.name, held, polling_interval=0).result()
        return begin(client, method, path, **given)

    monkeypatch.setattr(operations, "begin", begun)
    answer = run(scale_set="flex", count=3, idle_instances=run.vm_ids(0, name="flex"))
    assert answer["failed"] and "412 PreconditionFailed" in answer["msg"] and "run again" in answer["msg"]
    assert answer["changed"] and answer["model_changed"] and answer["waves"] == []
    assert run.aliases("flex") == [0, 2]


def test_a_nic_that_fails_does_not_hide_one_that_was_written(run: Module) -> None:
    run.patch({"properties": {"virtualMachineProfile": flex_model(run, 3)}}, name="flex")
    run.fault(method="PUT", path="networkInterfaces", status=409, code="OperationNotAllowed", after=1)
    answer = run(scale_set="flex", count=3, idle_instances=run.vm_ids(0, 1, name="flex"))
    assert answer["failed"] and "OperationNotAllowed" in answer["msg"]
    assert answer["changed"] and not answer["model_changed"] and run.aliases("flex") == [3, 2]
    assert run(scale_set="flex", count=3, idle_instances=run.vm_ids(0, 1, name="flex"))["waves"] == [[run.instances("flex")[1].name]]


def flex_model(run: Module, count: int) -> dict[str, t.Any]:
    """The Flexible set's NICs with so many aliases."""
    held = run.azure.current.fleet.scale_set("flex").model["virtualMachineProfile"]["networkProfile"]
    after = planner.changed_model({"properties": {"virtualMachineProfile": {"networkProfile": held}}}, planner.Aliases(count=count))
    return dict(after["properties"]["virtualMachineProfile"])


# Faults of Azure


def test_a_set_that_changes_between_reading_and_writing_is_not_written_over(run: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = module.Rollout.plan

    def planned(rollout: t.Any) -> t.Any:
        found = plan(rollout)
        run.patch({"tags": {"owner": "other"}})
        return found

    monkeypatch.setattr(module.Rollout, "plan", planned)
    answer = run(count=5, idle_instances=run.vm_ids(0))
    assert answer["failed"] and "412 PreconditionFailed" in answer["msg"] and "somebody else has changed it" in answer["msg"]
    assert not answer["changed"] and len(run.model()) == 3 and run.aliases() == [2, 2, 2, 2]


@pytest.mark.parametrize(
    ("method", "path"), [("PATCH", "virtualMachineScaleSets/gpu"), ("POST", "manualupgrade"), ("GET", "virtualMachines")]
)
@pytest.mark.parametrize(("status", "code"), [(429, "TooManyRequests"), (409, "Conflict")])
def test_a_refusal_that_says_when_to_come_again_is_waited_out(run: Module, method: str, path: str, status: int, code: str) -> None:
    met = run.fault(method=method, path=path, status=status, code=code, retry_after=1, times=1)
    assert run(count=3, idle_instances=["0"])["waves"] == [["0"]]
    assert met.seen >= 2 and run.aliases() == [3, 2, 2, 2]


def test_a_conflict_that_does_not_say_when_is_an_error(run: Module) -> None:
    run.fault(method="POST", path="manualupgrade", status=409, code="OperationNotAllowed")
    answer = run(count=3, idle_instances=["0"])
    assert answer["failed"] and "409 OperationNotAllowed" in answer["msg"] and answer["changed"] and answer["waves"] == []


@pytest.mark.parametrize("method", ["PATCH", "POST"])
def test_a_failed_operation_is_said_in_azures_words(run: Module, method: str) -> None:
    run.fault(method=method, path="virtualMachineScaleSets/gpu", operation="failed")
    answer = run(count=3, idle_instances=run.vm_ids(0, 1, 2), batch_size=1)
    assert answer["failed"] and "InternalExecutionError" in answer["msg"] and answer["waves"] == []
    assert answer["changed"] is (method == "POST") and run.aliases() == [2, 2, 2, 2]
    # And the next run finishes what was begun.
    assert run(count=3, idle_instances=run.vm_ids(0, 1, 2), batch_size=3)["waves"] == [["0", "1", "2"]]


def test_an_operation_without_end(run: Module) -> None:
    run.fault(method="POST", path="manualupgrade", operation="never")
    answer = run(count=3, idle_instances=["0"], timeout=1)
    assert answer["failed"] and "has not ended in time" in answer["msg"] and "/operations/" in answer["msg"]


def test_a_write_whose_answer_is_lost_may_have_come_through(run: Module) -> None:
    met = run.fault(method="PATCH", path="virtualMachineScaleSets/gpu", answer="cut")
    answer = run(count=3, idle_instances=["0"])
    assert answer["failed"] and "cannot be written to" in answer["msg"] and answer["changed"] and met.seen == 1
    assert run(count=3, idle_instances=["0"])["waves"] == [["0"]]


def test_a_subnet_without_room(run: Module) -> None:
    answer = run(count=255, idle_instances=run.vm_ids(0, 1, 2, 3))
    assert answer["failed"] and "SubnetIsFull" in answer["msg"] and answer["waves"] == []


def test_a_policy_that_would_change_all_at_once_is_refused(run: Module) -> None:
    run.patch({"properties": {"upgradePolicy": {"mode": "Automatic"}}})
    before = run.azure.current.fleet
    answer = run(count=3, idle_instances=["0"])
    assert answer["failed"] and "upgradePolicy.mode Automatic" in answer["msg"]
    assert run.azure.current.fleet == before
    assert not run(count=2)["changed"]


def test_an_azure_that_does_not_know_blocks(run: Module) -> None:
    older = {"path": "api-version=2026-04-01", "status": 400, "code": "InvalidApiVersionParameter", "times": 1000}
    run.fault(**older)
    assert run(count=3, idle_instances=["0"])["waves"] == [["0"]]
    answer = run(blocks=1, addresses_in_use=[])
    assert answer["failed"] and "does not know version 2026-04-01" in answer["msg"]


# Input


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "one of the following is required: count, blocks"),
        ({"count": 1, "blocks": 1}, "mutually exclusive"),
        ({"count": -1}, "count: -1 is too small"),
        ({"count": 256}, "at most 255 are possible here"),
        ({"count": 3, "batch_size": 0}, "batch_size: 0 is too small; at least 1"),
        ({"count": 3, "scale_set": "gpuu"}, "ResourceNotFound"),
        ({"count": 3, "scale_set": "a/b"}, "scale_set: 'a/b' is not a name"),
        ({"count": 3, "resource_group": "other"}, "correct resource_group"),
        ({"count": 3, "idle_instances": ["7"]}, "idle_instances: scale set gpu has no instance '7'"),
        ({"count": 3, "idle_instances": ["gpu_00"]}, "did you mean gpu_0?"),
        ({"count": 3, "allow_model_drift": ["x"]}, "allow_model_drift: scale set gpu has no instance 'x'"),
        ({"count": 3, "addresses_in_use": [{"pod": "p"}]}, "addresses_in_use, entry 1: address None is no IP address"),
        ({"count": 3, "subscription_id": "00000000-0000-0000-0000-000000000000"}, "correct subscription_id"),
        ({"count": 3, "client_secret": "hunter2"}, "AADSTS7000215"),
        ({"count": 3, "env_file": "nowhere.env"}, "env_file nowhere.env does not exist"),
        ({"count": 3, "authority": "https://127.0.0.1:1"}, "connection refused"),
    ],
)
def test_what_is_wrong_is_one_line_and_changes_nothing(run: Module, given: dict[str, t.Any], said: str) -> None:
    before = run.azure.current.fleet
    answer = run(**given)
    assert answer["failed"] and said in answer["msg"] and "\n" not in answer["msg"]
    assert "hunter2" not in json.dumps(answer) and run.azure.current.fleet == before


def test_env_file_means_one_azure_whatever_the_shell_says(run: Module, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "other.env"
    file.write_text("".join(f"{key}={value}\n" for key, value in run.azure.service.environment.items()), encoding="utf-8")
    monkeypatch.setenv("AZURE_CLIENT_SECRET", "of-another-one")
    monkeypatch.setenv("AZURE_SUBSCRIPTION_ID", "00000000-0000-0000-0000-000000000000")
    assert run(count=2, env_file=str(file))["changed"] is False
