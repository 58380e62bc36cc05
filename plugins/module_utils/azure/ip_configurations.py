# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The alias ipConfigurations of a NIC: those of a scale set's model, of a Uniform instance's part of it, and of a Flexible instance's own NIC.

Pure. Works on ARM's raw documents: what is not an alias stays as it was read, also what this project knows nothing about.
Property names and shapes: Microsoft.Compute 2026-04-01, Microsoft.Network 2024-05-01.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .documents import Document, at
from .errors import AzureError

# Private addresses of one NIC, where a block counts once (learn.microsoft.com, "Azure subscription and service limits").
CONFIGURATIONS_PER_NIC = 256
SINGLE = 32
# The one size of block that Azure hands out (learn.microsoft.com, "Azure CNI Pod Subnet - Static Block Allocation").
BLOCK = 28
# How new ones are called: by number, so that a model that is lowered and raised again has the names that it had.
PREFIXES = {SINGLE: "alias", BLOCK: "block"}
# A secondary ipConfiguration with one of these is somebody's entrance, and no pod's address.
ROLES = (
    "publicIPAddressConfiguration",
    "publicIPAddress",
    "loadBalancerBackendAddressPools",
    "loadBalancerInboundNatPools",
    "loadBalancerInboundNatRules",
    "applicationGatewayBackendAddressPools",
)
# Name in lower case, as ARM compares names, and prefix length.
Signature = frozenset[tuple[str, int]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Aliases:
    """What a NIC shall have: ``count`` single addresses, or blocks where ``prefix_length`` is 28, and no alias of the other kind."""

    count: int
    prefix_length: int = SINGLE

    def __str__(self) -> str:
        return f"{self.count} {'addresses' if self.prefix_length == SINGLE else f'/{self.prefix_length} blocks'}"


def of_model(scale_set: Document) -> list[Document] | None:
    """The ipConfigurations of the primary NIC of a set's model; None for a Flexible set without a model.

    Raises AzureError for a model without a primary NIC.
    """
    if not at(scale_set, "properties", "virtualMachineProfile"):
        return None
    interfaces = _interfaces(at(scale_set, "properties", "virtualMachineProfile", "networkProfile"))
    return _configurations(interfaces[_primary(interfaces, "networkInterfaceConfigurations")])


def of_instance(machine: Document) -> list[Document]:
    """Those of a Uniform instance, as the model had them when it was last brought to it. Raises AzureError as ``of_model`` does."""
    interfaces = _interfaces(at(machine, "properties", "networkProfileConfiguration"))
    return _configurations(interfaces[_primary(interfaces, "networkInterfaceConfigurations")])


def of_interface(interface: Document) -> list[Document]:
    """Those of a NIC of its own."""
    return _configurations(interface)


def changed_model(scale_set: Document, wanted: Aliases) -> Document:
    """The set with ``wanted`` on the primary NIC of its model; equal where nothing is to be done.

    Raises AzureError for what cannot be.
    """
    profile = at(scale_set, "properties", "virtualMachineProfile")
    if not profile:
        return scale_set
    interfaces = _interfaces(at(profile, "networkProfile"))
    index = _primary(interfaces, "networkInterfaceConfigurations")
    configurations = changed(_configurations(interfaces[index]), wanted)
    interfaces[index] = _with(interfaces[index], configurations)
    network = {**profile["networkProfile"], "networkInterfaceConfigurations": interfaces}
    properties = {**scale_set["properties"], "virtualMachineProfile": {**profile, "networkProfile": network}}
    return {**scale_set, "properties": properties}


def changed_interface(interface: Document, wanted: Aliases) -> Document:
    """A Flexible instance's NIC with ``wanted``; equal where nothing is to be done. Raises AzureError for what cannot be."""
    # A model has no allocation method; a NIC without one gets "Dynamic", and says so when it is read again.
    return _with(interface, changed(_configurations(interface), wanted, privateIPAllocationMethod="Dynamic"))


def changed(held: t.Sequence[Document], wanted: Aliases, **more: t.Any) -> list[Document]:
    """The ipConfigurations of one NIC brought to ``wanted``: what goes goes from the end, what comes is put there.

    New ones get ``more`` among their properties. Raises AzureError for more than a NIC can have.
    """
    primary = held[_primary(held, "ipConfigurations")]
    kept: list[Document] = []
    aliases = 0
    for item in held:
        if not is_alias(item, primary):
            kept.append(item)
        elif prefix_length(item) == wanted.prefix_length and aliases < wanted.count:
            kept.append(item)
            aliases += 1
    missing = wanted.count - aliases
    if len(kept) + missing > CONFIGURATIONS_PER_NIC:
        others = len(kept) - aliases
        raise AzureError(
            f"{wanted} and {others} other ipConfigurations are more than the {CONFIGURATIONS_PER_NIC} of one NIC; "
            f"at most {CONFIGURATIONS_PER_NIC - others} are possible here"
        )
    # Names that go count too: a block under the name of an address that it replaces would be that ipConfiguration changed.
    names = _free_names({str(item.get("name")).lower() for item in held}, PREFIXES[wanted.prefix_length])
    return [*kept, *(_new(next(names), primary, wanted.prefix_length, more) for _missing in range(missing))]


def is_alias(item: Document, primary: Document) -> bool:
    """Whether an ipConfiguration is there for pods: IPv4, not the primary one, and without a role of its own."""
    properties = at(item, "properties")
    return (
        item is not primary
        and str(properties.get("privateIPAddressVersion") or "IPv4") == "IPv4"
        and not any(properties.get(role) for role in ROLES)
    )


def aliases(held: t.Sequence[Document]) -> list[Document]:
    """The aliases among the ipConfigurations of one NIC."""
    primary = held[_primary(held, "ipConfigurations")]
    return [item for item in held if is_alias(item, primary)]


def signature(held: t.Sequence[Document]) -> Signature:
    """What the aliases of a NIC are, their addresses aside: two NICs of one signature have the same wish fulfilled."""
    return frozenset((str(item.get("name")).lower(), prefix_length(item)) for item in aliases(held))


def leaving(held: t.Sequence[Document], going: t.Mapping[str, int]) -> list[str]:
    """The addresses and blocks of the aliases that go, which are given by name in lower case and prefix length.

    ``held`` are those of a NIC as ARM lists it, whose version may not know blocks. One without an address has nothing to lose.
    """
    found = []
    for item in aliases(held):
        name, text = str(item.get("name")).lower(), str(at(item, "properties").get("privateIPAddress") or "")
        if name in going and text:
            found.append(f"{text}/{going[name]}" if going[name] != SINGLE and "/" not in text else text)
    return found


def prefix_length(item: Document) -> int:
    """32 for a single address. Older versions of the API have a block's length in its address alone."""
    properties = at(item, "properties")
    _address, _slash, length = str(properties.get("privateIPAddress") or "").partition("/")
    return int(properties.get("privateIPAddressPrefixLength") or length or SINGLE)


def _new(name: str, primary: Document, length: int, more: t.Mapping[str, t.Any]) -> Document:
    like = at(primary, "properties")
    properties: dict[str, t.Any] = {"primary": False, "subnet": {"id": at(like, "subnet").get("id")}, "privateIPAddressVersion": "IPv4"}
    # Azure refuses a NIC whose ipConfigurations are in different groups
    # (AllIpConfigurationsOnANicMustBelongToTheSameApplicationSecurityGroups).
    if like.get("applicationSecurityGroups"):
        properties["applicationSecurityGroups"] = like["applicationSecurityGroups"]
    if length != SINGLE:
        properties["privateIPAddressPrefixLength"] = length
    return {"name": name, "properties": {**properties, **more}}


def _free_names(taken: set[str], prefix: str) -> t.Iterator[str]:
    """Always enough: a NIC has fewer names than there are numbers."""
    return (name for number in range(1, 2 * CONFIGURATIONS_PER_NIC) if (name := f"{prefix}{number:03d}") not in taken)


def _interfaces(network: Document) -> list[Document]:
    return [item for item in network.get("networkInterfaceConfigurations") or [] if isinstance(item, dict)]


def _configurations(interface: Document) -> list[Document]:
    return [item for item in at(interface, "properties").get("ipConfigurations") or [] if isinstance(item, dict)]


def _with(interface: Document, configurations: list[Document]) -> Document:
    return {**interface, "properties": {**interface["properties"], "ipConfigurations": configurations}}


def _primary(items: t.Sequence[Document], kind: str) -> int:
    """Which of some NICs or ipConfigurations is the primary one: the one that says so, or the only one."""
    flagged = [index for index, item in enumerate(items) if at(item, "properties").get("primary") is True]
    if len(flagged) == 1:
        return flagged[0]
    if len(items) == 1:
        return 0
    raise AzureError(f"of {len(items)} {kind} {len(flagged)} are primary where exactly one must be; correct the scale set's model")
