# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading scale sets, the instances of Uniform ones, and the virtual machines of Flexible ones."""

from __future__ import annotations

import re
import typing as t

from aiohttp import web

from ..fleet import Fleet, Instance
from . import errors, instances, names, paging, scale_sets, throttles
from .context import COMPUTE, GROUP, MACHINES, ONE_INSTANCE, ONE_MACHINE, ONE_SET, SETS, SUBSCRIPTION, Context, Document, Route, get
from .errors import ArmError

_FLEXIBLE_FILTER = re.compile(r"^'?virtualMachineScaleSet/id'?\s+eq\s+'([^']+)'$", re.IGNORECASE)
_POWER_FILTER = re.compile(r"^startswith\(instanceView/statuses/code,\s*'PowerState'\)\s+eq\s+true$", re.IGNORECASE)
_MODEL_FILTER = re.compile(r"^properties/latestModelApplied\s+eq\s+(true|false)$", re.IGNORECASE)


class ComputeReads:
    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def _fleet(self) -> Fleet:
        return self._context.fleet

    def routes(self) -> tuple[Route, ...]:
        return (
            get(f"{SUBSCRIPTION}{SETS}", self.scale_sets, throttles.HIGH_COST_GET),
            get(f"{GROUP}{SETS}", self.scale_sets, throttles.HIGH_COST_GET),
            get(ONE_SET, self.scale_set, throttles.LOW_COST_GET),
            get(f"{ONE_SET}/instanceView", self.scale_set_view, throttles.HIGH_COST_GET),
            get(f"{ONE_SET}/skus", self.skus, throttles.LOW_COST_GET),
            get(f"{ONE_SET}/{MACHINES}", self.instances, throttles.HIGH_COST_GET),
            get(ONE_INSTANCE, self.instance, throttles.GET_INSTANCE),
            get(f"{ONE_INSTANCE}/instanceView", self.instance_view, throttles.GET_INSTANCE),
            get(f"{SUBSCRIPTION}{COMPUTE}/{MACHINES}", self.machines, throttles.LIST_MACHINES),
            get(f"{GROUP}{COMPUTE}/{MACHINES}", self.machines, throttles.LIST_MACHINES),
            get(ONE_MACHINE, self.machine, throttles.GET_MACHINE),
            get(f"{ONE_MACHINE}/instanceView", self.machine_view, throttles.GET_MACHINE),
        )

    def scale_sets(self, request: web.Request) -> Document:
        return self._context.page(request, self._fleet.scale_sets, lambda item: scale_sets.render(self._fleet, item), paging.SCALE_SETS)

    def scale_set(self, request: web.Request) -> Document:
        return scale_sets.render(self._fleet, self._context.scale_set(request), user_data=request.query.get("$expand") == "userData")

    def scale_set_view(self, request: web.Request) -> Document:
        found = self._context.scale_set(request)
        if not found.uniform:
            raise ArmError(
                409,
                "OperationNotAllowed",
                "Operation 'VirtualMachineScaleSets.virtualMachineScaleSetsInstanceViewOperation.GET' is not allowed on Virtual Machine Scale Set in orchestration mode Flexible.",
            )
        return scale_sets.instance_view(found, self._fleet.instances_of(found.name))

    def skus(self, request: web.Request) -> Document:
        return {"value": [scale_sets.sku(self._context.scale_set(request))]}

    def instances(self, request: web.Request) -> Document:
        found = self._context.scale_set(request)
        if not found.uniform:
            return self._context.page(
                request,
                self._fleet.instances_of(found.name),
                lambda item: instances.flexible(self._fleet, item, view=False),
                paging.INSTANCES,
            )
        expand, select, filter_text = (request.query.get(name) for name in ("$expand", "$select", "$filter"))
        if expand not in (None, "instanceView"):
            raise errors.bad_parameter("$expand", "The only value it takes here is 'instanceView'.")
        if select not in (None, "instanceView", "instanceView/statuses"):
            raise errors.bad_parameter("$select", "The only values it takes are 'instanceView' and 'instanceView/statuses'.")
        items: t.Sequence[Instance] = self._fleet.instances_of(found.name)
        if filter_text:
            items = self._filtered(items, filter_text)

        def render(item: Instance) -> Document:
            document = instances.uniform(self._fleet, item, view=expand is not None)
            if select and expand:
                document["properties"] = {"instanceView": document["properties"]["instanceView"]}
            return document

        return self._context.page(request, items, render, paging.INSTANCES)

    def _filtered(self, items: t.Sequence[Instance], text: str) -> t.Sequence[Instance]:
        if _POWER_FILTER.match(text):
            return items
        model = _MODEL_FILTER.match(text)
        if model:
            wanted = model.group(1).lower() == "true"
            return [item for item in items if (item.model_version == self._fleet.scale_set(item.scale_set).version) is wanted]
        raise errors.bad_parameter("$filter", f"The filter '{text}' is not supported.")

    def instance(self, request: web.Request) -> Document:
        return instances.uniform(self._fleet, self._context.instance(request), view=request.query.get("$expand") == "instanceView")

    def instance_view(self, request: web.Request) -> Document:
        return instances.instance_view(self._context.instance(request), uniform=True)

    def machines(self, request: web.Request) -> Document:
        text, expand = request.query.get("$filter"), request.query.get("$expand")
        items = self._context.flexible()
        if text:
            match = _FLEXIBLE_FILTER.match(text)
            if not match:
                raise errors.bad_parameter("$filter", f"The filter '{text}' is not supported.")
            items = [item for item in items if names.scale_set(self._fleet, item.scale_set).lower() == match.group(1).lower()]
        elif expand:
            raise errors.bad_parameter("$expand", "$expand is allowed only together with a $filter by scale set.")
        if expand not in (None, "instanceView"):
            raise errors.bad_parameter("$expand", "The only value it takes here is 'instanceView'.")
        view = expand is not None or request.query.get("statusOnly", "").lower() == "true"
        return self._context.page(request, items, lambda item: instances.flexible(self._fleet, item, view=view), paging.VIRTUAL_MACHINES)

    def machine(self, request: web.Request) -> Document:
        return instances.flexible(self._fleet, self._context.machine(request), view=request.query.get("$expand") == "instanceView")

    def machine_view(self, request: web.Request) -> Document:
        return instances.instance_view(self._context.machine(request), uniform=False)
