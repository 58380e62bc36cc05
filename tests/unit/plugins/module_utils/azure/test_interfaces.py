# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import documents as arm
import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import interfaces
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.errors import AzureError

OWNER = f"{arm.set_id()}/virtualMachines/0"


def addresses(*documents: arm.Document) -> interfaces.Addresses:
    return interfaces.addresses([interfaces.interface(document) for document in documents])


@pytest.mark.parametrize(
    ("configurations", "primary", "aliases"),
    [
        ([], "", ()),
        ([arm.configuration("10.1.0.4")], "10.1.0.4", ()),
        ([arm.configuration("10.1.0.5"), arm.configuration("10.1.0.4", primary=True)], "10.1.0.4", ("10.1.0.5",)),
        ([arm.configuration(None, primary=True), arm.configuration(None)], "", ()),
        ([arm.configuration("10.1.0.4", primary=True), arm.configuration("10.1.0.16/28")], "10.1.0.4", ("10.1.0.16/28",)),
        (
            [arm.configuration("10.1.0.4", primary=True), arm.configuration("10.1.0.16", privateIPAddressPrefixLength=28)],
            "10.1.0.4",
            ("10.1.0.16/28",),
        ),
        (
            [arm.configuration("10.1.0.4", primary=True), arm.configuration("10.1.0.16/28", privateIPAddressPrefixLength=28)],
            "10.1.0.4",
            ("10.1.0.16/28",),
        ),
        ([arm.configuration("10.1.0.4/32", primary=True), arm.configuration("10.1.0.5/32")], "10.1.0.4", ("10.1.0.5",)),
        (
            [
                arm.configuration("10.1.0.4", primary=True),
                arm.configuration("fd00::4", privateIPAddressVersion="IPv6"),
                arm.configuration("10.1.0.5"),
            ],
            "10.1.0.4",
            ("10.1.0.5",),
        ),
    ],
)
def test_addresses(configurations: list[arm.Document], primary: str, aliases: tuple[str, ...]) -> None:
    assert addresses(arm.interface(OWNER, configurations)) == interfaces.Addresses(primary=primary, aliases=aliases)


def test_addresses_of_two_interfaces() -> None:
    second = arm.interface(OWNER, [arm.configuration("10.9.0.4", primary=True), arm.configuration("10.9.0.5")], name="nic1", primary=False)
    first = arm.interface(OWNER, [arm.configuration("10.1.0.4", primary=True), arm.configuration("10.1.0.5")])
    assert addresses(second, first) == interfaces.Addresses(primary="10.1.0.4", aliases=("10.9.0.5", "10.1.0.5"))


@pytest.mark.parametrize(
    ("address", "length"),
    [("10.1.0.400", None), ("10.1.0.17", 28), ("10.1.0.16/28", 27), ("10.1.0.16", 40)],
)
def test_addresses_that_cannot_be(address: str, length: int | None) -> None:
    wrong = arm.configuration(address, privateIPAddressPrefixLength=length)
    with pytest.raises(AzureError, match="virtualMachines/0/networkInterfaces/nic0: ARM gives"):
        addresses(arm.interface(OWNER, [wrong]))


def test_an_interface_on_two_pages_counts_once_as_the_later_page_has_it() -> None:
    pages = [arm.interface(OWNER, [arm.configuration(address, primary=True)]) for address in ("10.1.0.4", "10.1.0.5")]
    ((owner, held),) = interfaces.by_owner(map(interfaces.interface, pages)).items()
    assert (owner, [item.primary_address for item in held]) == (OWNER.lower(), ["10.1.0.5"])


def test_interfaces_of_nobody_are_left_out() -> None:
    free = {"id": "/subscriptions/s/free", "name": "free", "properties": {"ipConfigurations": [], "virtualMachine": None}}
    assert interfaces.by_owner([interfaces.interface(free)]) == {}
