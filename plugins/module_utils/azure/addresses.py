# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses in short: many alias addresses as one small string, and back.

ansible-core pays for each element of each host variable on every run (measured: 27 dictionaries a host cost
20 s at 7,500 hosts, one string 1.6 s), so a node's addresses travel as "10.1.0.5-10.1.0.30" or "10.1.0.16/28".
"""

from __future__ import annotations

import ipaddress
import socket
import typing as t

Address = t.Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Network = t.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]
# IP version, and the address as a number.
Number = tuple[int, int]

# A VNet holds at most 65,536 private addresses (learn.microsoft.com, "Azure subscription and service limits"),
# so a longer list is a slip of the pen, and expanding a /8 would take the controller's memory.
EXPAND_LIMIT = 65_536


def compact(entries: t.Iterable[str]) -> str:
    """Join addresses and blocks ("10.1.0.16/28") into one sorted, comma-separated string.

    Neighbouring single addresses become a range; a block stays a block, because Azure gave it as one.
    Raises ValueError for an entry that is neither.
    """
    blocks: set[Network] = set()
    singles: set[Number] = set()
    for entry in entries:
        if "/" in entry:
            blocks.add(ipaddress.ip_network(entry))
        else:
            singles.add(number(entry))
    if blocks:
        singles = {(version, value) for version, value in singles if not any(_address(version, value) in block for block in blocks)}
    parts: list[tuple[int, int, str]] = [(block.version, int(block.network_address), str(block)) for block in blocks]
    for (version, first), (_version, last) in _runs(sorted(singles)):
        text = str(_address(version, first))
        parts.append((version, first, text if first == last else f"{text}-{_address(version, last)}"))
    return ",".join(text for _version, _start, text in sorted(parts))


def number(text: str) -> Number:
    """An address as IP version and number.

    The C library reads an IPv4 address ten times as fast as the module ipaddress, and a fleet has 200,000 of them.
    Raises ValueError.
    """
    try:
        return 4, int.from_bytes(socket.inet_pton(socket.AF_INET, text), "big")
    except OSError:
        address = ipaddress.ip_address(text)
        return address.version, int(address)


def canonical(text: str) -> str:
    """The one way to write an address. Raises ValueError for what is none."""
    try:
        return socket.inet_ntop(socket.AF_INET, socket.inet_pton(socket.AF_INET, text))
    except OSError:
        return str(ipaddress.ip_address(text))


def expand(text: str) -> list[str]:
    """Every single address of what ``compact`` made, sorted, each once.

    Raises ValueError for a part that is no address, range or block, and for more than 65,536 addresses.
    """
    found: set[Address] = set()
    for part in (piece.strip() for piece in text.split(",")):
        if not part:
            continue
        first, last = _bounds(part)
        if int(last) - int(first) >= EXPAND_LIMIT - len(found):
            raise ValueError(f"{part!r} makes more than {EXPAND_LIMIT} addresses, more than a VNet holds; check its prefix length")
        found.update(_address(first.version, value) for value in range(int(first), int(last) + 1))
    return [str(address) for address in sorted(found, key=_order)]


def _bounds(part: str) -> tuple[Address, Address]:
    if "/" in part:
        network = ipaddress.ip_network(part)
        return network[0], network[-1]
    start, dash, end = part.partition("-")
    first = ipaddress.ip_address(start.strip())
    last = ipaddress.ip_address(end.strip()) if dash else first
    if first.version != last.version or int(last) < int(first):
        raise ValueError(f"{part!r} is not a range; the smaller address comes first, both of one IP version")
    return first, last


def _runs(ordered: t.Sequence[Number]) -> t.Iterator[tuple[Number, Number]]:
    start = 0
    for index in range(1, len(ordered) + 1):
        version, before = ordered[index - 1]
        if index == len(ordered) or ordered[index] != (version, before + 1):
            yield ordered[start], ordered[index - 1]
            start = index


def _address(version: int, number: int) -> Address:
    return ipaddress.IPv4Address(number) if version == 4 else ipaddress.IPv6Address(number)


def _order(address: Address) -> tuple[int, int]:
    return address.version, int(address)
