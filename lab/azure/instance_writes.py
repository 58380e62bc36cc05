# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing to single instances: of Uniform sets, and to the virtual machines of Flexible ones with their NICs."""

from __future__ import annotations

import dataclasses
import functools
import typing as t

from aiohttp import web

from .. import changes, model
from ..fleet import Fleet, Instance
from . import errors, instances, interfaces, throttles
from .context import GROUP, NETWORK, NICS, ONE_INSTANCE, ONE_MACHINE, Answer, Context, Document, Route
from .network_reads import NetworkReads
from .set_writes import ACTIONS, check_configurations

OF_AN_INSTANCE = ("reimage", "reimageall", "redeploy", "restart", "start", "poweroff", "deallocate")
Find = t.Callable[[web.Request], Instance]


class InstanceWrites:
    def __init__(self, context: Context, network: NetworkReads) -> None:
        self._context = context
        self._network = network

    def routes(self) -> tuple[Route, ...]:
        found: list[Route] = []
        for place, find, update, delete in (
            (ONE_INSTANCE, self._context.instance, throttles.UPDATE_INSTANCE, throttles.DELETE_INSTANCE),
            (ONE_MACHINE, self._context.machine, throttles.UPDATE_MACHINE, throttles.UPDATE_MACHINE),
        ):
            found.append(Route(method="DELETE", path=place, handler=functools.partial(self.act, "delete", find), policy=delete))
            for name in OF_AN_INSTANCE:
                handler = functools.partial(self.act, name, find)
                found.append(Route(method="POST", path=f"{place}/{{_a:(?i:{name})}}", handler=handler, policy=update))
        return (
            *found,
            Route(method="PUT", path=ONE_INSTANCE, handler=self.put_instance, policy=throttles.UPDATE_INSTANCE),
            Route(method="PATCH", path=ONE_MACHINE, handler=self.patch_machine, policy=throttles.UPDATE_MACHINE),
            Route(method="PUT", path=f"{GROUP}{NETWORK}/{NICS}/{{nic}}", handler=self.put_interface),
        )

    def act(self, name: str, find: Find, request: web.Request, body: Document) -> Answer:
        """One action on one instance; no protection keeps it off."""
        item = find(request)
        action = ACTIONS[name][0]
        return self._context.operation(request, f"{name} {item.name}", lambda fleet: action(fleet, item.scale_set, {item.vm_id}))

    def put_instance(self, request: web.Request, body: Document) -> Answer:
        """Protection, tags and user data of a Uniform instance; the rest of the body is what was read."""
        item = self._context.instance(request)
        properties = body.get("properties") or {}
        policy = properties.get("protectionPolicy") or {}

        def update(fleet: Fleet) -> Fleet:
            return _changed(
                fleet,
                item.vm_id,
                protected_from_scale_in=bool(policy.get("protectFromScaleIn")),
                protected_from_scale_set_actions=bool(policy.get("protectFromScaleSetActions")),
                **_tags_and_user_data(body, properties),
            )

        return self._answer(request, item, update, lambda fleet, now: instances.uniform(fleet, now, view=False))

    def patch_machine(self, request: web.Request, body: Document) -> Answer:
        """Tags and user data of a Flexible instance."""
        item = self._context.machine(request)
        given = _tags_and_user_data(body, body.get("properties") or {})
        return self._answer(
            request, item, lambda fleet: _changed(fleet, item.vm_id, **given), lambda fleet, now: instances.flexible(fleet, now, view=False)
        )

    def put_interface(self, request: web.Request, body: Document) -> Answer:
        """The ipConfigurations of a Flexible instance's NIC."""
        item = self._network.owner(request)
        self._context.unchanged(request, interfaces.etag(item))
        listed = (body.get("properties") or {}).get("ipConfigurations")
        if not isinstance(listed, list) or not listed:
            raise errors.bad_parameter("ipConfigurations", "A network interface must have at least one.")
        document = {"networkInterfaceConfigurations": [{"properties": {"ipConfigurations": listed}}]}
        wanted = model.configurations({"virtualMachineProfile": {"networkProfile": document}})
        check_configurations(wanted)
        return self._answer(
            request, item, lambda fleet: changes.reconfigure(fleet, item.vm_id, wanted), lambda fleet, now: interfaces.render(fleet, now)
        )

    def _answer(
        self,
        request: web.Request,
        item: Instance,
        update: t.Callable[[Fleet], Fleet],
        render: t.Callable[[Fleet, Instance], Document],
    ) -> Answer:
        def result() -> Document:
            fleet = self._context.fleet
            now = next((one for one in fleet.instances if one.vm_id == item.vm_id), item)
            return render(fleet, now)

        answer = self._context.operation(request, f"write {item.name}", update, result=result)
        return Answer(status=200, body=result(), headers={key: value for key, value in answer.headers.items() if key != "Location"})


def _changed(fleet: Fleet, vm_id: str, **fields: t.Any) -> Fleet:
    return changes.with_instances(fleet, (dataclasses.replace(item, **fields) for item in fleet.instances if item.vm_id == vm_id))


def _tags_and_user_data(body: Document, properties: Document) -> dict[str, t.Any]:
    given: dict[str, t.Any] = {}
    if "tags" in body:
        given["tags"] = dict(body["tags"] or {})
    if "userData" in properties:
        given["user_data"] = str(properties["userData"] or "")
    return given
