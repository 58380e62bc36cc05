# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading the VNets of subscriptions from ARM, one list for each. Never writes."""

from __future__ import annotations

import typing as t

from .account import Reader, flat
from .errors import ArmError
from .listing import NETWORK_VERSION
from .virtual_networks import VirtualNetwork, virtual_network


def read(reader: Reader, subscription_ids: t.Sequence[str], resource_groups: t.Sequence[str]) -> list[VirtualNetwork]:
    """Every VNet, or those of the resource groups alone. Raises AzureError; ArmError for a group that is in no subscription.

    A VNet's document names every ipConfiguration in it, 200 bytes each: pages are made into records as they come.
    """
    found: list[VirtualNetwork] = []
    for group in resource_groups or ("",):
        absent: ArmError | None = None
        read_in = 0
        for subscription in subscription_ids:
            where = f"/subscriptions/{subscription}" + (f"/resourceGroups/{group}" if group else "")
            try:
                found += flat(reader.pages(f"{where}/providers/Microsoft.Network/virtualNetworks", _networks, api_version=NETWORK_VERSION))
                read_in += 1
            except ArmError as error:
                if not group or error.code != "ResourceGroupNotFound":
                    raise
                absent = error
        if absent and not read_in:
            raise absent
    return found


def _networks(documents: list[dict[str, t.Any]]) -> list[VirtualNetwork]:
    return [virtual_network(item) for item in documents]
