# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Subscriptions, resource groups, and the state of long-running operations."""

from __future__ import annotations

from aiohttp import web

from . import names
from .context import COMPUTE, GROUP, GROUPS, NETWORK, RESOURCES, SUBSCRIPTION, Answer, Context, Document, Route, get
from .errors import ArmError
from .operations import Operation


class Resources:
    def __init__(self, context: Context) -> None:
        self._context = context

    def routes(self) -> tuple[Route, ...]:
        operations = [
            f"{SUBSCRIPTION}{provider}/locations/{{location}}/operations/{{operation}}" for provider in (COMPUTE, NETWORK, RESOURCES)
        ]
        return (
            get("/subscriptions", self.subscriptions),
            get(SUBSCRIPTION, self.subscription),
            get(GROUPS, self.groups),
            get(GROUP, self.group),
            *(Route(method="GET", path=path, handler=lambda request, _body: self.operation(request)) for path in operations),
        )

    def subscriptions(self, request: web.Request) -> Document:
        return {"value": [self.subscription(request)], "count": {"type": "Total", "value": 1}}

    def subscription(self, request: web.Request) -> Document:
        described = self._context.fleet.description
        return {
            "id": f"/subscriptions/{described.subscription}",
            "subscriptionId": described.subscription,
            "tenantId": described.tenant,
            "displayName": "gpufleet lab",
            "state": "Enabled",
        }

    def groups(self, request: web.Request) -> Document:
        return {"value": [self.group(request)]}

    def group(self, request: web.Request) -> Document:
        described = self._context.fleet.description
        return {
            "id": names.group(self._context.fleet),
            "name": described.resource_group,
            "type": "Microsoft.Resources/resourceGroups",
            "location": described.location,
            "properties": {"provisioningState": "Succeeded"},
        }

    def operation(self, request: web.Request) -> Document | Answer:
        """The state of an operation; with ``monitor`` 202 until it has ended, and then what the write itself would have answered."""
        found = self._context.operations.find(request.match_info["operation"])
        if found is None:
            raise ArmError(404, "NotFound", f"The operation '{request.match_info['operation']}' was not found.")
        if request.query.get("monitor", "").lower() == "true":
            return self._monitored(found, request)
        if found.ended is None:
            return Answer(status=200, body=found.document(), headers={"Retry-After": self._context.operations.retry_after})
        return found.document()

    def _monitored(self, found: Operation, request: web.Request) -> Answer:
        if found.ended is None:
            return Answer(
                status=202,
                headers={"Location": f"{self._context.base_url}{request.path_qs}", "Retry-After": self._context.operations.retry_after},
            )
        if found.error:
            raise ArmError(409, *found.error)
        body = found.result()
        return Answer(status=204) if body is None else Answer(status=200, body=body)
