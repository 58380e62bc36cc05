# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scheduled events: what the platform is about to do to a machine, who is told, and how they agree to it.

learn.microsoft.com, "Azure Metadata Service: Scheduled Events for Linux VMs". An event is shown to every machine of the
placement group (here: of the scale set), except where a GPU size runs with one fault domain: then to its own machine alone.
"""

from __future__ import annotations

import dataclasses
import datetime
import typing as t
import uuid

from .. import changes, model
from ..fleet import Fleet, Instance

Document = dict[str, t.Any]
Type = t.Literal["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"]
TYPES: tuple[Type, ...] = t.get_args(Type)
# The least notice that Azure gives, in seconds (same page, "Event scheduling").
NOTICE_SECONDS = {"Freeze": 900, "Reboot": 900, "Redeploy": 600, "Preempt": 30, "Terminate": 300}
DURATION_SECONDS = {"Freeze": 9, "Reboot": -1, "Redeploy": -1, "Preempt": -1, "Terminate": -1}


class EventError(ValueError):
    """An event that cannot be scheduled or started; the message says what is wrong."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Event:
    """``not_before`` is when it starts by itself; None once it has started, as when hardware has failed already."""

    id: str
    type: Type
    vm_id: str
    machine: str
    not_before: datetime.datetime | None
    description: str

    def document(self) -> Document:
        when = "" if self.not_before is None else self.not_before.strftime("%a, %d %b %Y %H:%M:%S GMT")
        return {
            "EventId": self.id,
            "EventType": self.type,
            "ResourceType": "VirtualMachine",
            "Resources": [self.machine],
            "EventStatus": "Started" if self.not_before is None else "Scheduled",
            "NotBefore": when,
            "Description": self.description,
            "EventSource": "Platform",
            "DurationInSeconds": DURATION_SECONDS[self.type],
        }


def effect(fleet: Fleet, event: Event) -> Fleet:
    """What an event does to its machine once it starts. A freeze passes without a trace."""
    item = next((item for item in fleet.instances if item.vm_id == event.vm_id), None)
    if item is None or event.type == "Freeze":
        return fleet
    action = changes.restart if event.type in ("Reboot", "Redeploy") else changes.delete
    return action(fleet, item.scale_set, {item.vm_id})


class Events:
    """``clock`` gives the time in UTC. ``start`` is called once for each event that starts, ``later`` after so many seconds."""

    def __init__(
        self,
        start: t.Callable[[Event], None],
        clock: t.Callable[[], datetime.datetime],
        later: t.Callable[[float, t.Callable[[], None]], object],
    ) -> None:
        self._start = start
        self._later = later
        self._clock = clock
        self._events: dict[str, Event] = {}
        self._incarnation = 1

    def schedule(self, item: Instance, kind: str, *, notice: float | None = None, description: str = "") -> Event:
        """Plan an event. ``notice`` is in seconds, Azure's least when None; 0 starts it at once, as failing hardware does."""
        if kind not in TYPES:
            raise EventError(f"event type {kind!r} is not one of: {', '.join(TYPES)}")
        seconds = NOTICE_SECONDS[kind] if notice is None else notice
        event = Event(
            id=str(uuid.uuid4()).upper(),
            type=kind,
            vm_id=item.vm_id,
            machine=item.name,
            not_before=self._clock() + datetime.timedelta(seconds=seconds),
            description=description or f"Virtual machine is going to be affected by an event of type {kind}.",
        )
        self._events[event.id] = event
        self._incarnation += 1
        # Nobody has to ask for it to begin.
        self._later(max(seconds, 0), lambda: self._due(event.id))
        self._tick()
        return self._events.get(event.id, event)

    def seen_by(self, fleet: Fleet, item: Instance) -> Document:
        """The document for one machine."""
        self._tick()
        scale_set = fleet.scale_set(item.scale_set)
        alone = (
            model.size(fleet.model_of(item)).startswith("Standard_N")
            and scale_set.document["properties"].get("platformFaultDomainCount") == 1
        )
        mates = {one.vm_id for one in fleet.instances_of(item.scale_set) if one.placement_group_id == item.placement_group_id}
        shown = {item.vm_id} if alone else mates
        return {
            "DocumentIncarnation": self._incarnation,
            "Events": [event.document() for event in self._events.values() if event.vm_id in shown],
        }

    def approve(self, fleet: Fleet, item: Instance, body: t.Any) -> None:
        """Start events before their time. Raises EventError for one that this machine does not see."""
        requests = body.get("StartRequests") if isinstance(body, dict) else None
        if not isinstance(requests, list) or not requests:
            raise EventError("StartRequests must be a list with at least one EventId")
        visible = {event["EventId"] for event in self.seen_by(fleet, item)["Events"]}
        wanted = [str(request.get("EventId")) if isinstance(request, dict) else "" for request in requests]
        for identifier in wanted:
            if identifier not in visible:
                raise EventError(f"EventId {identifier} is not known")
        for identifier in wanted:
            self._begin(self._events[identifier])

    def finish(self, event: Event) -> None:
        """Forget an event whose effect is over."""
        if self._events.pop(event.id, None):
            self._incarnation += 1

    def _due(self, identifier: str) -> None:
        event = self._events.get(identifier)
        if event:
            self._begin(event)

    def _tick(self) -> None:
        for event in list(self._events.values()):
            if event.not_before is not None and event.not_before <= self._clock():
                self._begin(event)

    def _begin(self, event: Event) -> None:
        if event.not_before is None:
            return
        started = dataclasses.replace(event, not_before=None)
        self._events[event.id] = started
        self._incarnation += 1
        self._start(started)
