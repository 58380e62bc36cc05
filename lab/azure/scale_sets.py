# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scale sets as Microsoft.Compute renders them."""

from __future__ import annotations

import collections
import typing as t

from .. import model
from ..fleet import Fleet, Instance, ScaleSet
from . import names

Document = dict[str, t.Any]


def render(fleet: Fleet, item: ScaleSet, *, user_data: bool = False) -> Document:
    """One scale set: its model, with every ipConfiguration of the NIC. User data is said only where it is asked for."""
    members = fleet.instances_of(item.name)
    document = {
        "name": item.name,
        "id": names.scale_set(fleet, item.name),
        "type": "Microsoft.Compute/virtualMachineScaleSets",
        "etag": etag(item),
        **item.document,
        "sku": {**item.model["sku"], "capacity": sum(member.provisioning != "Deleting" for member in members)},
    }
    document["properties"] = {
        **item.document["properties"],
        "provisioningState": "Updating"
        if any(member.provisioning in ("Creating", "Updating", "Deleting") for member in members)
        else "Succeeded",
        "virtualMachineProfile": {
            key: value for key, value in item.model["virtualMachineProfile"].items() if user_data or key != "userData"
        },
    }
    return document


def etag(item: ScaleSet) -> str:
    """In quotes, as HTTP and ARM write it."""
    return f'"{item.etag}"'


def instance_view(item: ScaleSet, members: t.Sequence[Instance]) -> Document:
    """Counts of states, as the call for a Uniform set's instance view gives them."""
    states = collections.Counter(f"ProvisioningState/{member.provisioning.lower()}" for member in members)
    states.update(f"PowerState/{member.power}" for member in members)
    services = item.document["properties"].get("orchestrationServices", [])
    view: Document = {
        "virtualMachine": {"statusesSummary": [{"code": code, "count": count} for code, count in states.items()]},
        "statuses": [
            {"code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Provisioning succeeded", "time": model.CREATED}
        ],
    }
    return view | ({"orchestrationServices": services} if services else {})


def sku(item: ScaleSet) -> Document:
    return {
        "resourceType": "Microsoft.Compute/virtualMachineScaleSets",
        "sku": dict(item.model["sku"]),
        "capacity": {"minimum": 0, "maximum": 1000, "defaultCapacity": 1, "scaleType": "Automatic"},
    }
