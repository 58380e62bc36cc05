# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What writes make of a fleet, as tables and as a property: whatever is asked for, the fleet stays one that can be."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import changes, description, effects, model
from lab.fleet import Fleet, build

DESCRIPTION = {
    "vnets": [{"name": "cluster", "address_space": "10.1.0.0/16", "subnets": [{"name": "nodes", "prefix": "10.1.0.0/25"}]}],
    "scale_sets": [
        {
            "name": name,
            "sku": "Standard_D8s_v5",
            "vnet": "cluster",
            "subnet": "nodes",
            "instances": 2,
            "ip_configurations": 3,
            "orchestration": mode,
        }
        for name, mode in (("one", "Uniform"), ("two", "Flexible"))
    ],
}


def fleet() -> Fleet:
    return build(description.parse(DESCRIPTION), prefix="t", public_key="key")


def vm_ids(built: Fleet, name: str = "one") -> list[str]:
    return [item.vm_id for item in built.instances_of(name)]


def kinds(before: Fleet, after: Fleet) -> list[str]:
    return [step.kind for step in effects.steps(before, after)]


def with_aliases(built: Fleet, count: int, *, length: int = 32) -> Fleet:
    """The set's model with ``count`` more ipConfigurations."""
    latest = model.merged(built.scale_set("one").model, {})
    profile = latest["virtualMachineProfile"]
    interface = profile["networkProfile"]["networkInterfaceConfigurations"][0]
    start = len(interface["properties"]["ipConfigurations"])
    more = [
        {"name": f"more{start + number}", "properties": {"primary": False, "privateIPAddressPrefixLength": length}}
        for number in range(count)
    ]
    nic = {
        **interface,
        "properties": {**interface["properties"], "ipConfigurations": [*interface["properties"]["ipConfigurations"], *more]},
    }
    latest = model.merged(latest, {"virtualMachineProfile": {"networkProfile": {"networkInterfaceConfigurations": [nic]}}})
    return changes.rewrite(built, "one", built.scale_set("one").document, latest)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda built: changes.resize(built, "one", 3), ["create"]),
        (lambda built: changes.resize(built, "one", 0), ["remove", "remove"]),
        (lambda built: changes.reimage(built, "one", vm_ids(built)[:1]), ["reimage"]),
        (lambda built: changes.restart(built, "two", vm_ids(built, "two")), ["restart", "restart"]),
        (lambda built: changes.set_power(built, "one", vm_ids(built)[:1], "deallocated"), ["stop"]),
        (lambda built: changes.replace(built, "one", vm_ids(built)[:1]), ["remove", "create"]),
        (lambda built: changes.upgrade(with_aliases(built, 2), "one", vm_ids(built)), ["rewire", "rewire"]),
        (lambda built: with_aliases(built, 2), []),
        (lambda built: built, []),
    ],
)
def test_only_what_was_asked_happens_to_the_nodes(change: t.Callable[[Fleet], Fleet], expected: list[str]) -> None:
    built = fleet()
    assert kinds(built, change(built)) == expected


def test_stubs_have_no_node() -> None:
    stubs = {**DESCRIPTION, "scale_sets": [{**item, "kind": "stub"} for item in DESCRIPTION["scale_sets"]]}  # type: ignore[dict-item]
    built = build(description.parse(stubs), prefix="t", public_key="")
    assert kinds(built, changes.reimage(changes.resize(built, "one", 5), "two", vm_ids(built, "two"))) == []


def test_a_started_instance_boots_and_a_stopped_one_is_not_restarted() -> None:
    built = fleet()
    stopped = changes.set_power(built, "one", vm_ids(built)[:1], "stopped")
    assert kinds(stopped, changes.restart(stopped, "one", vm_ids(built)[:1])) == []
    started = changes.set_power(stopped, "one", vm_ids(built)[:1], "running")
    assert kinds(stopped, started) == ["start"]


def test_a_replaced_machine_has_its_old_name_and_nothing_else_of_the_old() -> None:
    built = fleet()
    after = changes.replace(built, "one", vm_ids(built)[:1])
    old, new = built.instances_of("one")[0], next(item for item in after.instances_of("one") if item.index == 0)
    assert (new.name, new.computer_name) == (old.name, old.computer_name)
    assert new.vm_id != old.vm_id and new.mac != old.mac
    assert not set(new.addresses) & set(old.addresses)


def test_an_upgrade_reimages_when_the_image_is_among_the_differences() -> None:
    built = fleet()
    latest = model.merged(
        with_aliases(built, 1).scale_set("one").model, {"virtualMachineProfile": {"storageProfile": {"imageReference": {"sku": "trixie"}}}}
    )
    written = changes.rewrite(built, "one", built.scale_set("one").document, latest)
    assert kinds(written, changes.upgrade(written, "one", vm_ids(built)[:1])) == ["rewire", "reimage"]


def test_upgraded_addresses_keep_those_that_were_there() -> None:
    built = fleet()
    after = changes.upgrade(with_aliases(built, 2), "one", vm_ids(built))
    for old, new in zip(built.instances_of("one"), after.instances_of("one"), strict=True):
        assert new.addresses[: len(old.addresses)] == old.addresses


def test_old_models_are_forgotten_when_nobody_has_them() -> None:
    built = with_aliases(fleet(), 1)
    assert set(built.scale_set("one").models) == {1, 2}
    half = changes.upgrade(built, "one", vm_ids(built)[:1])
    assert set(half.scale_set("one").models) == {1, 2}
    assert set(changes.upgrade(half, "one", vm_ids(built)).scale_set("one").models) == {2}


def test_a_subnet_that_is_full_refuses_and_names_itself() -> None:
    with pytest.raises(changes.ChangeError, match=r"nodes with address prefix 10\.1\.0\.0/25") as caught:
        changes.resize(fleet(), "one", 50)
    assert caught.value.code == "SubnetIsFull"


def test_while_it_changes_both_fleets_are_seen() -> None:
    built = fleet()
    after = changes.resize(changes.delete(built, "one", vm_ids(built)[:1]), "two", 3)
    states = {item.name: item.provisioning for item in changes.busy(built, after).instances}
    assert states.pop("one_0") == "Deleting"
    assert sorted(states.values()) == ["Creating", "Succeeded", "Succeeded", "Succeeded"]
    assert [item.provisioning for item in changes.failed(built, after).instances].count("Failed") == 1


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["resize", "delete", "replace", "reimage", "restart", "stop", "start", "alias", "block", "upgrade"]),
        st.sampled_from(["one", "two"]),
        st.integers(0, 6),
    ),
    max_size=12,
)


def step(built: Fleet, operation: str, name: str, number: int) -> Fleet:
    members = vm_ids(built, name)
    some = members[: number % (len(members) + 1)]
    match operation:
        case "resize":
            return changes.resize(built, name, number)
        case "delete":
            return changes.delete(built, name, some)
        case "replace":
            return changes.replace(built, name, some)
        case "reimage":
            return changes.reimage(built, name, some)
        case "restart":
            return changes.restart(built, name, some)
        case "stop":
            return changes.set_power(built, name, some, "stopped")
        case "start":
            return changes.set_power(built, name, some, "running")
        case "alias":
            return with_aliases(built, 1) if len(model.configurations(built.scale_set("one").model)) < 5 else built
        case "block":
            return with_aliases(built, 1, length=28) if len(model.configurations(built.scale_set("one").model)) == 3 else built
        case _:
            return changes.upgrade(built, name, some)


@given(OPERATIONS)
def test_any_sequence_of_writes_leaves_a_fleet_that_can_be(operations: list[tuple[str, str, int]]) -> None:
    built = fleet()
    seen = {item.vm_id for item in built.instances}
    for operation, name, number in operations:
        before = built
        try:
            built = step(built, operation, name, number)
        except changes.ChangeError:
            continue
        addresses = [address for item in built.instances for address in item.addresses]
        assert len(addresses) == len(set(addresses)), "an address belongs to one NIC"
        for attribute in ("vm_id", "mac", "computer_name"):
            values = [getattr(item, attribute) for item in built.instances]
            assert len(values) == len(set(values)), attribute
        fresh = {item.vm_id for item in built.instances} - {item.vm_id for item in before.instances}
        assert not fresh & seen, "an identity never comes again"
        seen |= fresh
        # What is seen on the way, and what is left after a failure, can be read like any other fleet.
        for shown in (built, changes.busy(before, built), changes.failed(before, built)):
            assert all(shown.model_of(item) for item in shown.instances)
        assert dataclasses.replace(built) == built
