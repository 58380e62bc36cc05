# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet that a description becomes: every instance with its identity and addresses.

ARM, IMDS, the fabric and the nodes all read this one model, so that they cannot disagree.
"""

from __future__ import annotations

import dataclasses
import hashlib
import ipaddress
import typing as t
import uuid

from . import description as described

_IDENTITY = uuid.UUID("c9f0c1de-6b7e-5d9f-8d3c-2f1f3a1f0a51")
# Azure spreads a Uniform set over five update domains; fault domains depend on the region, two or three.
UPDATE_DOMAINS = 5
FAULT_DOMAINS = 2
ADMIN_USER = "azureuser"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Instance:
    """One instance of a scale set, with one NIC.

    ``instance_id`` is the number of a Uniform instance ("0") and the VM's name for Flexible, as ARM has it.
    ``addresses`` holds the NIC's private addresses, the primary first.
    """

    scale_set: str
    index: int
    instance_id: str
    name: str
    computer_name: str
    vm_id: str
    mac: str
    addresses: tuple[str, ...]
    zone: str
    fault_domain: int
    update_domain: int
    placement_group_id: str

    @property
    def primary_address(self) -> str:
        return self.addresses[0]

    @property
    def secondary_addresses(self) -> tuple[str, ...]:
        return self.addresses[1:]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fleet:
    """``prefix`` is the lab's name; all that the lab makes on the machine carries it."""

    prefix: str
    description: described.Description
    public_key: str
    instances: tuple[Instance, ...]

    def scale_set(self, name: str) -> described.ScaleSet:
        return next(item for item in self.description.scale_sets if item.name == name)

    def subnet_of(self, scale_set: described.ScaleSet) -> described.Subnet:
        vnet = self.vnet_of(scale_set)
        return next(item for item in vnet.subnets if item.name == scale_set.subnet)

    def vnet_of(self, scale_set: described.ScaleSet) -> described.VirtualNetwork:
        return next(item for item in self.description.vnets if item.name == scale_set.vnet)

    def instances_of(self, scale_set: str) -> tuple[Instance, ...]:
        return tuple(item for item in self.instances if item.scale_set == scale_set)

    def by_address(self) -> dict[str, Instance]:
        """Every private address, primary and secondary, to the instance whose NIC holds it."""
        return {address: item for item in self.instances for address in item.addresses}


def build(description: described.Description, *, prefix: str, public_key: str) -> Fleet:
    """Give every instance its identity and addresses; the same description and prefix give the same fleet."""
    free = {(vnet.name, subnet.name): _usable(subnet.prefix) for vnet in description.vnets for subnet in vnet.subnets}
    instances = []
    for scale_set in description.scale_sets:
        pool = free[scale_set.vnet, scale_set.subnet]
        for index in range(scale_set.instances):
            addresses = tuple(str(next(pool)) for _ in range(scale_set.ip_configurations))
            instances.append(_instance(prefix, scale_set, index, addresses))
    return Fleet(prefix=prefix, description=description, public_key=public_key, instances=tuple(instances))


def _usable(prefix: ipaddress.IPv4Network) -> t.Iterator[ipaddress.IPv4Address]:
    for offset in range(described.RESERVED_AT_START, prefix.num_addresses - described.RESERVED_AT_END):
        yield prefix.network_address + offset


def _instance(prefix: str, scale_set: described.ScaleSet, index: int, addresses: tuple[str, ...]) -> Instance:
    seed = f"{prefix}/{scale_set.name}/{index}"
    uniform = scale_set.orchestration == "Uniform"
    # Azure's names: "<set>_<id>" on Uniform, "<set>_<eight hex digits>" on Flexible;
    # the computer name is the prefix and six base-36 digits in both.
    name = f"{scale_set.name}_{index}" if uniform else f"{scale_set.name}_{hashlib.sha256(seed.encode()).hexdigest()[:8]}"
    return Instance(
        scale_set=scale_set.name,
        index=index,
        instance_id=str(index) if uniform else name,
        name=name,
        computer_name=f"{scale_set.name}{_base36(index)}",
        vm_id=str(uuid.uuid5(_IDENTITY, seed)),
        mac=_mac(seed),
        addresses=addresses,
        zone=scale_set.zones[index % len(scale_set.zones)] if scale_set.zones else "",
        fault_domain=index % FAULT_DOMAINS,
        update_domain=index % UPDATE_DOMAINS,
        placement_group_id=str(uuid.uuid5(_IDENTITY, f"{prefix}/{scale_set.name}/placement-group/{index // 100}")),
    )


def _base36(number: int) -> str:
    digits = ""
    for _ in range(6):
        number, rest = divmod(number, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[rest] + digits
    return digits


def _mac(seed: str) -> str:
    # 00:0d:3a is one of the vendor prefixes that Azure's NICs carry.
    tail = hashlib.sha256(seed.encode()).digest()[:3]
    return ":".join(("00", "0d", "3a", *(f"{byte:02x}" for byte in tail)))
