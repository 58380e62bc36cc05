# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults on demand, throttling, and what Azure's own client makes of them."""

from __future__ import annotations

import typing as t

import pytest
from azure.core.exceptions import HttpResponseError, IncompleteReadError, ServiceResponseError
from azure.mgmt.compute import ComputeManagementClient

from lab.azure import throttles
from lab.azure.faults import FaultError, Faults, parse

GROUP = "gpufleet-lab"


@pytest.fixture
def compute(fresh_azure: t.Any) -> ComputeManagementClient:
    client: ComputeManagementClient = fresh_azure.compute(retry_total=0)
    return client


def names(compute: ComputeManagementClient) -> list[str | None]:
    return [item.name for item in compute.virtual_machine_scale_sets.list(GROUP)]


@pytest.mark.parametrize(
    ("status", "code"),
    [(403, "AuthorizationFailed"), (409, "OperationNotAllowed"), (500, "InternalServerError"), (503, "ServiceUnavailable")],
)
def test_a_status_that_was_asked_for(fresh_azure: t.Any, compute: ComputeManagementClient, status: int, code: str) -> None:
    fresh_azure.service.faults.add({"path": "virtualMachineScaleSets", "status": status})
    with pytest.raises(HttpResponseError) as caught:
        names(compute)
    assert caught.value.status_code == status
    assert caught.value.error and caught.value.error.code == code
    assert len(names(compute)) == 4, "only the first request met it"


def test_a_client_that_retries_waits_as_long_as_it_is_told(fresh_azure: t.Any) -> None:
    fresh_azure.service.faults.add({"path": "virtualMachineScaleSets", "status": 429, "retry_after": 0, "times": 2})
    assert len(names(fresh_azure.compute())) == 4
    assert fresh_azure.service.faults.active[0].seen == 3


def test_a_connection_that_is_cut(fresh_azure: t.Any, compute: ComputeManagementClient) -> None:
    fresh_azure.service.faults.add({"path": "virtualMachineScaleSets", "answer": "cut"})
    with pytest.raises((ServiceResponseError, IncompleteReadError, HttpResponseError)):
        names(compute)


def test_the_second_page_can_fail_alone(fresh_azure: t.Any, compute: ComputeManagementClient) -> None:
    fresh_azure.service.faults.add({"path": "skiptoken", "status": 500})
    listed = iter(compute.virtual_machine_scale_set_vms.list(GROUP, "many"))
    assert len({next(listed).instance_id for _ in range(100)}) == 100
    with pytest.raises(HttpResponseError):
        next(listed)


def test_a_page_can_come_again(fresh_azure: t.Any, compute: ComputeManagementClient) -> None:
    fresh_azure.service.faults.add({"path": "many/virtualMachines", "answer": "repeat_page"})
    listed = [item.instance_id for item in compute.virtual_machine_scale_set_vms.list(GROUP, "many")]
    assert len(listed) == 330 and len(set(listed)) == 230


def test_a_list_can_hold_null(fresh_azure: t.Any, compute: ComputeManagementClient) -> None:
    fresh_azure.service.faults.add({"path": "virtualMachineScaleSets", "answer": "null_item"})
    assert next(iter(compute.virtual_machine_scale_sets.list(GROUP))) is None


def test_latency_comes_first(fresh_azure: t.Any) -> None:
    fresh_azure.service.faults.add({"path": "virtualMachineScaleSets", "latency": 3.0})
    with pytest.raises(ServiceResponseError):
        list(fresh_azure.compute(retry_total=0, read_timeout=0.2).virtual_machine_scale_sets.list(GROUP))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"pth": "x", "status": 500}, "did you mean path"),
        ({"path": "x"}, "needs one of latency, status, answer, operation"),
        ({"path": "(", "status": 500}, "no regular expression"),
        ({"status": 418}, "status is 418"),
        ({"answer": "nonsense"}, "answer is 'nonsense'"),
        ({"status": 500, "times": -1}, "times is -1"),
        (["x"], "a mapping"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(document: t.Any, message: str) -> None:
    with pytest.raises(FaultError, match=message.replace("(", r"\(")):
        parse(document)


def test_faults_count_what_they_match_alone() -> None:
    faults = Faults()
    faults.add({"path": "a", "status": 500, "after": 1, "times": 2})
    assert [bool(faults.take("GET", path)) for path in ("/a", "/b", "/a", "/a", "/a")] == [False, False, True, True, False]


def test_buckets_empty_and_fill_again() -> None:
    now = [0.0]
    buckets = throttles.Throttles(lambda: now[0])

    def ask(resource: str = "one") -> throttles.Verdict:
        return buckets.ask("PATCH", throttles.UPDATE_SET, principal="p", subscription="s", resource=resource)

    verdicts = [ask() for _ in range(13)]
    assert [verdict.retry_after for verdict in verdicts] == [0] * 12 + [15]
    assert verdicts[0].headers == {
        "x-ms-ratelimit-remaining-subscription-writes": "199",
        "x-ms-ratelimit-remaining-resource": "Microsoft.Compute/UpdateVMScaleSetResource;11,Microsoft.Compute/UpdateVMScaleSetSubscription;1499",
    }
    assert verdicts[-1].policy == "Microsoft.Compute/UpdateVMScaleSetResource"
    assert ask("two").retry_after == 0, "another resource has a bucket of its own"
    now[0] += 14.9
    assert ask().retry_after == 1
    now[0] += 0.2
    assert ask().retry_after == 0


def test_who_asks_too_much_is_told_how_long_to_wait(fresh_azure: t.Any, compute: ComputeManagementClient) -> None:
    for _ in range(30):
        compute.virtual_machine_scale_sets.get_instance_view(GROUP, "gpua")
    with pytest.raises(HttpResponseError) as caught:
        compute.virtual_machine_scale_sets.get_instance_view(GROUP, "gpua")
    assert caught.value.status_code == 429
    assert caught.value.response and int(caught.value.response.headers["Retry-After"]) in (5, 6)
