# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many reads in one request, by Azure's own pipeline; azure_rm, which lives by it, is in tests/peers."""

from __future__ import annotations

import time
import typing as t

import pytest
from azure.core.rest import HttpRequest, HttpResponse
from azure.mgmt.compute import ComputeManagementClient

LIMIT_SECONDS = 30


@pytest.fixture
def compute(fresh_azure: t.Any) -> ComputeManagementClient:
    client: ComputeManagementClient = fresh_azure.compute(retry_total=0)
    return client


def batch(compute: ComputeManagementClient, requests: t.Any) -> HttpResponse:
    return compute.send_request(HttpRequest("POST", "/batch?api-version=2015-11-01", json={"requests": requests}))


def reads(fresh_azure: t.Any, count: int) -> list[dict[str, str]]:
    path = f"/subscriptions/{fresh_azure.subscription}/resourceGroups/gpufleet-lab/providers/Microsoft.Compute/virtualMachineScaleSets"
    return [{"httpMethod": "GET", "name": f"n{number}", "url": f"{path}/gpua?api-version=2024-07-01"} for number in range(count)]


def test_few_are_answered_at_once_each_with_its_own_status(fresh_azure: t.Any, compute: ComputeManagementClient) -> None:
    wanted = [*reads(fresh_azure, 1), {"name": "x", "relativeUrl": "/subscriptions/none?api-version=2022-12-01"}, {"url": "/nothing"}]
    done = batch(compute, wanted)
    assert done.status_code == 200
    found, absent, nothing = done.json()["responses"]
    assert (found["name"], found["httpStatusCode"], found["content"]["name"]) == ("n0", 200, "gpua")
    assert (absent["name"], absent["httpStatusCode"]) == ("x", 404)
    assert (nothing["httpStatusCode"], nothing["content"]["error"]["code"]) == (404, "InvalidResourceType")


def test_many_are_answered_later(fresh_azure: t.Any, compute: ComputeManagementClient) -> None:
    done = batch(compute, reads(fresh_azure, 21))
    assert done.status_code == 202
    assert "Azure-AsyncOperation" not in done.headers
    later = done
    for _ in range(LIMIT_SECONDS):
        later = compute.send_request(HttpRequest("GET", done.headers["Location"]))
        if later.status_code != 202:
            break
        time.sleep(int(later.headers["Retry-After"]))
    assert later.status_code == 200, later.text()
    assert [item["name"] for item in later.json()["responses"]] == [f"n{number}" for number in range(21)]


def test_reads_in_it_meet_faults(fresh_azure: t.Any, compute: ComputeManagementClient) -> None:
    fresh_azure.service.faults.add({"path": "gpua", "status": 429, "retry_after": 3})
    first, second = batch(compute, reads(fresh_azure, 2)).json()["responses"]
    assert sorted([first["httpStatusCode"], second["httpStatusCode"]]) == [200, 429]


@pytest.mark.parametrize(
    ("requests", "words"),
    [
        (None, "a list of objects"),
        ([], "a list of objects"),
        (["x"], "a list of objects"),
        ([{"url": "/", "name": "x"}] * 501, "At most 500"),
        ([{"url": "/"}] * 21, "each needs a name"),
        ([{"httpMethod": "PUT", "url": "/"}], "reads alone"),
    ],
)
def test_what_makes_no_sense_is_refused(compute: ComputeManagementClient, requests: t.Any, words: str) -> None:
    done = batch(compute, requests)
    assert done.status_code == 400
    assert words in done.json()["error"]["message"]
