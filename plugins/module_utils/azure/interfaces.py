# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Network interfaces: ARM's raw documents made into small records, and the addresses of an instance made of these.

Pure. An interface with 27 ipConfigurations is a document of 25 KB, of which this keeps the addresses.
Property names and shapes: Microsoft.Network 2018-10-01 (interfaces of scale sets) and newer.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import typing as t

from .addresses import canonical
from .documents import Document, at
from .errors import AzureError


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Interface:
    """``key`` is its own lower-case id; ``owner`` is the lower-case id of its instance, "" for nobody's.

    Addresses are IPv4 or IPv6, or blocks ("10.1.0.16/28").
    ``aliases`` are the addresses of all configurations but the primary one, IPv4 only.
    """

    key: str
    owner: str
    primary: bool
    primary_address: str
    aliases: tuple[str, ...]
    document: Document | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Addresses:
    primary: str
    aliases: tuple[str, ...]


def interface(document: Document, *, keep_document: bool = False) -> Interface:
    """One interface of ARM's list.

    A configuration without an address (a stopped instance gives them back) counts for nothing. IPv6 configurations
    can never be an interface's primary one and are no aliases: pods here have IPv4 alias addresses.
    Raises AzureError for addresses that are none.
    """
    properties = at(document, "properties")
    configurations = [at(item, "properties") for item in properties.get("ipConfigurations") or [] if isinstance(item, dict)]
    single = len(configurations) == 1
    primary = ""
    aliases: list[str] = []
    for configuration in configurations:
        address = _address(configuration, document)
        if not address:
            continue
        if configuration.get("primary") or single:
            primary = address
        elif ":" not in address:
            aliases.append(address)
    return Interface(
        key=str(document.get("id") or "").lower(),
        owner=str(at(properties, "virtualMachine").get("id") or "").lower(),
        primary=bool(properties.get("primary")),
        primary_address=primary,
        aliases=tuple(aliases),
        document=document if keep_document else None,
    )


def by_owner(found: t.Iterable[Interface]) -> dict[str, list[Interface]]:
    """Interfaces by the instance that has them; those of nobody are left out. One that two pages hold counts once."""
    owned: dict[str, list[Interface]] = {}
    for item in {item.key or id(item): item for item in found}.values():
        if item.owner:
            owned.setdefault(item.owner, []).append(item)
    return owned


def addresses(interfaces: t.Sequence[Interface]) -> Addresses:
    """The primary address of the primary interface, and the alias addresses of all interfaces."""
    primary = ""
    for item in interfaces:
        if item.primary_address and (item.primary or len(interfaces) == 1):
            primary = item.primary_address
    return Addresses(primary=primary, aliases=tuple(address for item in interfaces for address in item.aliases))


def _address(configuration: Document, interface: Document) -> str:
    """One configuration's address, or its block where it has a prefix length (given beside the address, in it, or both)."""
    text = str(configuration.get("privateIPAddress") or "")
    if not text:
        return ""
    length = configuration.get("privateIPAddressPrefixLength")
    if "/" not in text and length is not None:
        text = f"{text}/{length}"
    try:
        if "/" not in text:
            return canonical(text)
        block = ipaddress.ip_network(text)
    except ValueError as error:
        raise AzureError(
            f"{_name(interface)}: ARM gives {text!r} as private address ({error}); run again, and report it if it stays so"
        ) from error
    if length is not None and block.prefixlen != length:
        raise AzureError(f"{_name(interface)}: ARM gives the block {text} and the prefix length {length}, which disagree; run again")
    # A block of one address is an address.
    return str(block.network_address) if block.prefixlen == block.max_prefixlen else str(block)


def _name(interface: Document) -> str:
    return str(interface.get("id") or interface.get("name") or "an interface")
