# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fleet of this moment, and the one way in which it changes."""

from __future__ import annotations

import asyncio
import typing as t

from . import changes
from .fleet import Fleet

Update = t.Callable[[Fleet], Fleet]
Perform = t.Callable[[Fleet, Fleet], None]


class Current:
    """``fleet`` is what readers see. ``perform`` brings the nodes from one fleet to the next; it may take a while."""

    def __init__(self, fleet: Fleet, perform: Perform = lambda _before, _after: None) -> None:
        self.fleet = fleet
        self._settled = fleet
        self._perform = perform
        self._lock = asyncio.Lock()

    def check(self, update: Update) -> None:
        """Raise what the update would raise, without doing it, so that a request is refused before it is taken."""
        update(self._settled)

    async def change(self, update: Update) -> None:
        """One change at a time, in the order of asking. While it goes on, readers see its provisioning states.

        When the nodes cannot follow, the fleet is as asked with the instances concerned in state Failed, and the error goes on.
        """
        async with self._lock:
            before = self._settled
            after = update(before)
            self.fleet = changes.busy(before, after)
            try:
                await asyncio.to_thread(self._perform, before, after)
            except BaseException:
                self.fleet = self._settled = changes.failed(before, after)
                raise
            self.fleet = self._settled = changes.succeeded(before, after)
