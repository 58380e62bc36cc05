# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is updated now, and why the others are not."""

from __future__ import annotations

import dataclasses

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import waves
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.errors import AzureError
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.waves import Candidate, Named
from hypothesis import given
from hypothesis import strategies as st

NOBODY = Named.of(())


def candidate(number: int, **more: object) -> Candidate:
    return dataclasses.replace(Candidate(instance_id=str(number), vm_id=f"VM-{number}", name=f"gpu_{number}"), **more)


@pytest.mark.parametrize(
    ("item", "idle", "allowed", "reason"),
    [
        (candidate(0), [], [], "not_idle"),
        (candidate(0), ["1"], [], "not_idle"),
        (candidate(0), ["0"], [], None),
        (candidate(0), ["vm-0"], [], None),
        (candidate(0), [" GPU_0 "], [], None),
        (candidate(0, protected=True), ["0"], ["0"], "protected"),
        (candidate(0, state="creating"), ["0"], [], "unsettled"),
        (candidate(0, state="deleting"), ["0"], [], "unsettled"),
        (candidate(0, state="failed"), ["0"], [], None),
        (candidate(0, drift=("sku.name",)), ["0"], [], "drifted"),
        (candidate(0, drift=("sku.name",)), ["0"], ["1"], "drifted"),
        (candidate(0, drift=("sku.name",)), ["0"], ["vm-0"], None),
        # A difference that is allowed makes nobody idle.
        (candidate(0, drift=("sku.name",)), [], ["0"], "not_idle"),
    ],
)
def test_the_reason(item: Candidate, idle: list[str], allowed: list[str], reason: str | None) -> None:
    chosen, skipped = waves.choose([item], idle=Named.of(idle), allow_drift=Named.of(allowed))
    assert chosen == ([] if reason else [item])
    assert [one.reason for one in skipped] == ([reason] if reason else [])
    assert [one.drift for one in skipped] == ([item.drift if reason == "drifted" else ()] if reason else [])


def test_batches() -> None:
    items = [candidate(number) for number in range(5)]
    assert [[item.instance_id for item in wave] for wave in waves.batches(items, 2)] == [["0", "1"], ["2", "3"], ["4"]]
    assert waves.batches([], 2) == []


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("gpu_9", "has no instance 'gpu_9'; did you mean gpu_"),
        ("zz", "has no instance 'zz'; it may have been replaced"),
        ("", "has no instance ''"),
    ],
)
def test_one_that_does_not_exist_is_an_error(entry: str, said: str) -> None:
    everyone = [candidate(0), candidate(1)]
    Named.of(["0", "VM-1"]).check("idle", everyone, "set gpu")
    with pytest.raises(AzureError, match=said):
        Named.of(["0", entry]).check("idle", everyone, "set gpu")


CANDIDATES = st.lists(
    st.builds(
        candidate,
        st.integers(0, 30),
        protected=st.booleans(),
        state=st.sampled_from(["succeeded", "creating", "deleting", "updating"]),
        drift=st.sampled_from([(), ("sku.name",)]),
    ),
    unique_by=lambda item: item.vm_id,
)


@given(CANDIDATES, st.sets(st.integers(0, 30)), st.integers(1, 7))
def test_each_is_in_one_wave_or_has_a_reason(everyone: list[Candidate], idle: set[int], size: int) -> None:
    chosen, skipped = waves.choose(everyone, idle=Named.of(map(str, idle)), allow_drift=NOBODY)
    in_waves = waves.batches(chosen, size)
    assert [item for wave in in_waves for item in wave] == chosen and all(1 <= len(wave) <= size for wave in in_waves)
    assert {item.vm_id for item in chosen} | {item.vm_id for item in skipped} == {item.vm_id for item in everyone}
    assert len(chosen) + len(skipped) == len(everyone)
    assert all(int(item.instance_id) in idle and not item.protected and not item.drift for item in chosen)
