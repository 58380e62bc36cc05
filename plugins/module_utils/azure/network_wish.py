# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet that is wished for, as values. Types and names of the input are checked before, by the module's argument_spec."""

from __future__ import annotations

import dataclasses
import ipaddress
import math
import typing as t

from . import network_limits as limits
from . import sizes
from .errors import AzureError

Form = t.Literal["single", "blocks"]
FORMS: t.Mapping[Form, str] = {"single": "single addresses", "blocks": f"/{limits.BLOCK_LENGTH} blocks"}
Orchestration = t.Literal["Uniform", "Flexible"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScaleSet:
    """``nodes`` now, ``growth`` further ones that room is kept for.

    ``pods_per_node`` are addresses besides the node's own. ``subnet`` is the name of one that exists, "" for a new one.
    """

    name: str
    size: str
    nodes: int
    growth: int = 0
    pods_per_node: int
    infiniband: bool
    orchestration: Orchestration = "Uniform"
    fault_domains: int = 1
    subnet: str = ""
    application_security_group: str = ""

    @property
    def capacity(self) -> int:
        return self.nodes + self.growth

    @property
    def blocks_per_node(self) -> int:
        return math.ceil(self.pods_per_node / limits.BLOCK_ADDRESSES)

    def configurations_per_node(self, form: Form) -> int:
        """ipConfigurations of a NIC: the primary one, and one for each pod address or each block of them."""
        return 1 + (self.pods_per_node if form == "single" else self.blocks_per_node)

    def addresses_per_node(self, form: Form) -> int:
        return 1 + (self.pods_per_node if form == "single" else self.blocks_per_node * limits.BLOCK_ADDRESSES)

    def configurations(self, form: Form) -> int:
        """Of all nodes, those of growth too."""
        return self.capacity * self.configurations_per_node(form)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cluster:
    """One VNet, with pods that all reach each other; ``hub`` is the VNet from which people come, "" for none."""

    name: str
    virtual_network: str
    hub: str = ""
    scale_sets: tuple[ScaleSet, ...]

    @property
    def nodes(self) -> int:
        return sum(item.nodes for item in self.scale_sets)

    def configurations(self, form: Form) -> int:
        return sum(item.configurations(form) for item in self.scale_sets)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Wish:
    """``unlisted_addresses`` are those of peered VNets whose documents are not at hand; None where nobody has said."""

    clusters: tuple[Cluster, ...]
    on_premises: tuple[ipaddress.IPv4Network, ...] = ()
    largest_job_nodes: int | None = None
    infiniband_domain_nodes: int = limits.INFINIBAND_NODES.value
    address_form: t.Literal["auto", "single", "blocks"] = "auto"
    unlisted_addresses: int | None = None


def wish(parameters: t.Mapping[str, t.Any]) -> Wish:
    """The module's parameters as a wish. Raises AzureError for numbers, names and ranges that mean nothing."""
    clusters = tuple(_cluster(item, f"fleet.clusters[{index}]") for index, item in enumerate(parameters["fleet"]["clusters"]))
    if not clusters:
        raise AzureError("fleet.clusters: is empty; name at least one cluster")
    _once("cluster", (item.name for item in clusters), "fleet.clusters")
    # By its name a set is found again in the VNet's document.
    _once("scale set", (item.name for cluster in clusters for item in cluster.scale_sets), "fleet.clusters")
    for name, least in (("largest_job_nodes", 1), ("infiniband_domain_nodes", 1), ("unlisted_addresses", 0)):
        if parameters[name] is not None:
            _at_least(parameters[name], least, name)
    return Wish(
        clusters=clusters,
        on_premises=tuple(ipaddress.collapse_addresses(_range(item, "on_premises") for item in parameters["on_premises"])),
        largest_job_nodes=parameters["largest_job_nodes"],
        infiniband_domain_nodes=parameters["infiniband_domain_nodes"],
        address_form=parameters["address_form"],
        unlisted_addresses=parameters["unlisted_addresses"],
    )


def _cluster(item: t.Mapping[str, t.Any], where: str) -> Cluster:
    sets = tuple(
        each
        for index, entry in enumerate(item["scale_sets"])
        for each in _scale_sets(entry, f"{where}.scale_sets[{index}] ({item['name']})")
    )
    if not sets:
        raise AzureError(f"{where}.scale_sets: is empty; name at least one scale set of cluster {item['name']}")
    return Cluster(name=item["name"], virtual_network=item["virtual_network"], hub=item["hub"] or "", scale_sets=sets)


def _scale_sets(entry: t.Mapping[str, t.Any], where: str) -> t.Iterator[ScaleSet]:
    """One entry is ``count`` sets alike: NAME alone for one, else NAME-01, NAME-02 and so on."""
    for key, least in (("count", 1), ("nodes", 1), ("growth", 0), ("pods_per_node", 1), ("fault_domains", 1)):
        _at_least(entry[key], least, f"{where}.{key}")
    infiniband = sizes.rdma(entry["size"]) if entry["infiniband"] is None else entry["infiniband"]
    count = entry["count"]
    for number in range(1, count + 1):
        yield ScaleSet(
            name=entry["name"] if count == 1 else f"{entry['name']}-{number:0{max(2, len(str(count)))}d}",
            size=entry["size"],
            nodes=entry["nodes"],
            growth=entry["growth"],
            pods_per_node=entry["pods_per_node"],
            infiniband=infiniband,
            orchestration=entry["orchestration"],
            fault_domains=entry["fault_domains"],
            subnet=entry["subnet"] or "",
            application_security_group=entry["application_security_group"] or "",
        )


def _at_least(value: int, least: int, where: str) -> None:
    if value < least:
        raise AzureError(f"{where}: {value} is too small; at least {least}")


def _range(text: object, where: str) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(str(text))
    except ValueError as error:
        raise AzureError(f"{where}: {text!r} is not an IPv4 range ({error}); write it like 192.168.0.0/16") from error


def _once(kind: str, names: t.Iterable[str], where: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise AzureError(f"{where}: there are two {kind}s {name}; give each a name of its own")
        seen.add(name.lower())
