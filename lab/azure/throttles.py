# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Throttling: the token buckets of Resource Manager, and of the compute provider behind it.

Sizes and refills: learn.microsoft.com, "Understand how Azure Resource Manager throttles requests" (token bucket, per
subscription and principal) and "Compute throttling limits" (per resource and per subscription, refilled each minute).
Listing the instances of a set is in no row of the second; public reports of its 429s count it with the high cost reads.
"""

from __future__ import annotations

import dataclasses
import math
import typing as t


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limit:
    """A bucket: how many requests at once, and how many come back each second."""

    size: int
    refill: float


@dataclasses.dataclass(frozen=True, kw_only=True)
class Policy:
    """A row of the compute provider's table; None where it has no limit of that kind."""

    name: str
    resource: Limit | None
    subscription: Limit | None


def _a_minute(refill: int, size: int) -> Limit:
    return Limit(size=size, refill=refill / 60)


READS = Limit(size=250, refill=25)
WRITES = Limit(size=200, refill=10)
DELETES = Limit(size=200, refill=10)

LOW_COST_GET = Policy(name="GetVMScaleSet", resource=_a_minute(12, 36), subscription=_a_minute(800, 2400))
HIGH_COST_GET = Policy(name="HighCostGetVMScaleSet", resource=_a_minute(10, 30), subscription=_a_minute(360, 1080))
UPDATE_SET = Policy(name="UpdateVMScaleSet", resource=_a_minute(4, 12), subscription=_a_minute(500, 1500))
PUT_SET = Policy(name="PutVMScaleSet", resource=_a_minute(4, 12), subscription=_a_minute(125, 375))
DELETE_SET = Policy(name="DeleteVMScaleSet", resource=_a_minute(4, 12), subscription=_a_minute(175, 525))
GET_INSTANCE = Policy(name="GetVMScaleSetVM", resource=_a_minute(12, 36), subscription=_a_minute(2000, 6000))
UPDATE_INSTANCE = Policy(name="UpdateVMScaleSetVM", resource=_a_minute(4, 12), subscription=_a_minute(500, 1500))
DELETE_INSTANCE = Policy(name="DeleteVMScaleSetVM", resource=_a_minute(4, 12), subscription=_a_minute(500, 1500))
GET_MACHINE = Policy(name="LowCostGetVM", resource=_a_minute(12, 36), subscription=_a_minute(8000, 24000))
LIST_MACHINES = Policy(name="HighCostGetVM", resource=None, subscription=_a_minute(300, 900))
UPDATE_MACHINE = Policy(name="UpdateVM", resource=_a_minute(4, 12), subscription=_a_minute(500, 1500))


class Bucket:
    """Tokens that come back with time. ``now`` is in seconds."""

    def __init__(self, limit: Limit, now: float) -> None:
        self.limit = limit
        self.tokens = float(limit.size)
        self.seen = now

    def look(self, now: float) -> float:
        """The seconds until a token is there; 0 when one is."""
        self.tokens = min(self.limit.size, self.tokens + (now - self.seen) * self.limit.refill)
        self.seen = now
        return 0.0 if self.tokens >= 1 else (1 - self.tokens) / self.limit.refill

    def take(self) -> int:
        """Take a token; how many whole ones are left."""
        self.tokens -= 1
        return int(self.tokens)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a request gets: headers when it passes, or the seconds to wait and who says so."""

    headers: dict[str, str]
    retry_after: int = 0
    policy: str = ""


class Throttles:
    """All buckets of one Azure. ``clock`` gives seconds."""

    def __init__(self, clock: t.Callable[[], float]) -> None:
        self._clock = clock
        self._buckets: dict[tuple[str, ...], Bucket] = {}

    def ask(self, method: str, policy: Policy | None, *, principal: str, subscription: str, resource: str) -> Verdict:
        """Take a token of every bucket that the request belongs to, or none when one of them is empty."""
        now = self._clock()
        kind, limit = {"GET": ("reads", READS), "DELETE": ("deletes", DELETES)}.get(method, ("writes", WRITES))
        general = self._bucket(("arm", principal, subscription, kind), limit, now)
        held = [("x-ms-ratelimit-remaining-subscription-" + kind, "", general)]
        if policy:
            for scope, wanted, key in (("Resource", policy.resource, resource), ("Subscription", policy.subscription, subscription)):
                # A list over a whole subscription or group is no one resource's: only the subscription counts it.
                if wanted and key:
                    name = f"Microsoft.Compute/{policy.name}{scope}"
                    held.append(("x-ms-ratelimit-remaining-resource", name, self._bucket((name, key), wanted, now)))
        for _header, name, bucket in held:
            wait = bucket.look(now)
            if wait:
                return Verdict(headers={}, retry_after=max(1, math.ceil(wait)), policy=name or "ResourceManager")
        headers: dict[str, str] = {}
        for header, name, bucket in held:
            left = bucket.take()
            text = f"{name};{left}" if name else str(left)
            headers[header] = f"{headers[header]},{text}" if header in headers else text
        return Verdict(headers=headers)

    def _bucket(self, key: tuple[str, ...], limit: Limit, now: float) -> Bucket:
        return self._buckets.setdefault(key, Bucket(limit, now))
