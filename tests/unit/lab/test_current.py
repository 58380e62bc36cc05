# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change that the nodes cannot follow, and the next one that they can."""

from __future__ import annotations

import asyncio

import pytest
from test_changes import fleet, vm_ids

from lab import changes
from lab.current import Current
from lab.fleet import Fleet
from lab.paths import LabError


def states(current: Current) -> list[str]:
    return [item.provisioning for item in current.fleet.instances_of("one")]


def test_what_failed_is_seen_as_failed_until_a_later_change_succeeds() -> None:
    broken = True

    def perform(_before: Fleet, _after: Fleet) -> None:
        if broken:
            raise LabError("no room")

    async def scenario() -> None:
        nonlocal broken
        current = Current(fleet(), perform)
        chosen = vm_ids(current.fleet)[:1]
        with pytest.raises(LabError):
            await current.change(lambda held: changes.reimage(held, "one", chosen))
        assert states(current) == ["Failed", "Succeeded"]
        broken = False
        await current.change(lambda held: changes.restart(held, "two", vm_ids(held, "two")))
        assert states(current) == ["Failed", "Succeeded"], "another instance's change mends nothing"
        await current.change(lambda held: changes.reimage(held, "one", chosen))
        assert states(current) == ["Succeeded", "Succeeded"]

    asyncio.run(scenario())
