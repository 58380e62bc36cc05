# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The instance metadata service: every instance gets its own answer, known by its address."""

from __future__ import annotations

import asyncio
import base64
import collections
import dataclasses
import datetime
import json
import time
import typing as t

from aiohttp import web

from .. import model
from ..current import Current
from ..fleet import ADMIN_USER, Fleet, Instance
from . import instances, names
from .faults import Fault, Faults
from .scheduled_events import Event, Events, effect
from .tokens import Tokens

Document = dict[str, t.Any]
# Signs a document in the name of the cloud; gives a PKCS#7 structure in DER.
Attest = t.Callable[[bytes], bytes]
# learn.microsoft.com, "Azure Instance Metadata Service", supported API versions; and 2021-08-01, which cloud-init asks for.
VERSIONS = (
    "2017-04-02", "2017-08-01", "2017-12-01", "2018-02-01", "2018-04-02", "2018-10-01", "2019-02-01", "2019-03-11", "2019-04-30",
    "2019-06-01", "2019-06-04", "2019-08-01", "2019-08-15", "2019-11-01", "2020-06-01", "2020-07-15", "2020-09-01", "2020-10-01",
    "2020-12-01", "2021-01-01", "2021-02-01", "2021-03-01", "2021-05-01", "2021-08-01", "2021-10-01", "2021-11-01", "2021-11-15", "2021-12-13",
    "2023-07-01", "2023-11-15", "2025-04-07",
)  # fmt: skip
IDENTITY_VERSIONS = frozenset({"2018-02-01", "2019-08-01", "2020-06-01"})
# Requests a second for each VM; more are answered with 429 (same page, rate limiting).
RATE = 5
# Managed identity tokens have a limit of their own: 20 a second.
IDENTITY_RATE = 20


class Imds:
    """``address_of`` tells who asks; ``clock`` gives seconds."""

    def __init__(
        self,
        current: Current,
        tokens: Tokens,
        *,
        address_of: t.Callable[[web.Request], str] = lambda request: request.remote or "",
        clock: t.Callable[[], float] = time.monotonic,
        active: Faults | None = None,
        attest: Attest | None = None,
    ) -> None:
        self.current = current
        self.tokens = tokens
        self.address_of = address_of
        self.clock = clock
        self.faults = active or Faults()
        self.attest = attest
        self.events = Events(
            self._start,
            lambda: datetime.datetime.now(datetime.UTC),
            lambda seconds, call: asyncio.get_running_loop().call_later(seconds, call),
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self.asked: dict[tuple[str, str], collections.deque[float]] = {}

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/metadata/versions", self._guarded(self._versions))
        app.router.add_get("/metadata/identity/oauth2/token", self._guarded(self._token, kind="identity", rate=IDENTITY_RATE))
        app.router.add_get("/metadata/instance{path:(/.*)?}", self._guarded(self._instance))
        app.router.add_get("/metadata/attested/document", self._guarded(self._attested))
        app.router.add_get("/metadata/scheduledevents", self._guarded(self._scheduled_events))
        app.router.add_post("/metadata/scheduledevents", self._approve)
        return app

    def _guarded(
        self, handler: t.Callable[[web.Request, Instance], web.Response], *, kind: str = "instance", rate: int = RATE
    ) -> t.Callable[[web.Request], t.Any]:
        async def call(request: web.Request) -> web.Response:
            item = self._asking(self.address_of(request))
            met = self.faults.take(request.method, request.path_qs)
            for fault in met:
                await asyncio.sleep(fault.latency)
            if item is None or any(fault.answer == "cut" for fault in met):
                # Azure drops what does not come from a NIC's primary address: no answer at all.
                if request.transport is not None:
                    request.transport.abort()
                return web.Response(status=400)
            for fault in met:
                if fault.status:
                    return _error(fault.status, "This answer was asked for.")
            if request.headers.get("Metadata", "").lower() != "true":
                return _error(400, "Bad request. Required metadata header not specified")
            if "X-Forwarded-For" in request.headers:
                return _error(400, "Bad request. Required metadata header not specified")
            if not self._within_rate(item, kind, rate):
                return _error(429, "Too many requests")
            return handler(request, _bent(item, met))

        return call

    def _asking(self, address: str) -> Instance | None:
        """The instance whose NIC has this primary address now."""
        return next((item for item in self.current.fleet.instances if item.primary_address == address), None)

    def _within_rate(self, item: Instance, kind: str, rate: int) -> bool:
        now = self.clock()
        recent = self.asked.setdefault((item.vm_id, kind), collections.deque())
        while recent and recent[0] <= now - 1:
            recent.popleft()
        if len(recent) >= rate:
            return False
        recent.append(now)
        return True

    def _versions(self, request: web.Request, item: Instance) -> web.Response:
        return _json({"apiVersions": list(VERSIONS)})

    def _instance(self, request: web.Request, item: Instance) -> web.Response:
        versions = request.query.getall("api-version", [])
        if len(versions) != 1 or versions[0] not in VERSIONS:
            newest = list(reversed(VERSIONS[-5:]))
            return _json(
                {"error": "Bad request. api-version was not specified in the request or is not supported", "newest-versions": newest},
                status=400,
            )
        found = _walk(document(self.current.fleet, item), [part for part in request.match_info["path"].split("/") if part])
        if found is None:
            return _error(404, "Not found")
        if request.query.get("format", "json").lower() == "text":
            if isinstance(found, (dict, list)):
                keys = list(found) if isinstance(found, dict) else [str(number) for number in range(len(found))]
                return web.Response(text="\n".join(keys))
            return web.Response(text=str(found))
        if not isinstance(found, (dict, list)):
            return _error(400, "Bad request. The requested resource is a leaf, which is given as text: format=text")
        return _json(found)

    def _attested(self, request: web.Request, item: Instance) -> web.Response:
        """A document that the cloud has signed; ``nonce`` comes back in it."""
        if self.attest is None:
            return _error(404, "Not found")
        content = {
            "nonce": request.query.get("nonce", ""),
            "plan": {"name": "", "product": "", "publisher": ""},
            "sku": "",
            "subscriptionId": self.current.fleet.description.subscription,
            "vmId": item.vm_id,
        }
        return _json({"encoding": "pkcs7", "signature": base64.b64encode(self.attest(json.dumps(content).encode())).decode()})

    def _scheduled_events(self, request: web.Request, item: Instance) -> web.Response:
        return _json(self.events.seen_by(self.current.fleet, item))

    async def _approve(self, request: web.Request) -> web.Response:
        body = await request.read()

        def approve(_request: web.Request, item: Instance) -> web.Response:
            try:
                self.events.approve(self.current.fleet, item, json.loads(body or b"null"))
            except ValueError as error:
                return _error(400, f"Bad request. {error}")
            return web.Response()

        return t.cast("web.Response", await self._guarded(approve)(request))

    def _start(self, event: Event) -> None:
        task = asyncio.get_running_loop().create_task(self._carry_out(event))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_out(self, event: Event) -> None:
        try:
            await self.current.change(lambda fleet: effect(fleet, event))
        finally:
            self.events.finish(event)

    def _token(self, request: web.Request, item: Instance) -> web.Response:
        if request.query.get("api-version") not in IDENTITY_VERSIONS:
            return _json(
                {"error": "invalid_request", "error_description": "Required query variable 'api-version' is missing or not supported"},
                status=400,
            )
        resource = request.query.get("resource")
        if not resource:
            return _json({"error": "invalid_request", "error_description": "Required query variable 'resource' is missing"}, status=400)
        token = self.tokens.issue(resource, item.vm_id)
        expires = int(token.expires)
        return _json(
            {
                "access_token": token.value,
                "client_id": item.vm_id,
                "expires_in": str(expires - int(self.tokens.clock())),
                "expires_on": str(expires),
                "not_before": str(int(self.tokens.clock())),
                "resource": resource,
                "token_type": "Bearer",
            }
        )


def _bent(item: Instance, met: t.Iterable[Fault]) -> Instance:
    """The machine as a wrong answer would have it: a secondary address missing, or all of them."""
    for fault in met:
        kept = {"fewer_addresses": -1, "no_secondaries": 1}.get(fault.answer)
        if kept is not None:
            item = dataclasses.replace(item, configurations=item.configurations[:kept])
    return item


def document(fleet: Fleet, item: Instance) -> Document:
    """The whole instance document. Every primitive is a string, what is missing is empty."""
    return {"compute": _compute(fleet, item), "network": {"interface": [_interface(fleet, item)]}}


def _compute(fleet: Fleet, item: Instance) -> Document:
    scale_set, described, applied = fleet.scale_set(item.scale_set), fleet.description, fleet.model_of(item)
    tags = sorted((scale_set.tags if item.tags is None else item.tags).items())
    image = model.image(applied)
    uniform = names.is_uniform(fleet, item)
    resource = names.instance(fleet, item)
    return {
        "azEnvironment": "AzurePublicCloud",
        "customData": "",
        "evictionPolicy": "",
        "isHostCompatibilityLayerVm": "false",
        "licenseType": "",
        "location": described.location,
        "name": item.name,
        "offer": f"debian-{image}",
        "osProfile": {"adminUsername": ADMIN_USER, "computerName": item.computer_name, "disablePasswordAuthentication": "true"},
        "osType": "Linux",
        "placementGroupId": item.placement_group_id if uniform else "",
        "plan": {"name": "", "product": "", "publisher": ""},
        "platformFaultDomain": str(item.fault_domain),
        "platformSubFaultDomain": "",
        "platformUpdateDomain": str(item.update_domain) if uniform else "",
        "physicalZone": f"{described.location}-az{item.zone}" if item.zone else "",
        "priority": "Regular",
        "provider": "Microsoft.Compute",
        "publicKeys": [{"keyData": fleet.public_key, "path": f"/home/{ADMIN_USER}/.ssh/authorized_keys"}],
        "publisher": model.PUBLISHER,
        "resourceGroupName": described.resource_group,
        "resourceId": resource,
        "securityProfile": {"encryptionAtHost": "false", "secureBootEnabled": "false", "securityType": "", "virtualTpmEnabled": "false"},
        "sku": image,
        "storageProfile": {"dataDisks": [], "resourceDisk": {"size": "0"}},
        "subscriptionId": described.subscription,
        "tags": ";".join(f"{key}:{value}" for key, value in tags),
        "tagsList": [{"name": key, "value": value} for key, value in tags],
        "userData": instances.user_data(fleet, item),
        "version": "latest",
        "virtualMachineScaleSet": {"id": "" if uniform else names.scale_set(fleet, item.scale_set)},
        "vmId": item.vm_id,
        "vmScaleSetName": item.scale_set,
        "vmSize": model.size(applied),
        "zone": item.zone,
    }


def _interface(fleet: Fleet, item: Instance) -> Document:
    prefix = fleet.subnet_of(fleet.scale_set(item.scale_set)).prefix
    return {
        "ipv4": {
            "ipAddress": [{"privateIpAddress": address, "publicIpAddress": ""} for address in item.addresses],
            "subnet": [{"address": str(prefix.network_address), "prefix": str(prefix.prefixlen)}],
        },
        "ipv6": {"ipAddress": []},
        "macAddress": item.mac.replace(":", "").upper(),
    }


def _walk(value: t.Any, parts: list[str]) -> t.Any:
    for part in parts:
        if isinstance(value, dict):
            value = value.get(part)
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    return value


def _error(status: int, message: str) -> web.Response:
    return _json({"error": message}, status=status)


def _json(body: object, status: int = 200) -> web.Response:
    return web.Response(status=status, text=json.dumps(body), content_type="application/json")
