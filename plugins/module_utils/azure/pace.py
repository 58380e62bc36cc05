# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeping within ARM's limits before they are hit: all threads of a client share one pace.

ARM counts reads of a principal and subscription in a bucket of 250 that refills by 25 a second, and says in each answer
how many are left (learn.microsoft.com, "Understand how Azure Resource Manager throttles requests"). A request that is sent
before a Retry-After has passed is refused too, and makes the wait longer.
"""

from __future__ import annotations

import threading
import typing as t

REFILL_A_SECOND = 25.0
# The compute provider's smallest bucket for a whole subscription that a list takes from refills by 300 a minute
# (learn.microsoft.com, "Compute throttling limits").
PROVIDER_REFILL_A_SECOND = 5.0
SUBSCRIPTION_READS = "x-ms-ratelimit-remaining-subscription-reads"
RESOURCE = "x-ms-ratelimit-remaining-resource"
# Resource Graph: 15 queries in 5 s; the time until they come back is hours, minutes and seconds ("00:00:05").
GRAPH_LEFT, GRAPH_RESETS = "x-ms-user-quota-remaining", "x-ms-user-quota-resets-after"


class Pace:
    """When the next request may go. ``clock`` gives seconds; ``sleep`` waits for some."""

    def __init__(self, *, parallel: int, clock: t.Callable[[], float], sleep: t.Callable[[float], None]) -> None:
        """``parallel`` requests may be under way and not yet counted, so that many are kept in reserve."""
        self._reserve = parallel
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._next = 0.0
        self._between = 0.0

    def wait(self) -> None:
        """Wait for this request's turn."""
        with self._lock:
            now = self._clock()
            turn = max(now, self._next)
            self._next = turn + self._between
        if turn > now:
            self._sleep(turn - now)

    def heard(self, headers: t.Mapping[str, str], *, throttled_seconds: float | None = None) -> None:
        """What an answer said: how many requests are left, and for how long none may be sent."""
        with self._lock:
            self._between = max(
                1 / REFILL_A_SECOND if _is_low(headers.get(SUBSCRIPTION_READS), self._reserve) else 0.0,
                1 / PROVIDER_REFILL_A_SECOND
                if any(_is_low(left, self._reserve) for left in _of_subscription(headers.get(RESOURCE)))
                else 0.0,
            )
            if self._between:
                self._next = max(self._next, self._clock() + self._between)
            if _is_low(headers.get(GRAPH_LEFT), 0):
                self._next = max(self._next, self._clock() + _seconds(headers.get(GRAPH_RESETS)))
            if throttled_seconds is not None:
                self._next = max(self._next, self._clock() + throttled_seconds)
                # A bucket that has been empty holds few tokens when it is asked again.
                self._between = 1 / REFILL_A_SECOND


def _of_subscription(text: str | None) -> list[str]:
    """What is left in the provider's buckets of a whole subscription: "Microsoft.Compute/HighCostGetVMScaleSetSubscription;1079,...".

    Those of one resource are left out: no list asks one scale set often enough to empty its own.
    """
    pairs = [entry.strip().partition(";") for entry in (text or "").split(",")]
    return [left for name, _separator, left in pairs if name.lower().endswith("subscription")]


def _seconds(text: str | None) -> float:
    """ "00:00:05" in seconds; 0 for what is no time."""
    try:
        hours, minutes, seconds = map(float, (text or "").split(":"))
    except ValueError:
        return 0.0
    return hours * 3600 + minutes * 60 + seconds


def _is_low(left: str | None, reserve: int) -> bool:
    try:
        return left is not None and int(left) <= reserve
    except ValueError:
        return False
