# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ipaddress

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import addresses
from hypothesis import given
from hypothesis import strategies as st

# A small space, so that neighbours, gaps and blocks meet often.
_BASE = int(ipaddress.IPv4Address("10.1.0.0"))
_SINGLES = st.sets(st.integers(min_value=0, max_value=300), max_size=60)
_BLOCKS = st.sets(st.tuples(st.integers(min_value=0, max_value=18), st.just(28)), max_size=4)


def _text(number: int) -> str:
    return str(ipaddress.IPv4Address(_BASE + number))


@pytest.mark.parametrize(
    ("entries", "short"),
    [
        ([], ""),
        (["10.1.0.5"], "10.1.0.5"),
        (["10.1.0.5", "10.1.0.6", "10.1.0.7"], "10.1.0.5-10.1.0.7"),
        (["10.1.0.7", "10.1.0.5", "10.1.0.6"], "10.1.0.5-10.1.0.7"),
        (["10.1.0.255", "10.1.1.0"], "10.1.0.255-10.1.1.0"),
        (["10.1.0.5", "10.1.0.7"], "10.1.0.5,10.1.0.7"),
        (["10.1.0.9", "10.1.0.10"], "10.1.0.9-10.1.0.10"),
        (["10.1.0.32/28", "10.1.0.16/28"], "10.1.0.16/28,10.1.0.32/28"),
        (["10.1.0.15", "10.1.0.16/28"], "10.1.0.15,10.1.0.16/28"),
        (["10.1.0.17", "10.1.0.16/28"], "10.1.0.16/28"),
        (["10.1.0.5", "10.1.0.5"], "10.1.0.5"),
        (["fd00::1", "fd00::2", "10.1.0.5"], "10.1.0.5,fd00::1-fd00::2"),
    ],
)
def test_compact(entries: list[str], short: str) -> None:
    assert addresses.compact(entries) == short


@pytest.mark.parametrize(
    ("short", "entries"),
    [
        ("", []),
        ("10.1.0.5", ["10.1.0.5"]),
        (" 10.1.0.5 - 10.1.0.7 , 10.1.0.9", ["10.1.0.5", "10.1.0.6", "10.1.0.7", "10.1.0.9"]),
        ("10.1.0.16/30", ["10.1.0.16", "10.1.0.17", "10.1.0.18", "10.1.0.19"]),
        ("10.1.0.17,10.1.0.16/31", ["10.1.0.16", "10.1.0.17"]),
        ("fd00::1-fd00::2", ["fd00::1", "fd00::2"]),
    ],
)
def test_expand(short: str, entries: list[str]) -> None:
    assert addresses.expand(short) == entries


@pytest.mark.parametrize(
    "wrong", ["10.1.0.300", "10.1.0.9-10.1.0.5", "10.1.0.1-fd00::1", "10.1.0.17/28", "nodes", "10.0.0.0/8", "10.0.0.0/15"]
)
def test_expand_refuses(wrong: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        addresses.expand(wrong)


def test_expand_takes_a_whole_vnet() -> None:
    assert len(addresses.expand("10.1.0.0/16")) == 65_536


@given(singles=_SINGLES, blocks=_BLOCKS)
def test_expanding_what_was_compacted_gives_every_address_once(singles: set[int], blocks: set[tuple[int, int]]) -> None:
    entries = [_text(number) for number in singles] + [f"{_text(start * 16)}/{length}" for start, length in blocks]
    everything = set(singles) | {start * 16 + offset for start, _length in blocks for offset in range(16)}
    assert addresses.expand(addresses.compact(entries)) == [_text(number) for number in sorted(everything)]


@given(singles=_SINGLES)
def test_order_and_repetition_do_not_change_the_short_form(singles: set[int]) -> None:
    entries = [_text(number) for number in sorted(singles)]
    assert addresses.compact([*reversed(entries), *entries]) == addresses.compact(entries)
