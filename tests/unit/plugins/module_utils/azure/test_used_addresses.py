# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pods hold addresses that are to go."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import used_addresses
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.errors import AzureError

# As a node keeps it.
RECORD = {
    "address": "10.0.0.17",
    "namespace": "train",
    "pod": "worker-0",
    "container_id": "c0ffee",
    "uid": "0a1b",
    "network": "gpufleet",
    "host_interface": "gf0",
}


def used(*addresses: str) -> list[used_addresses.Use]:
    return used_addresses.parse({**RECORD, "address": address} for address in addresses)


def test_a_nodes_record_is_taken_as_it_is() -> None:
    (use,) = used_addresses.parse([RECORD])
    assert str(use) == "10.0.0.17 of pod train/worker-0"
    (use,) = used_addresses.parse([{**RECORD, "instance": "gpu000003"}])
    assert str(use) == "10.0.0.17 of pod train/worker-0 on gpu000003"


def test_without_a_pods_name_the_container_is_named() -> None:
    (use,) = used_addresses.parse([{**RECORD, "namespace": "", "pod": "", "container_id": "0123456789abcdef"}])
    assert str(use) == "10.0.0.17 of pod -/0123456789ab"


@pytest.mark.parametrize("entry", [{}, {"address": None}, {"address": "10.0.0.300"}, {"address": "10.0.0.0/28"}])
def test_an_entry_without_an_address(entry: dict[str, t.Any]) -> None:
    with pytest.raises(AzureError, match=r"addresses_in_use, entry 2: address .* is no IP address"):
        used_addresses.parse([RECORD, entry])


@pytest.mark.parametrize(
    ("leaving", "expected"),
    [
        ([], []),
        (["10.0.0.5"], ["10.0.0.5"]),
        (["10.0.0.6"], []),
        # The first and the last one of a block, and none beside it.
        (["10.0.0.16/28"], ["10.0.0.16", "10.0.0.31"]),
        (["10.0.0.48/28", "10.0.0.32"], ["10.0.0.32"]),
    ],
)
def test_who_is_in_the_way(leaving: list[str], expected: list[str]) -> None:
    uses = used("10.0.0.5", "10.0.0.15", "10.0.0.16", "10.0.0.31", "10.0.0.32", "fd00::5")
    assert [use.address for use in used_addresses.among(uses, leaving)] == expected


def test_a_long_list_is_one_line() -> None:
    text = used_addresses.refusal(used(*(f"10.0.0.{number}" for number in range(1, 31))))
    assert text.startswith("30 addresses that would go are in use: 10.0.0.1 of pod train/worker-0, ")
    assert "and 20 more; wait" in text and len(text) < 600
