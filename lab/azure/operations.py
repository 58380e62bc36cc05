# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Long-running operations: what a write answers at once, and what its caller is told when it asks later."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import typing as t
import uuid

from ..changes import ChangeError
from ..paths import LabError

Document = dict[str, t.Any]
Outcome = t.Literal["", "failed", "never"]
# Azure's clients wait this long between questions. Azure itself says 10 or more; nothing is gained by waiting here.
RETRY_AFTER_SECONDS = 1
# Finished operations that are remembered; Azure forgets them after a day.
REMEMBERED = 10_000


@dataclasses.dataclass(kw_only=True)
class Operation:
    """``result`` makes the body that a POST's or PUT's caller gets at the end, None for an empty one."""

    id: str
    kind: str
    started: datetime.datetime
    result: t.Callable[[], Document | None]
    ended: datetime.datetime | None = None
    error: tuple[str, str] | None = None

    @property
    def status(self) -> str:
        return "InProgress" if self.ended is None else "Failed" if self.error else "Succeeded"

    def document(self) -> Document:
        """As the address in Azure-AsyncOperation gives it."""
        document: Document = {"name": self.id, "status": self.status, "startTime": self.started.isoformat()}
        if self.ended:
            document["endTime"] = self.ended.isoformat()
        if self.error:
            document["error"] = {"code": self.error[0], "message": self.error[1]}
        return document


class Operations:
    """Operations of one lab. ``base_url`` is ARM's."""

    retry_after = str(RETRY_AFTER_SECONDS)

    def __init__(self, base_url: str, subscription: str, location: str) -> None:
        self._place = f"{base_url}/subscriptions/{subscription}/providers/{{}}/locations/{location}/operations"
        self._known: dict[str, Operation] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(
        self,
        kind: str,
        work: t.Coroutine[t.Any, t.Any, None],
        *,
        result: t.Callable[[], Document | None] = lambda: None,
        outcome: Outcome = "",
    ) -> Operation:
        """Start an operation. With an ``outcome`` the work is not done: it fails, or is never heard of again."""
        operation = Operation(id=str(uuid.uuid4()), kind=kind, started=_now(), result=result)
        self._known[operation.id] = operation
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        if outcome:
            work.close()
            if outcome == "failed":
                operation.error = ("InternalExecutionError", "An internal execution error occurred. Please retry later.")
                operation.ended = _now()
        else:
            task = asyncio.get_running_loop().create_task(self._run(operation, work))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return operation

    async def _run(self, operation: Operation, work: t.Coroutine[t.Any, t.Any, None]) -> None:
        try:
            await work
        except ChangeError as error:
            operation.error = (error.code, str(error))
        except LabError as error:
            operation.error = ("AllocationFailed", str(error))
        except Exception as error:
            operation.error = ("InternalExecutionError", f"{type(error).__name__}: {error}")
        finally:
            operation.ended = _now()

    def find(self, identifier: str) -> Operation | None:
        return self._known.get(identifier)

    def headers(self, operation: Operation, version: str, provider: str = "Microsoft.Compute") -> dict[str, str]:
        """The two addresses at which the operation can be followed, of the provider that was asked, and how often."""
        place = f"{self._place.format(provider)}/{operation.id}"
        return {
            "Azure-AsyncOperation": f"{place}?api-version={version}",
            "Location": f"{place}?monitor=true&api-version={version}",
            "Retry-After": self.retry_after,
        }


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)
