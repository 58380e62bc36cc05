# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ARM's limits are kept before they are hit: played against the buckets that ARM has, with a clock of the test's own."""

from __future__ import annotations

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import pace
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.azure import throttles

PARALLEL = 16


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def paced(clock: Clock) -> pace.Pace:
    return pace.Pace(parallel=PARALLEL, clock=clock, sleep=clock.sleep)


def test_nobody_waits_while_enough_is_left(clock: Clock) -> None:
    one = paced(clock)
    for left in range(250, PARALLEL, -1):
        one.wait()
        one.heard({pace.SUBSCRIPTION_READS: str(left)})
    assert clock.now == 100.0


def test_the_last_tokens_are_spent_as_they_come_back(clock: Clock) -> None:
    one = paced(clock)
    one.heard({pace.SUBSCRIPTION_READS: str(PARALLEL)})
    for _request in range(51):
        one.wait()
    assert clock.now - 100.0 == pytest.approx(51 / pace.REFILL_A_SECOND)


def test_the_buckets_of_the_provider_count_and_those_of_one_resource_do_not(clock: Clock) -> None:
    one = paced(clock)
    one.heard({pace.RESOURCE: "Microsoft.Compute/HighCostGetVMScaleSetResource;1,Microsoft.Compute/HighCostGetVMScaleSetSubscription;900"})
    one.wait()
    one.wait()
    assert clock.now == 100.0
    one.heard({pace.RESOURCE: "Microsoft.Compute/HighCostGetVMScaleSetSubscription;3"})
    one.wait()
    one.wait()
    assert clock.now == pytest.approx(100.4)


def test_all_wait_for_what_one_was_told(clock: Clock) -> None:
    one = paced(clock)
    one.heard({}, throttled_seconds=12)
    one.wait()
    assert clock.now == 112.0
    one.wait()
    assert clock.now == pytest.approx(112.0 + 1 / pace.REFILL_A_SECOND)


@pytest.mark.parametrize("text", ["", "many", "-", "12;;"])
def test_a_header_that_makes_no_sense_is_no_limit(clock: Clock, text: str) -> None:
    one = paced(clock)
    one.heard({pace.SUBSCRIPTION_READS: text, pace.RESOURCE: text})
    one.wait()
    one.wait()
    assert clock.now == 100.0


@settings(deadline=None)
@given(calls=st.integers(1, 2000), spent=st.integers(0, 250), seconds_a_call=st.floats(0.001, 0.5))
def test_a_list_of_any_length_is_never_throttled(calls: int, spent: int, seconds_a_call: float) -> None:
    """Whatever others had left of the bucket, the first refusals apart that nobody could foresee."""
    clock = Clock()
    one, arm = paced(clock), throttles.Throttles(clock)
    for _request in range(spent):
        arm.ask("GET", None, principal="p", subscription="s", resource="")
    refused = 0
    for _request in range(calls):
        while True:
            one.wait()
            verdict = arm.ask("GET", None, principal="p", subscription="s", resource="")
            one.heard(verdict.headers, throttled_seconds=verdict.retry_after or None)
            if not verdict.retry_after:
                break
            refused += 1
        # Up to sixteen are under way side by side.
        clock.now += seconds_a_call / PARALLEL
    assert refused <= (1 if spent == 250 else 0)
