# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet: ARM's raw documents of scale sets and instances made into flat records, and joined with their interfaces.

Pure: nothing is read here. Uniform and Flexible sets end in the same record.
Property names and shapes: Microsoft.Compute 2024-07-01.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .documents import Document, at, parts
from .errors import AzureError
from .interfaces import Interface, addresses


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScaleSet:
    name: str
    resource_id: str
    resource_group: str
    subscription_id: str
    location: str
    orchestration: str
    size: str
    tags: t.Mapping[str, str] = dataclasses.field(default_factory=dict, hash=False)

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


def scale_set(document: Document) -> ScaleSet:
    """One scale set of ARM's list. Raises AzureError for one without a usable id."""
    resource_id = str(document.get("id") or "")
    named = parts(resource_id)
    if not {"subscriptions", "resourcegroups", "virtualmachinescalesets"} <= set(named):
        raise AzureError(f"ARM lists a scale set whose id is {resource_id!r}; an id names subscription, resource group and set: run again")
    return ScaleSet(
        name=str(document.get("name") or named["virtualmachinescalesets"]),
        resource_id=resource_id,
        resource_group=named["resourcegroups"],
        subscription_id=named["subscriptions"],
        location=str(document.get("location") or ""),
        # Absent from sets made before Flexible existed, which are all Uniform.
        orchestration=str(at(document, "properties").get("orchestrationMode") or "Uniform").lower(),
        size=str(at(document, "sku").get("name") or ""),
        tags=_tags(document),
    )


def instance(parent: ScaleSet, machine: Document, *, keep_document: bool = False) -> Instance:
    """One instance of ARM's list, its addresses still unknown. Raises AzureError for one without id."""
    if not machine.get("id"):
        raise AzureError(f"{parent.resource_id}: ARM lists an instance without id; run again")
    properties = at(machine, "properties")
    view = at(properties, "instanceView")
    resource_id = str(machine["id"])
    own_name = parts(resource_id).get("virtualmachines", "")
    protection = at(properties, "protectionPolicy")
    provisioning = str(properties.get("provisioningState") or "").lower()
    power = _status(view, "PowerState")
    return Instance(
        name=str(machine.get("name") or own_name),
        computer_name=str(at(properties, "osProfile").get("computerName") or view.get("computerName") or ""),
        resource_id=resource_id,
        vm_id=str(properties.get("vmId") or ""),
        instance_id=str(machine.get("instanceId") or own_name),
        subscription_id=parent.subscription_id,
        resource_group=parent.resource_group,
        scale_set=parent.name,
        orchestration=parent.orchestration,
        location=str(machine.get("location") or parent.location),
        size=str(at(machine, "sku").get("name") or at(properties, "hardwareProfile").get("vmSize") or parent.size),
        zone=_zone(machine.get("zones")),
        fault_domain=_domain(view.get("platformFaultDomain", properties.get("platformFaultDomain"))),
        placement_group=str(view.get("placementGroupId") or ""),
        provisioning_state=provisioning,
        power_state=power,
        state=_state(provisioning, power),
        health=_code(at(view, "vmHealth", "status")).lower(),
        latest_model=properties.get("latestModelApplied") if isinstance(properties.get("latestModelApplied"), bool) else None,
        protected=bool(protection.get("protectFromScaleIn") or protection.get("protectFromScaleSetActions")),
        primary_address="",
        alias_addresses=(),
        tags=_tags(machine),
        document=machine if keep_document else None,
    )


def joined(instances: t.Iterable[Instance], owned: t.Mapping[str, t.Sequence[Interface]]) -> tuple[Instance, ...]:
    """The instances with their addresses, sorted by id; ``owned`` is what ``interfaces.by_owner`` made.

    An instance that two pages hold counts once, as the later page has it. An interface whose instance is not
    listed is somebody else's (or just made) and is left alone. An instance without an interface has no addresses.
    """
    found = {item.resource_id.lower(): item for item in instances}
    return tuple(_with(found[key], owned.get(key, ())) for key in sorted(found))


def _with(item: Instance, interfaces: t.Sequence[Interface]) -> Instance:
    there = addresses(interfaces)
    document = {"instance": item.document, "interfaces": [held.document for held in interfaces]} if item.document is not None else None
    return dataclasses.replace(item, primary_address=there.primary, alias_addresses=there.aliases, document=document)


def without_address(found: t.Iterable[Instance]) -> list[Instance]:
    """The instances that run and have no address: an answer with one is not whole."""
    return [item for item in found if item.state == "running" and not item.primary_address]


def _tags(document: Document) -> dict[str, str]:
    return {str(key): str(value) for key, value in sorted(at(document, "tags").items())}


def _state(provisioning: str, power: str) -> str:
    # "updating" is not among them: an instance that runs while its model is changed can be reached.
    if provisioning in {"deleting", "creating", "failed"}:
        return provisioning
    return power or "unknown"


def _status(view: Document, kind: str) -> str:
    """The value of the first status of one kind: "PowerState/running" -> "running". Resource Graph has one mapping for it."""
    for status in (*(view.get("statuses") or []), view.get(f"{kind[0].lower()}{kind[1:]}")):
        if isinstance(status, dict) and str(status.get("code") or "").startswith(f"{kind}/"):
            return _code(status).lower()
    return ""


def _code(status: Document) -> str:
    return str(status.get("code") or "").rpartition("/")[2]


def _zone(zones: object) -> str:
    return str(zones[0]) if isinstance(zones, list) and zones else ""


def _domain(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
