# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Azure Resource Manager: what every request must have and meets before its handler, and what every answer carries."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import pathlib
import time
import typing as t
import uuid

from aiohttp import web

from ..changes import ChangeError
from ..current import Current
from . import errors, faults
from .batch import Batch
from .compute_reads import ComputeReads
from .context import Answer, Context, Document, Route
from .errors import ArmError
from .faults import Fault, Faults
from .instance_writes import InstanceWrites
from .login import Principal, routes
from .network_reads import NetworkReads
from .operations import Operations, Outcome
from .resource_graph import ResourceGraph
from .resources import Resources
from .run_command import RunCommand, RunScript
from .set_writes import SetWrites
from .throttles import Throttles
from .tokens import Tokens

Handler = t.Callable[[web.Request], t.Awaitable[web.StreamResponse]]

# API versions that the lab takes: those of the SDK's current defaults, of the published examples, and those that
# this project sends. ARM refuses any other with the list of its own.
VERSIONS = {
    "microsoft.compute": frozenset({"2023-09-01", "2024-03-01", "2024-07-01", "2024-11-01", "2025-04-01", "2026-04-01"}),
    "microsoft.network": frozenset({"2018-10-01", "2023-11-01", "2024-01-01", "2024-05-01", "2024-07-01", "2025-01-01", "2026-03-01"}),
    "microsoft.resourcegraph": frozenset({"2021-03-01", "2022-10-01", "2024-04-01"}),
    "batch": frozenset({"2015-11-01", "2022-12-01"}),
    "microsoft.resources": frozenset({"2016-06-01", "2020-01-01", "2021-04-01", "2022-09-01", "2022-12-01", "2024-03-01"}),
}


class Arm:
    """The handlers over one fleet. ``authority`` is the file of the certificate authority that signed for ``base_url``;
    ``throttles`` None lets every request pass."""

    def __init__(
        self,
        current: Current,
        tokens: Tokens,
        *,
        base_url: str,
        authority: pathlib.Path,
        active: Faults | None = None,
        throttles: Throttles | None = None,
        run_script: RunScript | None = None,
    ) -> None:
        self.current = current
        self.tokens = tokens
        self.base_url = base_url
        self._authority = authority
        self.faults = active or Faults()
        self.throttles = throttles
        self._run_script = run_script
        described = current.fleet.description
        self._subscription, self._group, self._tenant = described.subscription, described.resource_group, described.tenant
        operations = Operations(base_url, described.subscription, described.location)
        self._context = Context(current, operations, base_url=base_url)

    def application(self, principal: Principal) -> web.Application:
        app = web.Application(middlewares=[self._answer])
        app.router.add_routes(routes(principal, self.tokens, self.base_url))
        network = NetworkReads(self._context)
        for part in (
            Resources(self._context),
            Batch(self._context, self._authority),
            ResourceGraph(self._context, throttled=self.throttles is not None),
            ComputeReads(self._context),
            network,
            SetWrites(self._context),
            InstanceWrites(self._context, network),
            RunCommand(self._context, self._run_script),
        ):
            for route in part.routes():
                app.router.add_route(route.method, route.path, functools.partial(self._handle, route))
        return app

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Errors in Azure's shape, and the headers that every answer carries."""
        try:
            response = await handler(request)
        except ArmError as error:
            response = error.response()
        except ChangeError as error:
            response = ArmError(error.status, error.code, str(error)).response()
        except web.HTTPNotFound:
            response = ArmError(404, "InvalidResourceType", f"The resource type could not be found for path '{request.path}'.").response()
        except web.HTTPMethodNotAllowed:
            response = ArmError(
                405, "HttpMethodNotAllowed", f"The HTTP method '{request.method}' is not supported at '{request.path}'."
            ).response()
        identifier = str(uuid.uuid4())
        response.headers["x-ms-request-id"] = identifier
        response.headers["x-ms-correlation-request-id"] = request.headers.get("x-ms-correlation-request-id", identifier)
        response.headers["Cache-Control"] = "no-cache"
        if isinstance(response, web.Response) and response.body:
            response.enable_compression()
        return response

    async def _handle(self, route: Route, request: web.Request) -> web.StreamResponse:
        met = self.faults.take(request.method, request.path_qs)
        for fault in met:
            await asyncio.sleep(fault.latency)
        self._fail(met)
        principal = self._authorized(request)
        self._versioned(request)
        self._known_place(request)
        headers = self._throttled(route, request, principal)
        body = await _body(request)
        self._context.outcome.set(t.cast("Outcome", next((fault.operation for fault in met if fault.operation), "")))
        given = route.handler(request, body)
        if inspect.isawaitable(given):
            given = await given
        answer = given if isinstance(given, Answer) else Answer(status=200, body=given)
        return await self._said(request, answer, headers, met)

    def _fail(self, met: t.Sequence[Fault]) -> None:
        for fault in met:
            if fault.status:
                headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
                raise ArmError(fault.status, fault.code or faults.CODES[fault.status], "This answer was asked for.", headers=headers)

    async def _said(self, request: web.Request, answer: Answer, headers: t.Mapping[str, str], met: t.Sequence[Fault]) -> web.StreamResponse:
        body = answer.body
        for fault in met:
            if fault.answer and body is not None:
                body = faults.bend(body, fault.answer, f"{self.base_url}{request.path_qs}")
        text = "" if body is None else json.dumps(body)
        headers = {**headers, **answer.headers}
        if any(fault.answer == "cut" for fault in met):
            return await _cut(request, text, headers)
        return web.Response(status=answer.status, text=text, content_type="application/json" if text else None, headers=headers)

    # What every request must have

    def _authorized(self, request: web.Request) -> str:
        """Who asks. Raises ArmError when that cannot be known."""
        kind, _, value = request.headers.get("Authorization", "").partition(" ")
        challenge = {"WWW-Authenticate": f'Bearer authorization_uri="{self.base_url}/{self._tenant}", error="invalid_token"'}
        if kind != "Bearer" or not value:
            raise ArmError(401, "AuthenticationFailed", "Authentication failed. The 'Authorization' header is missing.", headers=challenge)
        token = self.tokens.find(value)
        if token is None:
            raise ArmError(401, "InvalidAuthenticationToken", "The access token is invalid.", headers=challenge)
        if token.expires <= self.tokens.clock():
            raise ArmError(
                401, "ExpiredAuthenticationToken", "The access token expiry UTC time is earlier than current UTC time.", headers=challenge
            )
        if token.audience != self.base_url:
            raise ArmError(
                401,
                "InvalidAuthenticationTokenAudience",
                f"The access token has been obtained for wrong audience or resource '{token.audience}'.",
                headers=challenge,
            )
        return token.principal

    def _versioned(self, request: web.Request) -> None:
        version = request.query.get("api-version")
        if not version:
            raise ArmError(
                400, "MissingApiVersionParameter", "The api-version query parameter (?api-version=) is required for all requests."
            )
        taken = _versions(request.path.lower())
        if version not in taken:
            supported = ", ".join(sorted(taken))
            raise ArmError(
                400, "InvalidApiVersionParameter", f"The api-version '{version}' is invalid. The supported versions are '{supported}'."
            )

    def _known_place(self, request: web.Request) -> None:
        wanted = request.match_info.get("subscription", self._subscription)
        if wanted.lower() != self._subscription.lower():
            raise errors.subscription_not_found(wanted)
        group = request.match_info.get("group", self._group)
        if group.lower() != self._group.lower():
            raise errors.group_not_found(group)

    def _throttled(self, route: Route, request: web.Request, principal: str) -> dict[str, str]:
        if self.throttles is None:
            return {}
        resource = request.match_info.get("set") or request.match_info.get("machine") or ""
        verdict = self.throttles.ask(
            request.method, route.policy, principal=principal, subscription=self._subscription, resource=resource.lower()
        )
        if verdict.retry_after:
            raise ArmError(
                429,
                "TooManyRequests" if verdict.policy != "ResourceManager" else "SubscriptionRequestsThrottled",
                f"The request is being throttled as the limit has been reached for operation group {verdict.policy}. "
                f"Retry after {verdict.retry_after} seconds.",
                headers={"Retry-After": str(verdict.retry_after)},
            )
        return verdict.headers


def _versions(path: str) -> frozenset[str]:
    """The API versions that a path takes. A scale set's NICs lie below Microsoft.Compute and are answered by Microsoft.Network:
    clients ask for them with versions of either.
    """
    if "microsoft.resourcegraph" in path:
        return VERSIONS["microsoft.resourcegraph"]
    if path == "/batch":
        return VERSIONS["batch"]
    if "microsoft.network" in path:
        return VERSIONS["microsoft.network"]
    if "microsoft.compute" in path:
        return VERSIONS["microsoft.compute"] | (VERSIONS["microsoft.network"] if "/networkinterfaces" in path else frozenset())
    return VERSIONS["microsoft.resources"]


async def _body(request: web.Request) -> Document:
    if request.method == "GET" or not request.body_exists:
        return {}
    try:
        body = json.loads(await request.read() or b"{}")
    except ValueError as error:
        raise ArmError(
            400, "InvalidRequestContent", f"The request content was invalid and could not be deserialized: '{error}'."
        ) from error
    if not isinstance(body, dict):
        raise ArmError(400, "InvalidRequestContent", "The request content was invalid: an object is expected.")
    return body


async def _cut(request: web.Request, text: str, headers: t.Mapping[str, str]) -> web.StreamResponse:
    """Half an answer, and then no connection."""
    whole = text.encode()
    response = web.StreamResponse(headers={**headers, "Content-Length": str(len(whole)), "Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(whole[: len(whole) // 2])
    if request.transport is not None:
        request.transport.abort()
    return response


def throttles() -> Throttles:
    """Buckets over the machine's clock."""
    return Throttles(time.monotonic)
