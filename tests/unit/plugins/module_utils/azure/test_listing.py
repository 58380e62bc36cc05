# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fleets that change while they are listed, and answers that are not whole."""

from __future__ import annotations

import typing as t

import documents as arm
import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import fleet, listing
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.account import Account
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.errors import ArmError, AzureError, IncompleteError, UnavailableError
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.listing import Listing
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.scope import Scope

SETS, MACHINES, INTERFACES = "/virtualMachineScaleSets", "/virtualMachines", "/networkInterfaces"
Pages = list[list[arm.Document]]


def nic(number: int, *, name: str = "gpua") -> arm.Document:
    return arm.interface(f"{arm.set_id(name)}/virtualMachines/{number}", [arm.configuration(f"10.1.0.{number + 4}", primary=True)])


class Arm:
    """Answers by the last part of a path: each reading of it is one entry, the last of them for ever. An error is raised."""

    def __init__(self, **answers: t.Sequence[Pages | Exception]) -> None:
        sets: list[Pages | Exception] = [[[arm.scale_set()]]]
        self._answers = {SETS: sets, MACHINES: list(answers["machines"]), INTERFACES: list(answers["interfaces"])}
        if "sets" in answers:
            self._answers[SETS] = list(answers["sets"])
        self.asked: list[str] = []

    def pages(self, path: str, make: t.Callable[[list[t.Any]], t.Any], *, api_version: str, **parameters: str) -> list[t.Any]:
        assert api_version and isinstance(parameters, dict)
        self.asked.append(path)
        answers = self._answers[f"/{path.rpartition('/')[2]}"]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return [make(page) for page in answer]

    def rows(self, query: str, make: t.Any, *, subscription_ids: t.Sequence[str]) -> list[t.Any]:
        raise NotImplementedError


def read(reader: Arm, **scope: t.Any) -> tuple[fleet.Instance, ...]:
    return Listing([Account(reader=reader, subscription_ids=(arm.SUBSCRIPTION,))], Scope(**scope), parallel=1).read()


def test_an_instance_that_goes_between_two_lists_is_not_there() -> None:
    reader = Arm(
        machines=[[[arm.uniform(0), arm.uniform(1)]], [[arm.uniform(0)]]],
        interfaces=[[[nic(0)]]],
    )
    assert [item.instance_id for item in read(reader)] == ["0"]


def test_an_instance_that_comes_between_two_lists_waits_for_the_next_reading() -> None:
    reader = Arm(machines=[[[arm.uniform(0)]]], interfaces=[[[nic(0), nic(1)]]])
    assert [item.instance_id for item in read(reader)] == ["0"]


def test_an_instance_that_stays_without_interface_is_no_whole_answer() -> None:
    reader = Arm(machines=[[[arm.uniform(0), arm.uniform(1)]]], interfaces=[[[nic(0)]]])
    with pytest.raises(IncompleteError, match=r"virtualMachines/1 is running, but ARM lists no network interface"):
        read(reader)
    assert sum(path.endswith(MACHINES) for path in reader.asked) == listing.READS_OF_A_SET


def test_what_two_pages_hold_counts_once() -> None:
    reader = Arm(
        machines=[[[arm.uniform(0), arm.uniform(1)], [arm.uniform(1), arm.uniform(2)]]],
        interfaces=[[[nic(0), nic(1)], [nic(1), nic(2)]]],
    )
    found = read(reader)
    assert [(item.instance_id, item.primary_address, item.alias_addresses) for item in found] == [
        (str(number), f"10.1.0.{number + 4}", ()) for number in range(3)
    ]


def test_an_interface_without_instance_is_left_alone() -> None:
    free = {"id": "/somewhere/free", "properties": {"virtualMachine": None, "ipConfigurations": [{"properties": None}, None]}}
    reader = Arm(machines=[[[arm.uniform(0)]]], interfaces=[[[free, nic(0), nic(7)]]])
    assert [item.primary_address for item in read(reader)] == ["10.1.0.4"]


def test_a_hundred_thousand_tags_and_names_of_any_script() -> None:
    tags = {f"größe-{number}": f"値-{number}" for number in range(100_000)}
    reader = Arm(machines=[[[{**arm.uniform(0), "tags": {**tags, "ansible_host": "evil"}}]]], interfaces=[[[nic(0)]]])
    (found,) = read(reader)
    assert len(found.tags) == 100_001 and found.tags["größe-7"] == "値-7"
    assert found.primary_address == "10.1.0.4"


@pytest.mark.parametrize("where", ["machines", "interfaces"])
@pytest.mark.parametrize(
    "error", [ArmError("403", status=403, code="AuthorizationFailed"), AzureError("page 2 holds null"), UnavailableError("cut")]
)
def test_a_page_that_cannot_be_had_after_the_list_of_sets_is_a_part(where: str, error: Exception) -> None:
    answers: dict[str, t.Any] = {"machines": [[[arm.uniform(0)]]], "interfaces": [[[nic(0)]]], where: [error]}
    with pytest.raises(IncompleteError, match=str(error)):
        read(Arm(**answers))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ArmError("503", status=503, code=""), UnavailableError),
        (ArmError("429", status=429, code=""), UnavailableError),
        (UnavailableError("refused"), UnavailableError),
        (ArmError("403", status=403, code="AuthorizationFailed"), ArmError),
    ],
)
def test_no_list_of_sets_is_no_answer(error: Exception, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=str(error)):
        read(Arm(sets=[error], machines=[[]], interfaces=[[]]))


def test_each_set_is_asked_through_the_account_of_its_subscription() -> None:
    other = "99999999-2222-4333-8444-555555555555"
    moved = {**arm.scale_set("gpub"), "id": arm.set_id("gpub").replace(arm.SUBSCRIPTION, other)}
    first = Arm(machines=[[[arm.uniform(0)]]], interfaces=[[[nic(0)]]])
    second = Arm(sets=[[[moved]]], machines=[[[]]], interfaces=[[[]]])
    accounts = [Account(reader=first, subscription_ids=(arm.SUBSCRIPTION,)), Account(reader=second, subscription_ids=(other,))]
    assert len(Listing(accounts, Scope(), parallel=4).read()) == 1
    assert all(arm.SUBSCRIPTION in path for path in first.asked) and all(other in path for path in second.asked)
    assert len(first.asked) == len(second.asked) == 3


def test_parallel_reading_gives_the_same_order() -> None:
    machines = [[[arm.uniform(number) for number in (3, 1, 2)]]]
    reader = Arm(machines=machines, interfaces=[[[nic(number) for number in (2, 3, 1)]]])
    assert [item.instance_id for item in read(reader)] == ["1", "2", "3"]
