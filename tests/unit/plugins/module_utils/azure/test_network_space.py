# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ipaddress
import itertools
import typing as t

import hypothesis
import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import network_space as space
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.network_space import Need
from hypothesis import strategies as st

Range = ipaddress.IPv4Network


@pytest.mark.parametrize(
    ("length", "need", "others", "answer"),
    [
        # Five addresses are Azure's.
        (29, Need(singles=3), 0, True),
        (29, Need(singles=4), 0, False),
        (24, Need(singles=251), 0, True),
        (24, Need(singles=252), 0, False),
        (24, Need(singles=200), 51, True),
        (24, Need(singles=200), 52, False),
        # The first and the last block hold no block, but 12 and 15 addresses.
        (26, Need(blocks=2), 0, True),
        (26, Need(blocks=3), 0, False),
        (26, Need(blocks=2, singles=27), 0, True),
        (26, Need(blocks=2, singles=28), 0, False),
        (25, Need(blocks=5, singles=43), 0, True),
        (25, Need(blocks=5, singles=44), 0, False),
        # Others may lie anywhere.
        (25, Need(blocks=5), 1, True),
        (25, Need(blocks=5), 2, False),
        (27, Need(blocks=1), 0, False),
        (28, Need(blocks=1), 0, False),
        (29, Need(blocks=1), 0, False),
        # 100 nodes of 27 pods, as blocks and as single addresses.
        (20, Need(blocks=200, singles=100), 0, True),
        (21, Need(blocks=200, singles=100), 0, False),
        (20, Need(singles=2800), 0, True),
    ],
)
def test_a_subnet_holds_what_azure_leaves_of_it(length: int, need: Need, others: int, answer: bool) -> None:
    assert space.fits(length, need, others=others) is answer


@hypothesis.given(st.integers(18, 26), st.integers(0, 300), st.integers(1, 200))
def test_what_is_said_to_fit_can_be_laid_out(length: int, singles: int, blocks: int) -> None:
    """Blocks laid out one by one from the second on, addresses into what is left: the judgement must be the same."""
    cells = [[(cell, at) for at in range(16)] for cell in range(1 << 28 - length)]
    left = [address for cell in cells[:1] for address in cell][4:] + cells[-1][:-1]
    inner = cells[1:-1]
    possible = len(inner) >= blocks and len(left) + 16 * (len(inner) - blocks) >= singles
    assert space.fits(length, Need(singles=singles, blocks=blocks)) is possible


@pytest.mark.parametrize(
    ("need", "others", "length"),
    [
        (Need(singles=1), 0, 29),
        (Need(singles=4), 0, 28),
        (Need(singles=12), 0, 27),
        (Need(blocks=1), 0, 26),
        (Need(blocks=2), 1, 25),
        (Need(singles=28_000), 0, 17),
        (Need(blocks=2_000, singles=1_000), 0, 16),
    ],
)
def test_the_smallest_subnet_is_found(need: Need, others: int, length: int) -> None:
    assert space.length_for(need, others=others) == length
    assert not space.fits(length + 1, need, others=others) or length == 29


def test_what_ipv4_does_not_hold_is_no_length() -> None:
    with pytest.raises(ValueError, match="no IPv4 subnet"):
        space.length_for(Need(singles=1 << 32))


@pytest.mark.parametrize(
    ("whole", "taken", "left"),
    [
        (["10.0.0.0/24"], [], ["10.0.0.0/24"]),
        (["10.0.0.0/24"], ["10.0.0.0/24"], []),
        (["10.0.0.0/24"], ["10.0.0.64/26"], ["10.0.0.0/26", "10.0.0.128/25"]),
        (
            ["10.0.0.0/24"],
            ["10.0.0.0/28", "10.0.0.240/28"],
            ["10.0.0.16/28", "10.0.0.32/27", "10.0.0.64/26", "10.0.0.128/26", "10.0.0.192/27", "10.0.0.224/28"],
        ),
        (["10.1.0.0/24", "10.0.0.0/24"], ["10.0.0.0/25"], ["10.0.0.128/25", "10.1.0.0/24"]),
        (["10.0.0.0/24"], ["10.9.0.0/24"], ["10.0.0.0/24"]),
    ],
)
def test_free_is_what_subnets_leave(whole: list[str], taken: list[str], left: list[str]) -> None:
    assert space.free(map(Range, whole), map(Range, taken)) == [Range(item) for item in left]


def test_a_place_is_aligned_and_the_largest_come_first() -> None:
    placed = space.place([Range("10.0.0.0/24")], [26, 28, 25, 28])
    assert placed == [Range("10.0.0.128/26"), Range("10.0.0.192/28"), Range("10.0.0.0/25"), Range("10.0.0.208/28")]


def test_the_smallest_hole_that_does_is_taken() -> None:
    assert space.place([Range("10.0.0.0/16"), Range("10.9.0.0/24")], [24]) == [Range("10.9.0.0/24")]


def test_no_place_for_all_is_none_for_any() -> None:
    assert space.place([Range("10.0.0.0/24")], [25, 25, 28]) is None
    assert space.place([], [29]) is None


@st.composite
def tilings(draw: t.Callable[..., t.Any]) -> tuple[list[Range], list[Range]]:
    """A /16 cut into pieces at random, and some of the pieces."""
    pieces = [Range("10.0.0.0/16")]
    for _ in range(draw(st.integers(0, 25))):
        cut = pieces.pop(draw(st.integers(0, len(pieces) - 1)))
        pieces += cut.subnets() if cut.prefixlen < 29 else [cut]
    return pieces, [piece for piece in pieces if draw(st.booleans())]


@hypothesis.given(tilings(), st.randoms(use_true_random=False))
def test_what_has_been_cut_out_always_finds_a_place_again(tiling: tuple[list[Range], list[Range]], chance: t.Any) -> None:
    pieces, taken = tiling
    wanted = [piece.prefixlen for piece in pieces if piece not in taken]
    chance.shuffle(wanted)
    placed = space.place(space.free([Range("10.0.0.0/16")], taken), wanted)
    assert placed is not None and [item.prefixlen for item in placed] == wanted
    assert not any(one.overlaps(other) for one, other in itertools.combinations([*placed, *taken], 2))
    assert space.size([*placed, *taken]) == 1 << 16
