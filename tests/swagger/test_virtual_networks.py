# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Microsoft's published VNets, read as the network plan reads them."""

from __future__ import annotations

import json
import pathlib

from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.virtual_networks import virtual_network


def test_published_vnets_are_read(corpus: pathlib.Path) -> None:
    listed = json.loads((corpus / "VirtualNetworkList.json").read_text(encoding="utf-8"))["responses"]["200"]["body"]["value"]
    found = [virtual_network(document) for document in listed]
    assert [network.name for network in found] == [document["name"] for document in listed]
    assert all(network.ranges for network in found) and any(network.subnets for network in found)
