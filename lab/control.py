# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be asked of a running lab and of no Azure: faults, and events of the platform. Served on a socket for root alone."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import pathlib
import typing as t

import aiohttp
from aiohttp import web

from . import changes, preflight
from .azure.faults import FaultError
from .azure.scheduled_events import EventError
from .azure.service import Service
from .current import Current
from .paths import LabError, Paths

LIMIT_SECONDS = 120
# What a set's automaticRepairsPolicy can ask for; Replace is what it does unless it says otherwise.
REPAIRS = {"Replace": changes.replace, "Reimage": changes.reimage, "Restart": changes.restart}


class Control:
    def __init__(self, current: Current, service: Service) -> None:
        self._current = current
        self._service = service

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/faults", self._list)
        app.router.add_post("/faults", self._add)
        app.router.add_delete("/faults", self._clear)
        app.router.add_post("/events", self._event)
        app.router.add_post("/repairs", self._repair)
        return app

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response([dataclasses.asdict(fault) for fault in self._service.faults.active])

    async def _add(self, request: web.Request) -> web.Response:
        try:
            self._service.faults.add(await request.json())
        except FaultError as error:
            return web.json_response({"error": str(error)}, status=400)
        return web.json_response({})

    async def _clear(self, request: web.Request) -> web.Response:
        self._service.faults.clear()
        return web.json_response({})

    async def _event(self, request: web.Request) -> web.Response:
        asked = await request.json()
        item = next((item for item in self._current.fleet.instances if asked["node"] in (item.computer_name, item.name)), None)
        if item is None:
            return web.json_response({"error": f"there is no node {asked['node']}"}, status=400)
        try:
            event = self._service.events.schedule(item, asked["type"], notice=asked.get("notice"), description=asked.get("description", ""))
        except EventError as error:
            return web.json_response({"error": str(error)}, status=400)
        return web.json_response(event.document())

    async def _repair(self, request: web.Request) -> web.Response:
        """What an automatic repair does to an instance that it takes for sick. It waits until the repair is done."""
        asked = await request.json()
        item = next((item for item in self._current.fleet.instances if asked["node"] in (item.computer_name, item.name)), None)
        if item is None:
            return web.json_response({"error": f"there is no node {asked['node']}"}, status=400)
        properties = self._current.fleet.scale_set(item.scale_set).document["properties"]
        policy = properties.get("automaticRepairsPolicy") or {}
        suspended = any(service["serviceState"] == "Suspended" for service in properties.get("orchestrationServices", []))
        if not policy.get("enabled") or suspended or item.protected_from_scale_set_actions:
            reason = (
                "is protected"
                if item.protected_from_scale_set_actions
                else "has its repairs suspended"
                if suspended
                else "has none enabled"
            )
            return web.json_response({"error": f"no automatic repair: {item.name} or its set {reason}"}, status=400)
        action = REPAIRS[str(policy.get("repairAction") or "Replace")]
        await self._current.change(lambda fleet: action(fleet, item.scale_set, {item.vm_id}))
        return web.json_response({})


def socket_path(paths: Paths) -> pathlib.Path:
    return paths.run / "control.sock"


def ask(paths: Paths, method: str, path: str, body: object = None) -> t.Any:
    """Ask a running lab. Raises LabError when there is none, and with its own words when it refuses."""
    preflight.need_root(os.geteuid() == 0)
    if not socket_path(paths).exists():
        raise LabError(f"there is no running lab {paths.prefix} on this machine; start one with `gpufleet lab up --prefix {paths.prefix}`")
    try:
        status, answer = asyncio.run(_ask(paths, method, path, body))
    except (aiohttp.ClientError, TimeoutError) as error:
        raise LabError(f"lab {paths.prefix} does not answer ({error}); take it down and start it again") from error
    if status != 200:
        raise LabError(str(answer["error"]))
    return answer


async def _ask(paths: Paths, method: str, path: str, body: object) -> tuple[int, t.Any]:
    timeout = aiohttp.ClientTimeout(total=LIMIT_SECONDS)
    async with (
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(socket_path(paths))), timeout=timeout) as session,
        session.request(method, f"http://lab{path}", json=body) as response,
    ):
        return response.status, json.loads(await response.read())
