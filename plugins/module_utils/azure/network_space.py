# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Room in address ranges: how large a subnet has to be, and where in a VNet there is a place for it."""

from __future__ import annotations

import collections
import dataclasses
import heapq
import ipaddress
import math
import typing as t

from . import network_limits as limits

Range = ipaddress.IPv4Network

# Of a subnet's first and last block, the addresses that Azure does not keep for itself.
_SINGLES_AT_EDGES = 2 * limits.BLOCK_ADDRESSES - limits.RESERVED_AT_START - limits.RESERVED_AT_END


@dataclasses.dataclass(frozen=True, kw_only=True)
class Need:
    """Single addresses and aligned blocks, in one subnet."""

    singles: int = 0
    blocks: int = 0

    def __add__(self, other: Need) -> Need:
        return Need(singles=self.singles + other.singles, blocks=self.blocks + other.blocks)


def fits(length: int, need: Need, *, others: int = 0) -> bool:
    """Whether a subnet of a prefix length holds ``need`` beside ``others`` ipConfigurations, of which only the number is known.

    The first and the last block of a subnet are never whole. Each of the others may spoil a block of its own.
    """
    if not need.blocks:
        return need.singles + others <= usable(length)
    inner = (1 << limits.BLOCK_LENGTH - length) - 2 if length < limits.BLOCK_LENGTH else 0
    spoiled = math.ceil(max(0, need.singles - _SINGLES_AT_EDGES) / limits.BLOCK_ADDRESSES)
    return need.blocks + spoiled + others <= inner


def usable(length: int) -> int:
    """Addresses of a subnet that are not Azure's own."""
    return max(0, (1 << 32 - length) - limits.RESERVED_AT_START - limits.RESERVED_AT_END)


def length_for(need: Need, *, others: int = 0) -> int:
    """The prefix length of the smallest subnet that holds ``need`` beside ``others``. Raises ValueError where IPv4 has none."""
    for length in range(limits.SMALLEST_SUBNET_LENGTH, -1, -1):
        if fits(length, need, others=others):
            return length
    raise ValueError(f"no IPv4 subnet holds {need}")


def free(space: t.Iterable[Range], taken: t.Iterable[Range]) -> list[Range]:
    """What of ``space`` is left beside ``taken``, as aligned ranges in order."""
    edges = sorted((int(item.network_address), int(item.broadcast_address)) for item in taken)
    left: list[Range] = []
    for whole in sorted(space):
        start, last = int(whole.network_address), int(whole.broadcast_address)
        for first, end in edges:
            if end < start or first > last:
                continue
            if first > start:
                left += _aligned(start, first - 1)
            start = max(start, end + 1)
        if start <= last:
            left += _aligned(start, last)
    return left


def place(space: t.Iterable[Range], lengths: t.Sequence[int]) -> list[Range] | None:
    """One range of each of ``lengths``, in their order, within the aligned ranges ``space``; None where they do not all fit.

    The largest come first, each into the smallest hole that takes it. With sizes that are powers of two this finds a
    place for all wherever there is one.
    """
    holes: dict[int, list[int]] = collections.defaultdict(list)
    for item in space:
        heapq.heappush(holes[item.prefixlen], int(item.network_address))
    placed: dict[int, Range] = {}
    for index in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        wanted = lengths[index]
        found = next((length for length in range(wanted, -1, -1) if holes.get(length)), None)
        if found is None:
            return None
        start = heapq.heappop(holes[found])
        for length in range(found + 1, wanted + 1):
            heapq.heappush(holes[length], start + (1 << 32 - length))
        placed[index] = ipaddress.IPv4Network((start, wanted))
    return [placed[index] for index in range(len(lengths))]


def size(ranges: t.Iterable[Range]) -> int:
    """Addresses in all."""
    return sum(item.num_addresses for item in ranges)


def _aligned(first: int, last: int) -> t.Iterator[Range]:
    return ipaddress.summarize_address_range(ipaddress.IPv4Address(first), ipaddress.IPv4Address(last))
