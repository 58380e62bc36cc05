# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writing to scale sets: their model and capacity, and actions on some or all of their instances."""

from __future__ import annotations

import functools
import typing as t

from aiohttp import web

from .. import changes, model
from ..fleet import Fleet, Instance, ScaleSet
from . import errors, scale_sets, throttles
from .context import ONE_SET, Answer, Context, Document, Route
from .errors import ArmError
from .throttles import Policy

Action = t.Callable[[Fleet, str, t.Collection[str]], Fleet]
# The first version of Microsoft.Compute whose ipConfigurations can be blocks (azure-mgmt-compute 39.0.0).
BLOCKS_SINCE = "2026-04-01"
# What the server made stays what it is, whatever a caller sends back.
SERVERS_OWN = ("uniqueId", "timeCreated", "orchestrationServices")
# A model's part can be given anew; these two of a set cannot (learn.microsoft.com, "Modify a Virtual Machine Scale Set").
FIXED = ("orchestrationMode", "platformFaultDomainCount")
# Azure's limits of a set's size (learn.microsoft.com, "Orchestration modes for Virtual Machine Scale Sets"): a single placement
# group; many of them, or Flexible; Flexible with sizes that are moved without their memory (N) over several fault domains.
CAPACITY_SINGLE_GROUP, CAPACITY, CAPACITY_SPREAD_N = 100, 1000, 200

ACTIONS: dict[str, tuple[Action, Policy]] = {
    "manualupgrade": (changes.upgrade, throttles.UPDATE_SET),
    "reimage": (changes.reimage, throttles.UPDATE_SET),
    "reimageall": (changes.reimage, throttles.UPDATE_SET),
    "redeploy": (changes.restart, throttles.UPDATE_SET),
    "restart": (changes.restart, throttles.UPDATE_SET),
    "start": (functools.partial(changes.set_power, power="running"), throttles.UPDATE_SET),
    "poweroff": (functools.partial(changes.set_power, power="stopped"), throttles.DELETE_SET),
    "deallocate": (functools.partial(changes.set_power, power="deallocated"), throttles.DELETE_SET),
    "delete": (changes.delete, throttles.DELETE_SET),
}
# Actions that a protection from scale set actions does not keep off.
UNPROTECTED = ("start", "restart", "redeploy", "poweroff")


class SetWrites:
    def __init__(self, context: Context) -> None:
        self._context = context

    def routes(self) -> tuple[Route, ...]:
        actions = [
            Route(method="POST", path=f"{ONE_SET}/{{_a:(?i:{name})}}", handler=functools.partial(self.act, name), policy=policy)
            for name, (_action, policy) in ACTIONS.items()
        ]
        return (
            Route(method="PATCH", path=ONE_SET, handler=self.patch, policy=throttles.UPDATE_SET),
            Route(method="PUT", path=ONE_SET, handler=self.put, policy=throttles.PUT_SET),
            Route(
                method="POST",
                path=f"{ONE_SET}/{{_a:(?i:setOrchestrationServiceState)}}",
                handler=self.set_service_state,
                policy=throttles.UPDATE_SET,
            ),
            *actions,
        )

    # Model and capacity

    def patch(self, request: web.Request, body: Document) -> Answer:
        """Merge into what is there; what is not named stays."""
        found = self._context.scale_set(request)
        self._context.unchanged(request, scale_sets.etag(found))
        whole = _whole(found, len(self._context.fleet.instances_of(found.name)))
        # Tags are one value: what is given replaces all of them.
        tags = {"tags": body["tags"]} if body.get("tags") is not None else {}
        return self._write(request, found, model.merged(whole, body) | tags)

    def put(self, request: web.Request, body: Document) -> Answer:
        """Give the whole anew. New sets are made by the description alone."""
        found = self._context.scale_set(request)
        self._context.unchanged(request, scale_sets.etag(found))
        for key in ("location", "sku", "properties"):
            if key not in body:
                raise ArmError(400, "InvalidRequestContent", f"The request content was invalid: the required property '{key}' is missing.")
        return self._write(request, found, body)

    def _write(self, request: web.Request, found: ScaleSet, whole: Document) -> Answer:
        capacity = _capacity(found, whole)
        document, latest = _split(found, whole)
        _check_version(request.query["api-version"], found.model, latest)
        _check_model(found, document, latest)
        automatic = document["properties"].get("upgradePolicy", {}).get("mode") in ("Automatic", "Rolling")

        def update(fleet: Fleet) -> Fleet:
            after = changes.rewrite(fleet, found.name, document, latest)
            after = changes.resize(after, found.name, capacity)
            if automatic:
                open_to_it = [item.vm_id for item in after.instances_of(found.name) if not item.protected_from_scale_set_actions]
                after = changes.upgrade(after, found.name, open_to_it)
            return after

        def result() -> Document:
            return scale_sets.render(self._context.fleet, self._context.fleet.scale_set(found.name))

        answer = self._context.operation(request, f"write set {found.name}", update, result=result)
        return Answer(status=200, body=result(), headers={key: value for key, value in answer.headers.items() if key != "Location"})

    # Actions on instances

    def act(self, name: str, request: web.Request, body: Document) -> Answer:
        """One of ACTIONS on the named instances, or on all."""
        found = self._context.scale_set(request)
        chosen = self._chosen(name, found, body)
        action = ACTIONS[name][0]
        return self._context.operation(
            request, f"{name} {found.name}", lambda fleet: action(fleet, found.name, {item.vm_id for item in chosen})
        )

    def _chosen(self, name: str, found: ScaleSet, body: Document) -> list[Instance]:
        members = {item.instance_id.lower(): item for item in self._context.fleet.instances_of(found.name)}
        ids = body.get("instanceIds")
        if ids is None and name in ("manualupgrade", "delete"):
            raise ArmError(400, "InvalidParameter", "Required parameter 'instanceIds' is missing (null).")
        if ids is not None and not (isinstance(ids, list) and ids and all(isinstance(item, str) for item in ids)):
            raise errors.bad_parameter("instanceIds", "It must be a list of at least one string.")
        if ids is None or ids == ["*"]:
            wanted = list(members.values())
        else:
            missing = [item for item in ids if item.lower() not in members]
            if missing:
                raise ArmError(
                    400,
                    "InvalidParameter",
                    f"The provided instanceId {missing[0]} is not an active Virtual Machine Scale Set VM instanceId.",
                )
            wanted = [members[item.lower()] for item in ids]
        # Protection keeps off what is done to the set, also to named instances of it; what is done to an instance itself goes on.
        return [item for item in wanted if not item.protected_from_scale_set_actions or name in UNPROTECTED]

    def set_service_state(self, request: web.Request, body: Document) -> Answer:
        """Suspend or resume automatic repairs."""
        found = self._context.scale_set(request)
        service, action = body.get("serviceName"), body.get("action")
        if service != "AutomaticRepairs" or action not in ("Suspend", "Resume"):
            raise errors.bad_parameter("orchestrationServiceState", "It takes serviceName AutomaticRepairs, and action Suspend or Resume.")
        if not found.document["properties"].get("automaticRepairsPolicy", {}).get("enabled"):
            raise ArmError(409, "OperationNotAllowed", f"Automatic repairs are not enabled for Virtual Machine Scale Set '{found.name}'.")
        state = "Suspended" if action == "Suspend" else "Running"

        def update(fleet: Fleet) -> Fleet:
            held = fleet.scale_set(found.name)
            services = [{"serviceName": service, "serviceState": state}]
            document = {**held.document, "properties": {**held.document["properties"], "orchestrationServices": services}}
            return changes.rewrite(fleet, found.name, document, held.model)

        return self._context.operation(request, f"{action.lower()} repairs of {found.name}", update)


def _whole(found: ScaleSet, capacity: int) -> Document:
    return {
        **found.document,
        "sku": {**found.model["sku"], "capacity": capacity},
        "properties": {**found.document["properties"], "virtualMachineProfile": found.model["virtualMachineProfile"]},
    }


def _split(found: ScaleSet, whole: Document) -> tuple[Document, Document]:
    """A whole body as the set's own document and its model."""
    properties = {key: value for key, value in whole["properties"].items() if key not in ("virtualMachineProfile", "provisioningState")}
    profile = whole["properties"].get("virtualMachineProfile", found.model["virtualMachineProfile"])
    for key in SERVERS_OWN:
        if key in found.document["properties"]:
            properties[key] = found.document["properties"][key]
    document = {key: whole[key] for key in ("location", "tags", "zones", "identity", "plan") if whole.get(key) is not None}
    sku = {key: value for key, value in whole["sku"].items() if key != "capacity"}
    latest = {"sku": {"tier": "Standard", **sku}, "virtualMachineProfile": {**profile, "timeCreated": model.CREATED}}
    return {**document, "properties": properties}, latest


def _capacity(found: ScaleSet, whole: Document) -> int:
    capacity = whole["sku"].get("capacity")
    if not isinstance(capacity, int) or isinstance(capacity, bool) or capacity < 0:
        raise errors.bad_parameter("sku.capacity", f"It must be a whole number that is not negative, not {capacity!r}.")
    limit = _limit(found, whole)
    if capacity > limit:
        raise ArmError(
            400, "InvalidParameter", f"The capacity {capacity} of Virtual Machine Scale Set '{found.name}' exceeds its maximum of {limit}."
        )
    return capacity


def _check_version(version: str, held: Document, latest: Document) -> None:
    """A version does not know the properties of later ones: a block that is not there yet cannot be written with it."""
    new = {item for item in model.configurations(latest) if item.prefix_length != 32} if _has_nic(latest) else set()
    if new and version < BLOCKS_SINCE and not new <= set(model.configurations(held)):
        raise ArmError(
            400,
            "InvalidRequestContent",
            "The request content was invalid and could not be deserialized: 'Could not find member 'privateIPAddressPrefixLength' on object "
            "of type 'VirtualMachineScaleSetIPConfigurationProperties'.'.",
        )


def _has_nic(latest: Document) -> bool:
    network = latest["virtualMachineProfile"].get("networkProfile")
    return bool(isinstance(network, dict) and network.get("networkInterfaceConfigurations"))


def _limit(found: ScaleSet, whole: Document) -> int:
    if whole["properties"].get("singlePlacementGroup"):
        return CAPACITY_SINGLE_GROUP
    spread = int(whole["properties"].get("platformFaultDomainCount") or 1) > 1
    if not found.uniform and spread and str(whole["sku"].get("name", "")).startswith("Standard_N"):
        return CAPACITY_SPREAD_N
    return CAPACITY


def _check_model(found: ScaleSet, document: Document, latest: Document) -> None:
    for key in FIXED:
        if document["properties"].get(key) != found.document["properties"].get(key):
            raise ArmError(409, "PropertyChangeNotAllowed", f"Changing property '{key}' is not allowed.")
    if document["location"] != found.document["location"]:
        raise ArmError(409, "PropertyChangeNotAllowed", "Changing property 'location' is not allowed.")
    try:
        wanted = model.configurations(latest)
        image = model.image(latest)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise ArmError(400, "InvalidRequestContent", f"The request content was invalid: virtualMachineProfile lacks {error}.") from error
    check_configurations(wanted)
    if not image:
        raise errors.bad_parameter("imageReference.sku", "It must name an image.")


def check_configurations(wanted: t.Sequence[model.Configuration]) -> None:
    """What Microsoft.Network demands of a NIC's ipConfigurations. Raises ArmError."""
    if sum(item.primary for item in wanted) != 1:
        raise ArmError(
            400, "NetworkInterfaceMustHaveOnePrimaryIpConfiguration", "A network interface must have exactly one primary ipConfiguration."
        )
    if len({item.name.lower() for item in wanted}) != len(wanted):
        raise ArmError(400, "InvalidRequestFormat", "Cannot parse the request: two ipConfigurations have one name.")
    if wanted[0].prefix_length != 32:
        raise ArmError(400, "InvalidRequestFormat", "A primary ipConfiguration cannot have a privateIPAddressPrefixLength.")
    for item in wanted:
        # 28 is the one block size that Azure hands out.
        if item.prefix_length not in (32, 28):
            raise errors.bad_parameter("privateIPAddressPrefixLength", f"Its value {item.prefix_length} is not supported; it can be 28.")
    if len(wanted) > model.CONFIGURATIONS_PER_NIC:
        raise ArmError(
            400, "PrivateIPAddressLimitReached", f"A network interface can have at most {model.CONFIGURATIONS_PER_NIC} ipConfigurations."
        )
