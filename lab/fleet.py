# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet of one moment: every scale set with its model, every instance with its identity and addresses.

ARM, IMDS, the fabric and the nodes all read this one value, so that they cannot disagree. It never changes:
a write makes the next one (changes.py).
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import ipaddress
import typing as t
import uuid

from . import description as descriptions
from . import model
from .model import ADMIN_USER as ADMIN_USER
from .model import Document

_IDENTITY = uuid.UUID("c9f0c1de-6b7e-5d9f-8d3c-2f1f3a1f0a51")
# Azure spreads a Uniform set over five update domains; fault domains depend on the region, two or three.
UPDATE_DOMAINS = 5
FAULT_DOMAINS = 2
# A placement group holds at most 100 instances (learn.microsoft.com, "Working with large virtual machine scale sets").
PLACEMENT_GROUP_SIZE = 100

Power = t.Literal["running", "stopped", "deallocated"]
Provisioning = t.Literal["Succeeded", "Creating", "Updating", "Deleting", "Failed"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class IpConfiguration:
    """One ipConfiguration of a NIC: an address, or the first address of a block of ``prefix_length``."""

    name: str
    address: str
    prefix_length: int = 32

    @property
    def addresses(self) -> tuple[str, ...]:
        if self.prefix_length == 32:
            return (self.address,)
        return tuple(str(item) for item in ipaddress.IPv4Network((self.address, self.prefix_length)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Instance:
    """One instance of a scale set, with one NIC.

    ``instance_id`` is the number of a Uniform instance ("0") and the VM's name for Flexible, as ARM has it.
    ``configurations`` are those of the NIC, the primary first. ``model_version`` names the model of its set that it was
    last brought to. ``generation`` counts its file systems, ``boots`` its starts. ``tags`` and ``user_data`` are its own,
    None where the set's hold.
    """

    scale_set: str
    index: int
    instance_id: str
    name: str
    computer_name: str
    vm_id: str
    mac: str
    configurations: tuple[IpConfiguration, ...]
    zone: str
    fault_domain: int
    update_domain: int
    placement_group_id: str
    kind: descriptions.Kind = "container"
    model_version: int = 1
    generation: int = 1
    boots: int = 1
    power: Power = "running"
    provisioning: Provisioning = "Succeeded"
    protected_from_scale_in: bool = False
    protected_from_scale_set_actions: bool = False
    tags: Document | None = None
    user_data: str | None = None

    @functools.cached_property
    def addresses(self) -> tuple[str, ...]:
        """The NIC's private addresses, the primary first; blocks address by address."""
        return tuple(address for item in self.configurations for address in item.addresses)

    @property
    def primary_address(self) -> str:
        return self.configurations[0].address

    @property
    def secondary_addresses(self) -> tuple[str, ...]:
        return self.addresses[1:]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScaleSet:
    """A scale set as ARM holds it.

    ``document`` is its body without model, capacity and what is computed at each reading. ``models`` are the current model
    and those that instances still have, by version. ``created`` counts the instances that were ever made.
    """

    described: descriptions.ScaleSet
    document: Document
    models: t.Mapping[int, Document]
    version: int = 1
    etag: int = 1
    created: int = 0

    @property
    def name(self) -> str:
        return self.described.name

    @property
    def uniform(self) -> bool:
        return self.described.orchestration == "Uniform"

    @property
    def kind(self) -> descriptions.Kind:
        return self.described.kind

    @property
    def model(self) -> Document:
        return self.models[self.version]

    @property
    def tags(self) -> Document:
        return t.cast("Document", self.document.get("tags", {}))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fleet:
    """``prefix`` is the lab's name; all that the lab makes on the machine carries it."""

    prefix: str
    description: descriptions.Description
    public_key: str
    scale_sets: tuple[ScaleSet, ...]
    instances: tuple[Instance, ...]

    @functools.cached_property
    def _sets(self) -> dict[str, ScaleSet]:
        return {item.name: item for item in self.scale_sets}

    @functools.cached_property
    def _members(self) -> dict[str, tuple[Instance, ...]]:
        found: dict[str, list[Instance]] = {item.name: [] for item in self.scale_sets}
        for item in self.instances:
            found[item.scale_set].append(item)
        return {name: tuple(items) for name, items in found.items()}

    def scale_set(self, name: str) -> ScaleSet:
        return self._sets[name]

    def subnet_of(self, scale_set: ScaleSet) -> descriptions.Subnet:
        return next(item for item in self.vnet_of(scale_set).subnets if item.name == scale_set.described.subnet)

    def vnet_of(self, scale_set: ScaleSet) -> descriptions.VirtualNetwork:
        return next(item for item in self.description.vnets if item.name == scale_set.described.vnet)

    def instances_of(self, scale_set: str) -> tuple[Instance, ...]:
        return self._members[scale_set]

    def model_of(self, item: Instance) -> Document:
        """The model that an instance was last brought to."""
        return self.scale_set(item.scale_set).models[item.model_version]

    def by_address(self) -> dict[str, Instance]:
        """Every private address, primary and secondary, to the instance whose NIC holds it."""
        return {address: item for item in self.instances for address in item.addresses}


def build(description: descriptions.Description, *, prefix: str, public_key: str) -> Fleet:
    """The fleet that a description asks for; the same description and prefix give the same fleet."""
    sets, instances = [], []
    pools = {(vnet.name, subnet.name): Addresses(subnet.prefix, ()) for vnet in description.vnets for subnet in vnet.subnets}
    for asked in description.scale_sets:
        first = model.initial(asked, subnet_id=subnet_id(description, asked.vnet, asked.subnet), public_key=public_key)
        scale_set = ScaleSet(described=asked, document=_document(asked, description, prefix), models={1: first}, created=asked.instances)
        sets.append(scale_set)
        pool = pools[asked.vnet, asked.subnet]
        instances += [new_instance(prefix, scale_set, index=index, serial=index, pool=pool) for index in range(asked.instances)]
    return Fleet(prefix=prefix, description=description, public_key=public_key, scale_sets=tuple(sets), instances=tuple(instances))


def subnet_id(description: descriptions.Description, vnet: str, subnet: str) -> str:
    group = f"/subscriptions/{description.subscription}/resourceGroups/{description.resource_group}"
    return f"{group}/providers/Microsoft.Network/virtualNetworks/{vnet}/subnets/{subnet}"


def _document(asked: descriptions.ScaleSet, description: descriptions.Description, prefix: str) -> Document:
    uniform = asked.orchestration == "Uniform"
    document: Document = {
        "location": description.location,
        "tags": dict(asked.tags),
        "properties": {
            "orchestrationMode": asked.orchestration,
            "uniqueId": str(uuid.uuid5(_IDENTITY, f"{prefix}/{asked.name}")),
            "platformFaultDomainCount": 1,
            "singlePlacementGroup": uniform and asked.instances <= PLACEMENT_GROUP_SIZE,
            "timeCreated": model.CREATED,
        },
    }
    if uniform:
        document["properties"] |= {
            "upgradePolicy": {"mode": "Manual"},
            "overprovision": False,
            "doNotRunExtensionsOnOverprovisionedVMs": False,
        }
    if asked.zones:
        document["zones"] = list(asked.zones)
    return document


class SubnetFullError(Exception):
    """No address, or no block of the wanted size, is free."""


class Addresses:
    """The addresses of a subnet that are free, lowest first; Azure keeps some for itself."""

    def __init__(self, prefix: ipaddress.IPv4Network, taken: t.Iterable[str]) -> None:
        self.prefix = prefix
        # Nothing becomes free again in here, so for each size the search goes on where the last one ended.
        self._next: dict[int, int] = {}
        self._taken = {int(ipaddress.IPv4Address(address)) - int(prefix.network_address) for address in taken}

    def take(self, prefix_length: int = 32) -> str:
        """The first free address, or the first address of the first free block, which lies on its own boundary.

        Raises SubnetFullError.
        """
        size = 1 << (32 - prefix_length)
        end = self.prefix.num_addresses - descriptions.RESERVED_AT_END
        start = self._next.get(size, -(-descriptions.RESERVED_AT_START // size) * size)
        while start + size <= end:
            self._next[size] = start + size
            if not self._taken.intersection(range(start, start + size)):
                self._taken.update(range(start, start + size))
                return str(self.prefix.network_address + start)
            start += size
        raise SubnetFullError(str(self.prefix))


def configure(wanted: t.Iterable[model.Configuration], held: t.Iterable[IpConfiguration], pool: Addresses) -> tuple[IpConfiguration, ...]:
    """The ipConfigurations of a NIC brought to a model: those of the same name and size keep their address."""
    kept = {(item.name, item.prefix_length): item for item in held}
    return tuple(
        kept.get((item.name, item.prefix_length))
        or IpConfiguration(name=item.name, address=pool.take(item.prefix_length), prefix_length=item.prefix_length)
        for item in wanted
    )


def new_instance(prefix: str, scale_set: ScaleSet, *, index: int, serial: int, pool: Addresses) -> Instance:
    """A new machine with the set's current model. ``index`` may be one that an earlier machine had; ``serial`` never is."""
    seed = f"{prefix}/{scale_set.name}/{serial}"
    # Azure's names: "<set>_<id>" on Uniform, "<set>_<eight hex digits>" on Flexible;
    # the computer name is the prefix and six base-36 digits in both.
    name = f"{scale_set.name}_{index}" if scale_set.uniform else f"{scale_set.name}_{hashlib.sha256(seed.encode()).hexdigest()[:8]}"
    zones = scale_set.described.zones
    group = index // PLACEMENT_GROUP_SIZE
    return Instance(
        scale_set=scale_set.name,
        index=index,
        instance_id=str(index) if scale_set.uniform else name,
        name=name,
        computer_name=f"{scale_set.name}{_base36(index)}",
        vm_id=str(uuid.uuid5(_IDENTITY, seed)),
        mac=_mac(f"{prefix}/{scale_set.name}", serial),
        configurations=configure(model.configurations(scale_set.model), (), pool),
        zone=zones[index % len(zones)] if zones else "",
        fault_domain=index % FAULT_DOMAINS,
        update_domain=index % UPDATE_DOMAINS,
        placement_group_id=str(uuid.uuid5(_IDENTITY, f"{prefix}/{scale_set.name}/placement-group/{group}")),
        kind=scale_set.kind,
        model_version=scale_set.version,
    )


def _base36(number: int) -> str:
    digits = ""
    for _ in range(6):
        number, rest = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
    return digits


# Vendor prefixes that Azure's NICs carry.
_VENDORS = ("00:0d:3a", "00:22:48", "60:45:bd", "7c:1e:52", "7c:ed:8d", "00:17:fa")


def _mac(seed: str, serial: int) -> str:
    """Different for every instance of a set; two sets share a MAC in one of some 65,000 pairs."""
    one, two = hashlib.sha256(seed.encode()).digest()[:2]
    return f"{_VENDORS[(serial >> 8) % len(_VENDORS)]}:{one:02x}:{two:02x}:{serial & 0xFF:02x}"
