# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Azure Resource Manager, reading side: routes, what every request must have, and what every answer carries."""

from __future__ import annotations

import json
import re
import typing as t
import urllib.parse
import uuid

from aiohttp import web

from ..description import ScaleSet
from ..fleet import Fleet, Instance
from . import errors, instances, interfaces, names, paging, scale_sets, virtual_networks
from .errors import ArmError
from .login import Principal, routes
from .tokens import Tokens

Document = dict[str, t.Any]
Handler = t.Callable[[web.Request], t.Awaitable[web.StreamResponse]]

# API versions that the lab takes: those of the SDK's current defaults, of the published examples, and those that
# this project sends. ARM refuses any other with the list of its own.
VERSIONS = {
    "microsoft.compute": frozenset({"2023-09-01", "2024-03-01", "2024-07-01", "2024-11-01", "2025-04-01", "2026-04-01"}),
    "microsoft.network": frozenset({"2018-10-01", "2023-11-01", "2024-05-01", "2024-07-01", "2025-01-01", "2026-03-01"}),
    "microsoft.resources": frozenset({"2016-06-01", "2020-01-01", "2021-04-01", "2022-09-01", "2022-12-01", "2024-03-01"}),
}
_FLEXIBLE_FILTER = re.compile(r"^'?virtualMachineScaleSet/id'?\s+eq\s+'([^']+)'$", re.IGNORECASE)
_POWER_FILTER = re.compile(r"^startswith\(instanceView/statuses/code,\s*'PowerState'\)\s+eq\s+true$", re.IGNORECASE)
_MODEL_FILTER = re.compile(r"^properties/latestModelApplied\s+eq\s+(true|false)$", re.IGNORECASE)


class Arm:
    """The handlers over one fleet."""

    def __init__(self, fleet: Fleet, tokens: Tokens, *, base_url: str) -> None:
        self.fleet = fleet
        self.tokens = tokens
        self.base_url = base_url

    def application(self, principal: Principal) -> web.Application:
        app = web.Application(middlewares=[self._answer])
        app.router.add_routes(routes(principal, self.tokens, self.base_url))
        subscription = "/subscriptions/{subscription}"
        group = f"{subscription}/resource{{_g:[gG]}}roups/{{group}}"
        compute, network = "/providers/{_c:(?i:microsoft\\.compute)}", "/providers/{_n:(?i:microsoft\\.network)}"
        sets = f"{compute}/{{_s:(?i:virtualMachineScaleSets)}}"
        machines = "{_m:(?i:virtualMachines)}"
        nics = "{_i:(?i:networkInterfaces)}"
        vnets = f"{network}/{{_v:(?i:virtualNetworks)}}"
        one_set, one_instance = f"{group}{sets}/{{set}}", f"{group}{sets}/{{set}}/{machines}/{{instance}}"
        for path, handler in (
            ("/subscriptions", self.subscriptions),
            (subscription, self.subscription),
            (f"{subscription}/resource{{_g:[gG]}}roups", self.groups),
            (group, self.group),
            (f"{subscription}{sets}", self.scale_sets),
            (f"{group}{sets}", self.scale_sets),
            (one_set, self.scale_set),
            (f"{one_set}/instanceView", self.scale_set_view),
            (f"{one_set}/skus", self.skus),
            (f"{one_set}/{machines}", self.instances),
            (one_instance, self.instance),
            (f"{one_instance}/instanceView", self.instance_view),
            (f"{one_set}/{nics}", self.set_interfaces),
            (f"{one_instance}/{nics}", self.instance_interfaces),
            (f"{one_instance}/{nics}/{{nic}}", self.instance_interface),
            (f"{one_instance}/{nics}/{{nic}}/{{_ic:(?i:ipConfigurations)}}", self.ip_configurations),
            (f"{subscription}{compute}/{machines}", self.machines),
            (f"{group}{compute}/{machines}", self.machines),
            (f"{group}{compute}/{machines}/{{machine}}", self.machine),
            (f"{group}{compute}/{machines}/{{machine}}/instanceView", self.machine_view),
            (f"{subscription}{network}/{nics}", self.interfaces),
            (f"{group}{network}/{nics}", self.interfaces),
            (f"{group}{network}/{nics}/{{nic}}", self.interface),
            (f"{subscription}{vnets}", self.virtual_networks),
            (f"{group}{vnets}", self.virtual_networks),
            (f"{group}{vnets}/{{vnet}}", self.virtual_network),
            (f"{group}{vnets}/{{vnet}}/subnets", self.subnets),
            (f"{group}{vnets}/{{vnet}}/subnets/{{subnet}}", self.subnet),
        ):
            app.router.add_get(path, self._guarded(handler))
        return app

    # What every request must have

    @web.middleware
    async def _answer(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Errors in Azure's shape, and the headers that every answer carries."""
        try:
            response = await handler(request)
        except ArmError as error:
            response = error.response()
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
        response.headers["x-ms-ratelimit-remaining-subscription-reads"] = "249"
        if isinstance(response, web.Response) and response.body:
            response.enable_compression()
        return response

    def _guarded(self, handler: t.Callable[[web.Request], t.Any]) -> Handler:
        async def call(request: web.Request) -> web.Response:
            self._authorized(request)
            self._versioned(request)
            wanted = request.match_info.get("subscription", self.fleet.description.subscription)
            if wanted.lower() != self.fleet.description.subscription.lower():
                raise errors.subscription_not_found(wanted)
            group = request.match_info.get("group", self.fleet.description.resource_group)
            if group.lower() != self.fleet.description.resource_group.lower():
                raise errors.group_not_found(group)
            return web.Response(text=json.dumps(handler(request)), content_type="application/json")

        return call

    def _authorized(self, request: web.Request) -> None:
        kind, _, value = request.headers.get("Authorization", "").partition(" ")
        challenge = {
            "WWW-Authenticate": f'Bearer authorization_uri="{self.base_url}/{self.fleet.description.tenant}", error="invalid_token"'
        }
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

    def _versioned(self, request: web.Request) -> None:
        version = request.query.get("api-version")
        if not version:
            raise ArmError(
                400, "MissingApiVersionParameter", "The api-version query parameter (?api-version=) is required for all requests."
            )
        # A scale set's NICs and addresses belong to Microsoft.Network, although their path starts at Microsoft.Compute.
        path = request.path.lower()
        provider = (
            "microsoft.network"
            if "microsoft.network" in path or "/networkinterfaces" in path
            else "microsoft.compute"
            if "microsoft.compute" in path
            else "microsoft.resources"
        )
        if version not in VERSIONS[provider]:
            supported = ", ".join(sorted(VERSIONS[provider]))
            raise ArmError(
                400, "InvalidApiVersionParameter", f"The api-version '{version}' is invalid. The supported versions are '{supported}'."
            )

    # Lists and single documents

    def _page(self, request: web.Request, items: t.Sequence[t.Any], render: t.Callable[[t.Any], Document], size: int) -> Document:
        def url(token: str) -> str:
            query = {**request.query, "$skiptoken": token}
            return f"{self.base_url}{urllib.parse.quote(request.path)}?{urllib.parse.urlencode(query)}"

        return paging.page(items, render, size=size, token=request.query.get("$skiptoken"), url=url)

    def subscriptions(self, request: web.Request) -> Document:
        return {"value": [self._subscription()], "count": {"type": "Total", "value": 1}}

    def subscription(self, request: web.Request) -> Document:
        return self._subscription()

    def _subscription(self) -> Document:
        identifier = self.fleet.description.subscription
        return {
            "id": f"/subscriptions/{identifier}",
            "subscriptionId": identifier,
            "tenantId": self.fleet.description.tenant,
            "displayName": "gpufleet lab",
            "state": "Enabled",
        }

    def groups(self, request: web.Request) -> Document:
        return {"value": [self.group(request)]}

    def group(self, request: web.Request) -> Document:
        described = self.fleet.description
        return {
            "id": names.group(self.fleet),
            "name": described.resource_group,
            "type": "Microsoft.Resources/resourceGroups",
            "location": described.location,
            "properties": {"provisioningState": "Succeeded"},
        }

    def scale_sets(self, request: web.Request) -> Document:
        return self._page(request, self.fleet.description.scale_sets, lambda item: scale_sets.render(self.fleet, item), paging.SCALE_SETS)

    def _set(self, request: web.Request) -> ScaleSet:
        wanted = request.match_info["set"].lower()
        found = next((item for item in self.fleet.description.scale_sets if item.name.lower() == wanted), None)
        if found is None:
            raise errors.resource_not_found(
                "Microsoft.Compute/virtualMachineScaleSets", request.match_info["set"], self.fleet.description.resource_group
            )
        return found

    def _uniform_set(self, request: web.Request) -> ScaleSet:
        found = self._set(request)
        if found.orchestration != "Uniform":
            raise errors.resource_not_found("Microsoft.Compute/virtualMachineScaleSets", found.name, self.fleet.description.resource_group)
        return found

    def scale_set(self, request: web.Request) -> Document:
        return scale_sets.render(self.fleet, self._set(request))

    def scale_set_view(self, request: web.Request) -> Document:
        found = self._set(request)
        if found.orchestration != "Uniform":
            raise ArmError(
                409,
                "OperationNotAllowed",
                "Operation 'VirtualMachineScaleSets.virtualMachineScaleSetsInstanceViewOperation.GET' is not allowed on Virtual Machine Scale Set in orchestration mode Flexible.",
            )
        return scale_sets.instance_view(found)

    def skus(self, request: web.Request) -> Document:
        return {"value": [scale_sets.sku(self._set(request))]}

    # Uniform instances

    def instances(self, request: web.Request) -> Document:
        found = self._set(request)
        if found.orchestration != "Uniform":
            return self._page(
                request,
                self.fleet.instances_of(found.name),
                lambda item: instances.flexible(self.fleet, item, view=False),
                paging.INSTANCES,
            )
        expand, select, filter_text = (request.query.get(name) for name in ("$expand", "$select", "$filter"))
        if expand not in (None, "instanceView"):
            raise errors.bad_parameter("$expand", "The only value it takes here is 'instanceView'.")
        if select not in (None, "instanceView", "instanceView/statuses"):
            raise errors.bad_parameter("$select", "The only values it takes are 'instanceView' and 'instanceView/statuses'.")
        items: t.Sequence[Instance] = self.fleet.instances_of(found.name)
        if filter_text:
            items = self._filtered(items, filter_text)

        def render(item: Instance) -> Document:
            document = instances.uniform(self.fleet, item, view=expand is not None)
            if select and expand:
                document["properties"] = {"instanceView": document["properties"]["instanceView"]}
            return document

        return self._page(request, items, render, paging.INSTANCES)

    def _filtered(self, items: t.Sequence[Instance], text: str) -> t.Sequence[Instance]:
        if _POWER_FILTER.match(text):
            return items
        model = _MODEL_FILTER.match(text)
        if model:
            # Every instance of this lab has the latest model.
            return items if model.group(1).lower() == "true" else []
        raise errors.bad_parameter("$filter", f"The filter '{text}' is not supported.")

    def _instance(self, request: web.Request) -> Instance:
        found = self._uniform_set(request)
        wanted = request.match_info["instance"]
        item = next((item for item in self.fleet.instances_of(found.name) if item.instance_id == wanted), None)
        if item is None:
            raise errors.instance_not_found(wanted)
        return item

    def instance(self, request: web.Request) -> Document:
        return instances.uniform(self.fleet, self._instance(request), view=request.query.get("$expand") == "instanceView")

    def instance_view(self, request: web.Request) -> Document:
        return instances.instance_view(self._instance(request), uniform=True)

    def set_interfaces(self, request: web.Request) -> Document:
        # The lists of a whole set's NICs know Uniform sets only; Azure says that a Flexible one does not exist.
        return self._page(
            request,
            self.fleet.instances_of(self._uniform_set(request).name),
            lambda item: interfaces.render(self.fleet, item),
            paging.INTERFACES,
        )

    def instance_interfaces(self, request: web.Request) -> Document:
        return {"value": [interfaces.render(self.fleet, self._instance(request))]}

    def instance_interface(self, request: web.Request) -> Document:
        item = self._instance(request)
        self._named_nic(request, item)
        return interfaces.render(self.fleet, item)

    def ip_configurations(self, request: web.Request) -> Document:
        item = self._instance(request)
        self._named_nic(request, item)
        return {"value": [interfaces.ip_configuration(self.fleet, item, number) for number in range(len(item.addresses))]}

    def _named_nic(self, request: web.Request, item: Instance) -> None:
        if request.match_info["nic"].lower() != names.interface(self.fleet, item).rpartition("/")[2].lower():
            raise errors.resource_not_found("networkInterfaces", request.match_info["nic"], self.fleet.description.resource_group)

    # Flexible instances: virtual machines, NICs of their own

    def _flexible(self) -> list[Instance]:
        return [item for item in self.fleet.instances if not names.is_uniform(self.fleet, item)]

    def machines(self, request: web.Request) -> Document:
        text, expand = request.query.get("$filter"), request.query.get("$expand")
        items = self._flexible()
        if text:
            match = _FLEXIBLE_FILTER.match(text)
            if not match:
                raise errors.bad_parameter("$filter", f"The filter '{text}' is not supported.")
            items = [item for item in items if names.scale_set(self.fleet, item.scale_set).lower() == match.group(1).lower()]
        elif expand:
            raise errors.bad_parameter("$expand", "$expand is allowed only together with a $filter by scale set.")
        if expand not in (None, "instanceView"):
            raise errors.bad_parameter("$expand", "The only value it takes here is 'instanceView'.")
        view = expand is not None or request.query.get("statusOnly", "").lower() == "true"
        return self._page(request, items, lambda item: instances.flexible(self.fleet, item, view=view), paging.VIRTUAL_MACHINES)

    def _machine(self, request: web.Request) -> Instance:
        wanted = request.match_info["machine"].lower()
        found = next((item for item in self._flexible() if item.name.lower() == wanted), None)
        if found is None:
            raise errors.resource_not_found(
                "Microsoft.Compute/virtualMachines", request.match_info["machine"], self.fleet.description.resource_group
            )
        return found

    def machine(self, request: web.Request) -> Document:
        return instances.flexible(self.fleet, self._machine(request), view=request.query.get("$expand") == "instanceView")

    def machine_view(self, request: web.Request) -> Document:
        return instances.instance_view(self._machine(request), uniform=False)

    def interfaces(self, request: web.Request) -> Document:
        return self._page(request, self._flexible(), lambda item: interfaces.render(self.fleet, item), paging.INTERFACES)

    def interface(self, request: web.Request) -> Document:
        wanted = request.match_info["nic"].lower()
        found = next((item for item in self._flexible() if names.interface(self.fleet, item).rpartition("/")[2].lower() == wanted), None)
        if found is None:
            raise errors.resource_not_found(
                "Microsoft.Network/networkInterfaces", request.match_info["nic"], self.fleet.description.resource_group
            )
        return interfaces.render(self.fleet, found)

    # VNets

    def virtual_networks(self, request: web.Request) -> Document:
        return self._page(
            request, virtual_networks.all_of(self.fleet), lambda item: virtual_networks.render(self.fleet, item), paging.SMALL
        )

    def _vnet(self, request: web.Request) -> t.Any:
        wanted = request.match_info["vnet"].lower()
        found = next((item for item in virtual_networks.all_of(self.fleet) if item.name.lower() == wanted), None)
        if found is None:
            raise errors.resource_not_found(
                "Microsoft.Network/virtualNetworks", request.match_info["vnet"], self.fleet.description.resource_group
            )
        return found

    def virtual_network(self, request: web.Request) -> Document:
        return virtual_networks.render(self.fleet, self._vnet(request))

    def subnets(self, request: web.Request) -> Document:
        vnet = self._vnet(request)
        return self._page(request, vnet.subnets, lambda item: virtual_networks.subnet(self.fleet, vnet, item), paging.SMALL)

    def subnet(self, request: web.Request) -> Document:
        vnet = self._vnet(request)
        wanted = request.match_info["subnet"].lower()
        found = next((item for item in vnet.subnets if item.name.lower() == wanted), None)
        if found is None:
            raise ArmError(404, "NotFound", f"Resource {names.subnet(self.fleet, vnet.name, request.match_info['subnet'])} not found.")
        return virtual_networks.subnet(self.fleet, vnet, found)
