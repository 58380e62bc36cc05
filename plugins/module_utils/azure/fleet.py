# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet: ARM's raw documents of scale sets, instances and network interfaces made into flat records.

Pure: nothing is read here. Uniform and Flexible sets end in the same record.
Property names and shapes: Microsoft.Compute 2024-07-01 and Microsoft.Network 2018-10-01 (scale-set interfaces) and newer.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import typing as t

from .addresses import canonical
from .errors import AzureError

Document = t.Mapping[str, t.Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScaleSet:
    name: str
    resource_id: str
    resource_group: str
    subscription_id: str
    location: str
    orchestration: str
    size: str

    @property
    def flexible(self) -> bool:
        return self.orchestration == "flexible"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Instance:
    """One instance of a scale set. "" and None mean that ARM does not say.

    ``instance_id`` is the number of a Uniform instance ("0") and the VM's name for Flexible.
    ``state`` is what decides whether it can be reached: deleting, creating, failed, or else the power state
    (running, starting, stopping, stopped, deallocating, deallocated), or unknown.
    ``alias_addresses`` are the IPv4 addresses and blocks ("10.1.0.16/28") of all interfaces but their primary ones.
    """

    name: str
    computer_name: str
    resource_id: str
    vm_id: str
    instance_id: str
    subscription_id: str
    resource_group: str
    scale_set: str
    orchestration: str
    location: str
    size: str
    zone: str
    fault_domain: int | None
    placement_group: str
    provisioning_state: str
    power_state: str
    state: str
    health: str
    latest_model: bool | None
    protected: bool
    primary_address: str
    alias_addresses: tuple[str, ...]
    tags: t.Mapping[str, str]
    document: Document | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Addresses:
    primary: str
    aliases: tuple[str, ...]


def scale_set(document: Document) -> ScaleSet:
    """One scale set of ARM's list. Raises AzureError for one without a usable id."""
    resource_id = str(document.get("id") or "")
    parts = _parts(resource_id)
    if not {"subscriptions", "resourcegroups", "virtualmachinescalesets"} <= set(parts):
        raise AzureError(f"ARM lists a scale set whose id is {resource_id!r}; an id names subscription, resource group and set: run again")
    return ScaleSet(
        name=str(document.get("name") or parts["virtualmachinescalesets"]),
        resource_id=resource_id,
        resource_group=parts["resourcegroups"],
        subscription_id=parts["subscriptions"],
        location=str(document.get("location") or ""),
        # Absent from sets made before Flexible existed, which are all Uniform.
        orchestration=str(_at(document, "properties").get("orchestrationMode") or "Uniform").lower(),
        size=str(_at(document, "sku").get("name") or ""),
    )


def by_owner(interfaces: t.Iterable[Document]) -> dict[str, list[Document]]:
    """Interfaces by the lower-case id of the instance that has them; those of nobody are left out."""
    owned: dict[str, list[Document]] = {}
    for interface in interfaces:
        owner = str(_at(interface, "properties", "virtualMachine").get("id") or "").lower()
        if owner:
            owned.setdefault(owner, []).append(interface)
    return owned


def instances(
    parent: ScaleSet, machines: t.Iterable[Document], owned: t.Mapping[str, t.Sequence[Document]], *, keep_documents: bool = False
) -> tuple[Instance, ...]:
    """The instances of one scale set with their addresses; ``owned`` is what ``by_owner`` made.

    An instance that two pages hold counts once, as the later page has it. An interface whose instance is not
    listed is somebody else's (or just made) and is left alone. An instance without an interface has no addresses.
    Raises AzureError for a document without id and for addresses that are none.
    """
    found: dict[str, Instance] = {}
    for machine in machines:
        key = str(machine.get("id") or "").lower()
        if not key:
            raise AzureError(f"{parent.resource_id}: ARM lists an instance without id; run again")
        found[key] = _instance(parent, machine, owned.get(key, []), keep_document=keep_documents)
    return tuple(found[key] for key in sorted(found))


def addresses(interfaces: t.Sequence[Document]) -> Addresses:
    """The primary address of the primary interface, and the alias addresses of all interfaces.

    A configuration without an address (a stopped instance gives them back) counts for nothing. IPv6 configurations
    can never be an interface's primary one and are no aliases: pods here have IPv4 alias addresses.
    """
    primary = ""
    aliases: list[str] = []
    for interface in interfaces:
        properties = _at(interface, "properties")
        configurations = [_at(item, "properties") for item in properties.get("ipConfigurations") or [] if isinstance(item, dict)]
        single = len(configurations) == 1
        for configuration in configurations:
            address = _address(configuration, where=str(interface.get("id") or interface.get("name") or "an interface"))
            if not address:
                continue
            if configuration.get("primary") or single:
                if properties.get("primary") or len(interfaces) == 1:
                    primary = address
            elif ":" not in address:
                aliases.append(address)
    return Addresses(primary=primary, aliases=tuple(aliases))


def _instance(parent: ScaleSet, machine: Document, interfaces: t.Sequence[Document], *, keep_document: bool) -> Instance:
    properties = _at(machine, "properties")
    view = _at(properties, "instanceView")
    resource_id = str(machine["id"])
    own_name = _parts(resource_id).get("virtualmachines", "")
    protection = _at(properties, "protectionPolicy")
    at = addresses(interfaces)
    provisioning = str(properties.get("provisioningState") or "").lower()
    power = _status(view, "PowerState")
    return Instance(
        name=str(machine.get("name") or own_name),
        computer_name=str(_at(properties, "osProfile").get("computerName") or view.get("computerName") or ""),
        resource_id=resource_id,
        vm_id=str(properties.get("vmId") or ""),
        instance_id=str(machine.get("instanceId") or own_name),
        subscription_id=parent.subscription_id,
        resource_group=parent.resource_group,
        scale_set=parent.name,
        orchestration=parent.orchestration,
        location=str(machine.get("location") or parent.location),
        size=str(_at(machine, "sku").get("name") or _at(properties, "hardwareProfile").get("vmSize") or parent.size),
        zone=_zone(machine.get("zones")),
        fault_domain=_domain(view.get("platformFaultDomain", properties.get("platformFaultDomain"))),
        placement_group=str(view.get("placementGroupId") or ""),
        provisioning_state=provisioning,
        power_state=power,
        state=_state(provisioning, power),
        health=_code(_at(view, "vmHealth", "status")).lower(),
        latest_model=properties.get("latestModelApplied") if isinstance(properties.get("latestModelApplied"), bool) else None,
        protected=bool(protection.get("protectFromScaleIn") or protection.get("protectFromScaleSetActions")),
        primary_address=at.primary,
        alias_addresses=at.aliases,
        tags={str(key): str(value) for key, value in sorted(_at(machine, "tags").items())},
        document={"instance": machine, "interfaces": list(interfaces)} if keep_document else None,
    )


def _state(provisioning: str, power: str) -> str:
    # "updating" is not among them: an instance that runs while its model is changed can be reached.
    if provisioning in {"deleting", "creating", "failed"}:
        return provisioning
    return power or "unknown"


def _status(view: Document, kind: str) -> str:
    """The value of the first status of one kind: "PowerState/running" -> "running"."""
    for status in view.get("statuses") or []:
        if isinstance(status, dict) and str(status.get("code") or "").startswith(f"{kind}/"):
            return _code(status).lower()
    return ""


def _code(status: Document) -> str:
    return str(status.get("code") or "").rpartition("/")[2]


def _zone(zones: object) -> str:
    return str(zones[0]) if isinstance(zones, list) and zones else ""


def _domain(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _address(configuration: Document, *, where: str) -> str:
    """One configuration's address, or its block where it has a prefix length (given beside the address, in it, or both)."""
    text = str(configuration.get("privateIPAddress") or "")
    length = configuration.get("privateIPAddressPrefixLength")
    if not text:
        return ""
    if "/" not in text and length is not None:
        text = f"{text}/{length}"
    try:
        if "/" not in text:
            return canonical(text)
        block = ipaddress.ip_network(text)
    except ValueError as error:
        raise AzureError(f"{where}: ARM gives {text!r} as private address ({error}); run again, and report it if it stays so") from error
    if length is not None and block.prefixlen != length:
        raise AzureError(f"{where}: ARM gives the block {text} and the prefix length {length}, which disagree; run again")
    # A block of one address is an address.
    return str(block.network_address) if block.prefixlen == block.max_prefixlen else str(block)


def _at(document: t.Any, *keys: str) -> Document:
    """The mapping under ``keys``; an empty one where there is none or null."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def _parts(resource_id: str) -> dict[str, str]:
    """A resource id's types and names: {"resourcegroups": "rg", ...}. ARM's ids are case-insensitive, so types are lower-case here."""
    words = resource_id.strip("/").split("/")
    return {kind.lower(): name for kind, name in zip(words[::2], words[1::2], strict=False)}
