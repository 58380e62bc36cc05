# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What this project adds to the SDK's pipeline: retries with jitter that end in time, and one pace for all threads.

Without azure-core it can be imported, as ansible-test does, but not used; the client says so in words.
"""

from __future__ import annotations

import random
import typing as t

from .pace import GRAPH_RESETS, Pace

if t.TYPE_CHECKING:
    from azure.core.pipeline.policies import RetryPolicy, SansIOHTTPPolicy

    AnyRetryPolicy = RetryPolicy[t.Any, t.Any]
    AnyPolicy = SansIOHTTPPolicy[t.Any, t.Any]
else:
    try:
        from azure.core.pipeline.policies import RetryPolicy as AnyRetryPolicy
        from azure.core.pipeline.policies import SansIOHTTPPolicy as AnyPolicy
    except ImportError:
        AnyRetryPolicy = AnyPolicy = object

THROTTLED = 429


class Retry(AnyRetryPolicy):
    """The SDK's policy, but for three things.

    Waits are of random length, so that sixteen threads that failed together do not come back together. A Retry-After that
    is longer than the whole time of a page is not waited for. After a 429 the pace waits, for all threads.
    """

    def get_backoff_time(self, settings: dict[str, t.Any]) -> float:
        longest = super().get_backoff_time(settings)
        return random.uniform(longest / 2, longest)

    def is_retry(self, settings: dict[str, t.Any], response: t.Any) -> bool:
        return (self.get_retry_after(response) or 0.0) < self.timeout and super().is_retry(settings, response)

    def sleep(self, settings: dict[str, t.Any], transport: t.Any, response: t.Any = None) -> None:
        paced = response is not None and response.http_response.status_code == THROTTLED
        if not paced or not (self.get_retry_after(response) or GRAPH_RESETS in response.http_response.headers):
            super().sleep(settings, transport, response)


class Paced(AnyPolicy):
    """Each attempt waits for its turn, and tells the pace what the answer said."""

    def __init__(self, pace: Pace, retry: Retry) -> None:
        self._pace = pace
        self._retry = retry

    def on_request(self, request: t.Any) -> None:
        self._pace.wait()

    def on_response(self, request: t.Any, response: t.Any) -> None:
        throttled = response.http_response.status_code == THROTTLED
        seconds = self._retry.get_retry_after(response) if throttled else None
        if seconds is not None and seconds >= self._retry.timeout:
            seconds = None  # nobody waits for that: the page fails, and with it the list
        self._pace.heard(response.http_response.headers, throttled_seconds=seconds)
