# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run Command: a script on a machine through its agent, which needs no network of the machine."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import typing as t

from aiohttp import web

from ..changes import ChangeError
from ..fleet import Instance
from . import errors, throttles
from .context import ONE_INSTANCE, ONE_MACHINE, Answer, Context, Document, Route

# Azure returns the last 4,096 bytes of each output (learn.microsoft.com, "Run scripts in your Linux VM by using action Run Commands").
OUTPUT_BYTES = 4096


@dataclasses.dataclass(frozen=True, kw_only=True)
class Output:
    stdout: str
    stderr: str


# Runs a shell script as root on an instance; may take a while.
RunScript = t.Callable[[Instance, str], Output]


class RunCommand:
    """``run`` None: no machine has an agent."""

    def __init__(self, context: Context, run: RunScript | None) -> None:
        self._context = context
        self._run = run
        self._busy: set[str] = set()

    def routes(self) -> tuple[Route, ...]:
        return tuple(
            Route(method="POST", path=f"{place}/{{_a:(?i:runCommand)}}", handler=functools.partial(self.start, find), policy=policy)
            for place, find, policy in (
                (ONE_INSTANCE, self._context.instance, throttles.UPDATE_INSTANCE),
                (ONE_MACHINE, self._context.machine, throttles.UPDATE_MACHINE),
            )
        )

    def start(self, find: t.Callable[[web.Request], Instance], request: web.Request, body: Document) -> Answer:
        """Begin a script; its output is the result of the operation."""
        item = find(request)
        script = body.get("script")
        if body.get("commandId") != "RunShellScript":
            raise errors.bad_parameter("commandId", "The lab knows RunShellScript.")
        if not isinstance(script, list) or not all(isinstance(line, str) for line in script):
            raise errors.bad_parameter("script", "It must be a list of lines.")
        if item.power != "running":
            raise ChangeError("OperationNotAllowed", f"Cannot run a command on VM '{item.name}': it is not running.")
        if self._run is None or self._context.fleet.scale_set(item.scale_set).kind == "stub":
            raise ChangeError("OperationNotAllowed", f"Cannot run a command on VM '{item.name}': its agent does not answer.")
        if item.vm_id in self._busy:
            raise ChangeError(
                "Conflict", "Run command extension execution is in progress. Please wait for completion before invoking a run command."
            )
        said: list[Output] = []
        work = self._execute(item, "\n".join(script) + "\n", self._run, said)
        begun = self._context.operations.begin(f"run command on {item.name}", work, result=lambda: _result(said))
        return Answer(status=202, headers=self._context.operations.headers(begun, request.query["api-version"]))

    async def _execute(self, item: Instance, script: str, run: RunScript, said: list[Output]) -> None:
        self._busy.add(item.vm_id)
        try:
            said.append(await asyncio.to_thread(run, item, script))
        finally:
            self._busy.discard(item.vm_id)


def _result(said: list[Output]) -> Document | None:
    if not said:
        return None
    stdout, stderr = (text.encode()[-OUTPUT_BYTES:].decode(errors="replace") for text in (said[0].stdout, said[0].stderr))
    message = f"Enable succeeded: \n[stdout]\n{stdout}\n[stderr]\n{stderr}"
    return {
        "value": [{"code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Provisioning succeeded", "message": message}]
    }
