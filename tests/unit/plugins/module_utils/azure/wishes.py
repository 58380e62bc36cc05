# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wished fleets and VNet documents, in short."""

from __future__ import annotations

import typing as t

from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import network_plan, network_wish
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.virtual_networks import virtual_network

Document = dict[str, t.Any]
GPU, CPU = "Standard_ND96isr_H100_v5", "Standard_D96ds_v5"
GROUP = "/subscriptions/5ab/resourceGroups/net/providers"


def scale_set(name: str = "gpu", **given: t.Any) -> Document:
    """As the module's argument_spec leaves one."""
    defaults: Document = {
        "count": 1,
        "size": CPU,
        "nodes": 10,
        "growth": 0,
        "pods_per_node": 27,
        "infiniband": None,
        "orchestration": "Uniform",
        "fault_domains": 1,
        "subnet": None,
        "application_security_group": None,
    }
    return {"name": name, **defaults, **given}


def cluster(name: str, *sets: Document, hub: str | None = None, network: str | None = None) -> Document:
    return {"name": name, "virtual_network": network or name, "hub": hub, "scale_sets": list(sets)}


def parameters(*clusters: Document, **given: t.Any) -> Document:
    defaults: Document = {
        "on_premises": [],
        "largest_job_nodes": None,
        "infiniband_domain_nodes": 100,
        "address_form": "auto",
        "unlisted_addresses": None,
    }
    return {"fleet": {"clusters": list(clusters)}, **defaults, **given}


def identifier(name: str) -> str:
    return f"{GROUP}/Microsoft.Network/virtualNetworks/{name}"


def network(name: str, *ranges: str, subnets: t.Sequence[Document] = (), peers: t.Iterable[str] = ()) -> Document:
    """A VNet as ARM returns it; ``peers`` are names, with a range after a blank where one is said."""
    return {
        "id": identifier(name),
        "name": name,
        "properties": {
            "addressSpace": {"addressPrefixes": list(ranges)},
            "subnets": list(subnets),
            "virtualNetworkPeerings": [_peering(*peer.split()) for peer in peers],
        },
    }


def _peering(name: str, space: str | None = None) -> Document:
    properties: Document = {"remoteVirtualNetwork": {"id": identifier(name)}, "peeringState": "Connected"}
    if space:
        properties["remoteAddressSpace"] = {"addressPrefixes": [space]}
    return {"name": f"to-{name}", "properties": properties}


def subnet(name: str, prefix: str | None, *configurations: str, prefixes: t.Sequence[str] = ()) -> Document:
    given = {"addressPrefixes": list(prefixes)} if prefixes else {"addressPrefix": prefix}
    return {"name": name, "properties": {**given, "ipConfigurations": [{"id": each} for each in configurations]}}


def of_set(name: str, count: int, group: str = "fleet") -> list[str]:
    """The ids of a Uniform set's ipConfigurations."""
    path = f"/subscriptions/5ab/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachineScaleSets/{name}"
    return [f"{path}/virtualMachines/{number}/networkInterfaces/nic/ipConfigurations/alias" for number in range(count)]


def of_others(count: int) -> list[str]:
    """The ids of other interfaces' ipConfigurations."""
    return [f"{GROUP}/Microsoft.Network/networkInterfaces/nic-{number}/ipConfigurations/primary" for number in range(count)]


def plan(given: Document, *networks: Document) -> network_plan.Plan:
    return network_plan.plan(network_wish.wish(given), [virtual_network(document) for document in networks])
