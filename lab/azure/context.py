# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all handlers of Resource Manager share: the fleet, looking resources up, pages, and how an answer is said."""

from __future__ import annotations

import contextvars
import dataclasses
import typing as t
import urllib.parse

from aiohttp import web

from ..current import Current
from ..fleet import Fleet, Instance, ScaleSet
from . import errors, names, paging
from .operations import Operations, Outcome
from .throttles import Policy

Document = dict[str, t.Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """An answer that is more than a document with status 200."""

    status: int
    body: Document | None = None
    headers: t.Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Route:
    """``handler`` takes the request and its JSON body; ``policy`` is the compute provider's throttling row, if any."""

    method: str
    path: str
    handler: t.Callable[[web.Request, Document], Document | Answer | t.Awaitable[Answer]]
    policy: Policy | None = None


def get(path: str, handler: t.Callable[[web.Request], Document], policy: Policy | None = None) -> Route:
    """A route that reads."""
    return Route(method="GET", path=path, handler=lambda request, _body: handler(request), policy=policy)


# Path pieces; ARM takes its own words in any case.
SUBSCRIPTION = "/subscriptions/{subscription}"
GROUPS = f"{SUBSCRIPTION}/resource{{_g:[gG]}}roups"
GROUP = f"{GROUPS}/{{group}}"
COMPUTE = "/providers/{_c:(?i:microsoft\\.compute)}"
NETWORK = "/providers/{_n:(?i:microsoft\\.network)}"
RESOURCES = "/providers/{_r:(?i:microsoft\\.resources)}"
SETS = f"{COMPUTE}/{{_s:(?i:virtualMachineScaleSets)}}"
MACHINES = "{_m:(?i:virtualMachines)}"
NICS = "{_i:(?i:networkInterfaces)}"
ONE_SET = f"{GROUP}{SETS}/{{set}}"
ONE_INSTANCE = f"{ONE_SET}/{MACHINES}/{{instance}}"
ONE_MACHINE = f"{GROUP}{COMPUTE}/{MACHINES}/{{machine}}"


class Context:
    def __init__(self, current: Current, operations: Operations, *, base_url: str) -> None:
        self.current = current
        self.operations = operations
        self.base_url = base_url
        # How the operation that the request of this task begins shall end; faults set it.
        self.outcome: contextvars.ContextVar[Outcome] = contextvars.ContextVar("outcome", default="")

    @property
    def fleet(self) -> Fleet:
        return self.current.fleet

    def page(self, request: web.Request, items: t.Sequence[t.Any], render: t.Callable[[t.Any], Document], size: int) -> Document:
        """One page of a list, with the link to the next."""

        def url(token: str) -> str:
            query = {**request.query, "$skiptoken": token}
            return f"{self.base_url}{urllib.parse.quote(request.path)}?{urllib.parse.urlencode(query)}"

        return paging.page(items, render, size=size, token=request.query.get("$skiptoken"), url=url)

    def scale_set(self, request: web.Request) -> ScaleSet:
        wanted = request.match_info["set"].lower()
        found = next((item for item in self.fleet.scale_sets if item.name.lower() == wanted), None)
        if found is None:
            raise errors.resource_not_found(
                "Microsoft.Compute/virtualMachineScaleSets", request.match_info["set"], self.fleet.description.resource_group
            )
        return found

    def uniform_set(self, request: web.Request) -> ScaleSet:
        """What belongs to Uniform sets alone says of a Flexible one that it does not exist."""
        found = self.scale_set(request)
        if not found.uniform:
            raise errors.resource_not_found("Microsoft.Compute/virtualMachineScaleSets", found.name, self.fleet.description.resource_group)
        return found

    def instance(self, request: web.Request) -> Instance:
        found = self.uniform_set(request)
        wanted = request.match_info["instance"]
        item = next((item for item in self.fleet.instances_of(found.name) if item.instance_id == wanted), None)
        if item is None:
            raise errors.instance_not_found(wanted)
        return item

    def flexible(self) -> list[Instance]:
        """Instances of Flexible sets, which are virtual machines of their own."""
        return [item for item in self.fleet.instances if not names.is_uniform(self.fleet, item)]

    def machine(self, request: web.Request) -> Instance:
        wanted = request.match_info["machine"].lower()
        found = next((item for item in self.flexible() if item.name.lower() == wanted), None)
        if found is None:
            raise errors.resource_not_found(
                "Microsoft.Compute/virtualMachines", request.match_info["machine"], self.fleet.description.resource_group
            )
        return found

    def unchanged(self, request: web.Request, etag: str) -> None:
        """Refuse a write to what is no longer as its writer has read it. Raises ArmError."""
        wanted = request.headers.get("If-Match")
        if wanted not in (None, "*", etag):
            raise errors.precondition_failed(wanted or "", etag)

    def operation(
        self,
        request: web.Request,
        kind: str,
        update: t.Callable[[Fleet], Fleet],
        *,
        result: t.Callable[[], Document | None] = lambda: None,
    ) -> Answer:
        """Start an update of the fleet. What Azure would refuse is refused now, before anything is begun."""
        self.current.check(update)
        begun = self.operations.begin(kind, self.current.change(update), result=result, outcome=self.outcome.get())
        provider = "Microsoft.Network" if "/microsoft.network/" in request.path.lower() else "Microsoft.Compute"
        return Answer(status=202, headers=self.operations.headers(begun, request.query["api-version"], provider))
