# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Azure Resource Graph: queries over the fleet's resources, in pages.

Tables, page sizes, quota and its headers: learn.microsoft.com, "Azure Resource Graph table and resource type reference",
"Working with large Azure resource data sets", "Guidance for throttled requests". That a row of an instance has no instance
view but the ``extended`` one is from its samples for virtual machines. The limit of a page's size is a guess.
"""

from __future__ import annotations

import collections
import json
import time
import typing as t

from aiohttp import web

from ..fleet import Fleet, Instance
from . import instances, interfaces, kusto, names, paging, scale_sets
from .context import Answer, Context, Document, Route
from .errors import ArmError

ROWS_A_PAGE = 1000
PAGE_BYTES = 16 * 1024 * 1024
QUERIES, WINDOW_SECONDS = 15, 5


class ResourceGraph:
    """``clock`` gives seconds; without ``throttled`` there is no quota."""

    def __init__(self, context: Context, *, throttled: bool, clock: t.Callable[[], float] = time.monotonic) -> None:
        self._context = context
        self._throttled = throttled
        self._clock = clock
        self._asked: collections.deque[float] = collections.deque()
        # The pages of one query are cut from rows that are made once, as long as the fleet stays as it is.
        self._kept: tuple[Fleet | None, dict[str, list[Document]]] = (None, {})

    def routes(self) -> tuple[Route, ...]:
        return (Route(method="POST", path="/providers/{_p:(?i:Microsoft\\.ResourceGraph)}/{_r:(?i:resources)}", handler=self.query),)

    def query(self, request: web.Request, body: Document) -> Answer:
        headers = self._quota()
        fleet = self._context.fleet
        wanted = body.get("subscriptions")
        if not isinstance(wanted, list) or fleet.description.subscription.lower() not in [str(name).lower() for name in wanted]:
            raise ArmError(
                400,
                "NoValidSubscriptionsInQueryRequest",
                "There must be at least one subscription that is eligible to contain resources.",
            )
        options = body.get("options") or {}
        top = options.get("$top", ROWS_A_PAGE)
        if not isinstance(top, int) or not 1 <= top <= ROWS_A_PAGE:
            raise ArmError(400, "BadRequest", f"$top must be between 1 and {ROWS_A_PAGE}.")
        text = str(body.get("query") or "")
        query, rows = self._rows(fleet, text)
        page = paging.page(rows, query.project, size=top, token=options.get("$skipToken"), url=lambda token: token)
        data = page["value"]
        answer: Document = {"totalRecords": len(rows), "count": len(data), "data": data, "facets": [], "resultTruncated": "false"}
        # Rows without an order have no next page that could be trusted, and Resource Graph gives none.
        if "nextLink" in page and query.order:
            answer["$skipToken"] = page["nextLink"]
        elif "nextLink" in page:
            answer["resultTruncated"] = "true"
        size = len(json.dumps(answer))
        if size > PAGE_BYTES:
            raise ArmError(
                400,
                "ResponsePayloadTooLarge",
                f"Response payload size is {size}, and has exceeded the limit of {PAGE_BYTES}. Query less data.",
            )
        return Answer(status=200, body=answer, headers=headers)

    def _rows(self, fleet: Fleet, text: str) -> tuple[kusto.Query, list[Document]]:
        """A query and all of its rows, before projection. Raises ArmError."""
        try:
            query = kusto.parse(text)
        except kusto.QueryError as error:
            raise ArmError(400, "InvalidQuery", f"Query is invalid: {error}.") from error
        if self._kept[0] is not fleet:
            self._kept = (fleet, {})
        rows = self._kept[1].get(text)
        if rows is None:
            rows = [row for row in _rows(fleet, query.table, query.conditions) if query.keeps(row)]
            if query.order:
                rows.sort(key=lambda row: str(kusto.find(row, query.order)).lower())
            self._kept[1][text] = rows
        return query, rows

    def _quota(self) -> dict[str, str]:
        """Take one query of the quota; returns the headers that say what is left."""
        if not self._throttled:
            return {}
        now = self._clock()
        while self._asked and self._asked[0] <= now - WINDOW_SECONDS:
            self._asked.popleft()
        resets = int(self._asked[0] + WINDOW_SECONDS - now + 1) if self._asked else WINDOW_SECONDS
        headers = {"x-ms-user-quota-resets-after": f"00:00:{resets:02d}"}
        if len(self._asked) >= QUERIES:
            raise ArmError(
                429, "RateLimiting", "Please provide a lower request rate.", headers={**headers, "x-ms-user-quota-remaining": "0"}
            )
        self._asked.append(now)
        return {**headers, "x-ms-user-quota-remaining": str(QUERIES - len(self._asked))}


def _rows(fleet: Fleet, table: str, conditions: t.Sequence[tuple[str, str | None]]) -> t.Iterator[Document]:
    """The rows of a table; where the type is asked for, only those are made."""
    tables: dict[str, dict[str, t.Callable[[Fleet], t.Iterator[Document]]]] = {
        "computeresources": {
            "microsoft.compute/virtualmachinescalesets/virtualmachines": _uniform,
            "microsoft.compute/virtualmachinescalesets/virtualmachines/networkinterfaces": lambda fleet: _interfaces(fleet, uniform=True),
        },
        "resources": {
            "microsoft.compute/virtualmachinescalesets": _sets,
            "microsoft.compute/virtualmachines": _flexible,
            "microsoft.network/networkinterfaces": lambda fleet: _interfaces(fleet, uniform=False),
        },
    }
    if table not in tables:
        raise ArmError(400, "InvalidQuery", f"Query is invalid: table '{table}' is not known.")
    wanted = {text.lower() for path, text in conditions if path == "type" and text is not None}
    for kind, make in tables[table].items():
        if not wanted or kind in wanted:
            for document in make(fleet):
                yield _row(fleet, kind, document)


def _row(fleet: Fleet, kind: str, document: Document) -> Document:
    """What all rows have: the type and the resource group are in lower case."""
    where = {"resourceGroup": fleet.description.resource_group.lower(), "subscriptionId": fleet.description.subscription}
    return {"location": fleet.description.location, "tags": None, "zones": None, "sku": None, **document, "type": kind, **where}


def _sets(fleet: Fleet) -> t.Iterator[Document]:
    return (scale_sets.render(fleet, item) for item in fleet.scale_sets)


def _of(fleet: Fleet, *, uniform: bool) -> list[Instance]:
    return [item for item in fleet.instances if names.is_uniform(fleet, item) == uniform]


def _uniform(fleet: Fleet) -> t.Iterator[Document]:
    return (_extended(instances.uniform(fleet, item, view=False), item) for item in _of(fleet, uniform=True))


def _flexible(fleet: Fleet) -> t.Iterator[Document]:
    return (_extended(instances.flexible(fleet, item, view=False), item) for item in _of(fleet, uniform=False))


def _extended(document: Document, item: Instance) -> Document:
    """Some of the instance view lies below ``extended``, the power state as one mapping."""
    view: Document = {"computerName": item.computer_name, "osName": "debian", "hyperVGeneration": "V2"}
    if item.provisioning != "Creating":
        view["powerState"] = {"code": f"PowerState/{item.power}", "level": "Info", "displayStatus": f"VM {item.power}"}
    return {**document, "properties": {**document["properties"], "extended": {"instanceView": view}}}


def _interfaces(fleet: Fleet, *, uniform: bool) -> t.Iterator[Document]:
    return (interfaces.render(fleet, item) for item in _of(fleet, uniform=uniform))
