# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often ARM is asked again, and what is said when that was in vain."""

from __future__ import annotations

import functools
import time
import typing as t

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import client, clouds
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.credentials import Login
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.errors import ArmError, UnavailableError


@pytest.fixture
def waited(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were waited for; nobody really waits."""
    seconds: list[float] = []
    monkeypatch.setattr(time, "sleep", seconds.append)
    return seconds


def sets(azure: t.Any) -> list[dict[str, t.Any]]:
    known = azure.environment
    login = Login(
        source="environment",
        tenant_id=known["AZURE_TENANT_ID"],
        client_id=known["AZURE_CLIENT_ID"],
        client_secret=known["AZURE_CLIENT_SECRET"],
    )
    endpoint, ca_file = known["GPUFLEET_ARM_ENDPOINT"], known["GPUFLEET_CA_FILE"]
    cloud = clouds.choose("AzureCloud", arm_endpoint=endpoint, authority=endpoint, ca_file=ca_file)
    path = f"/subscriptions/{known['AZURE_SUBSCRIPTION_ID']}/providers/Microsoft.Compute/virtualMachineScaleSets"
    with client.Client(login=login, cloud=cloud, parallel=1) as opened:
        return [item for page in opened.pages(path, list, api_version="2024-07-01") for item in page]


@pytest.fixture
def fault(fault: t.Any) -> t.Callable[..., t.Any]:
    """One of the list of scale sets."""
    return functools.partial(fault, path="/virtualMachineScaleSets")


@pytest.mark.parametrize(("status", "said"), [(429, "still throttled after 8 retries"), (503, "still so after 8 retries")])
def test_a_page_is_asked_for_as_often_as_the_message_says(azure: t.Any, fault: t.Any, waited: list[float], status: int, said: str) -> None:
    met = fault(status=status, times=100)
    with pytest.raises(ArmError, match=said):
        sets(azure)
    assert met.seen == 1 + client.RETRIES
    assert max(waited) <= client.BACKOFF_MAX_SECONDS and sum(waited) < client.PAGE_SECONDS


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_fault_that_passes_is_waited_out(azure: t.Any, fault: t.Any, waited: list[float], status: int) -> None:
    fault(status=status, times=client.RETRIES)
    assert {item["name"] for item in sets(azure)} == {"gpua", "cpub", "many", "flex"}
    assert waited


def test_azure_s_own_word_for_how_long_is_kept(azure: t.Any, fault: t.Any, waited: list[float]) -> None:
    fault(status=429, times=1, retry_after=17)
    sets(azure)
    assert waited == [pytest.approx(17, abs=0.5)]


def test_a_wait_that_is_longer_than_a_page_may_take_is_not_waited_for(azure: t.Any, fault: t.Any, waited: list[float]) -> None:
    met = fault(status=429, times=100, retry_after=client.PAGE_SECONDS)
    with pytest.raises(ArmError, match="still throttled"):
        sets(azure)
    assert met.seen == 1 and waited == []


def test_a_connection_that_is_cut_in_the_middle_is_made_again(azure: t.Any, fault: t.Any, waited: list[float]) -> None:
    met = fault(answer="cut", times=2)
    assert len(sets(azure)) == 4
    assert met.seen == 3


def test_a_connection_that_is_always_cut_is_an_answer_that_cannot_be_had(azure: t.Any, fault: t.Any, waited: list[float]) -> None:
    met = fault(answer="cut", times=100)
    with pytest.raises(UnavailableError, match="cannot be read"):
        sets(azure)
    assert met.seen == 1 + client.RETRIES


def test_what_will_not_change_is_not_asked_for_again(azure: t.Any, fault: t.Any, waited: list[float]) -> None:
    met = fault(status=403, times=100)
    with pytest.raises(ArmError, match="403 AuthorizationFailed"):
        sets(azure)
    assert met.seen == 1 and waited == []
