# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter: what it takes, and that its own words say what is wrong."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gpufleet.vmss.plugins.filter.expand_addresses import FilterModule, expand_addresses


@pytest.mark.parametrize(
    ("value", "single"),
    [
        ("", []),
        ([], []),
        ("10.1.0.5", ["10.1.0.5"]),
        ("10.1.0.9-10.1.0.11", ["10.1.0.9", "10.1.0.10", "10.1.0.11"]),
        ("10.1.0.16/30,10.1.0.5", ["10.1.0.5", "10.1.0.16", "10.1.0.17", "10.1.0.18", "10.1.0.19"]),
        (["10.1.0.5-10.1.0.6", "10.1.0.6"], ["10.1.0.5", "10.1.0.6"]),
        (("10.1.0.255-10.1.1.0",), ["10.1.0.255", "10.1.1.0"]),
    ],
)
def test_every_address_once_and_sorted(value: t.Any, single: list[str]) -> None:
    assert expand_addresses(value) == single


@pytest.mark.parametrize("value", [5, None, {"a": 1}, ["10.1.0.5", 5]])
def test_other_kinds_are_refused_with_their_value(value: t.Any) -> None:
    with pytest.raises(AnsibleFilterError, match="expand_addresses wants a string of addresses or a list of them, not "):
        expand_addresses(value)


@pytest.mark.parametrize("value", ["10.1.0.300", "10.1.0.9-10.1.0.5", "10.1.0.5/99", "node1"])
def test_what_is_no_address_is_named(value: str) -> None:
    with pytest.raises(AnsibleFilterError, match=r"^expand_addresses: ") as caught:
        expand_addresses(value)
    assert value in str(caught.value)


def test_the_plugin_offers_it_by_its_name() -> None:
    assert FilterModule().filters() == {"expand_addresses": expand_addresses}
