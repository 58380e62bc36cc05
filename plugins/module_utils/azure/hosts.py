# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Ansible gets of an instance: its few flat variables, its default groups, and whether it is kept.

Few and flat, because ansible-core pays for each variable of each host on every run. The groups are made here and
not by keyed_groups, which costs four times as much at 7,500 hosts (measured: 26 s against 6 s).
"""

from __future__ import annotations

import collections
import re
import typing as t

from . import addresses, sizes
from .errors import AzureError
from .fleet import Instance

STATES = (
    "running",
    "starting",
    "stopping",
    "stopped",
    "deallocating",
    "deallocated",
    "creating",
    "deleting",
    "failed",
    "unknown",
)

_UNSAFE = re.compile(r"[^a-z0-9_]")
# Few names are enough to find the cause; a line that holds thousands is not read.
NAMES_SHOWN = 5


def variables(instance: Instance) -> dict[str, t.Any]:
    """The host variables of one instance; what ARM does not say is absent, never empty."""
    found: dict[str, t.Any] = {
        "ansible_host": instance.primary_address,
        "vm_id": instance.vm_id,
        "scale_set": instance.scale_set,
        "instance_id": instance.instance_id,
        "resource_group": instance.resource_group,
        "subscription_id": instance.subscription_id,
        "location": instance.location,
        "zone": instance.zone,
        "fault_domain": instance.fault_domain,
        "placement_group": instance.placement_group,
        "orchestration": instance.orchestration,
        "vm_size": instance.size,
        "power_state": instance.power_state,
        "provisioning_state": instance.provisioning_state,
        "health_state": instance.health,
        "latest_model": instance.latest_model,
        "primary_address": instance.primary_address,
        "alias_addresses": addresses.compact(instance.alias_addresses),
    }
    known = {name: value for name, value in found.items() if value not in ("", None)}
    known["protected"] = instance.protected
    if instance.document is not None:
        known["vmss_document"] = instance.document
    return known


def expression_variables(instance: Instance) -> dict[str, t.Any]:
    """What ``hostname``, ``compose``, ``groups`` and ``keyed_groups`` may use beside the host variables."""
    return {
        "computer_name": instance.computer_name,
        "instance_name": instance.name,
        "resource_id": instance.resource_id,
        "vmss_tags": dict(instance.tags),
        "gpu_family": sizes.family(instance.size),
    }


def groups(instance: Instance) -> tuple[str, ...]:
    """The default groups of one instance, sorted."""
    pairs = (
        ("scale_set", instance.scale_set),
        ("resource_group", instance.resource_group),
        ("location", instance.location),
        ("zone", f"{instance.location}_{instance.zone}" if instance.zone else ""),
        ("fault_domain", "" if instance.fault_domain is None else str(instance.fault_domain)),
        ("placement_group", instance.placement_group),
        ("size", instance.size),
        ("power", instance.power_state),
        ("health", instance.health),
        ("orchestration", instance.orchestration),
    )
    names = {f"{kind}_{sanitised(value)}" for kind, value in pairs if value}
    names.add(sizes.family(instance.size))
    if instance.protected:
        names.add("protected")
    if instance.latest_model is not None:
        names.add("latest_model" if instance.latest_model else "outdated_model")
    return tuple(sorted(names))


def sanitised(value: str) -> str:
    """``value`` as part of a group name: lower case, and "_" for what Ansible does not allow in one."""
    return _UNSAFE.sub("_", value.lower())


def blurred(fleet: t.Iterable[Instance]) -> list[str]:
    """Scale sets or resource groups whose different names make the same group, one line for each such group."""
    spelled: dict[str, set[str]] = collections.defaultdict(set)
    for instance in fleet:
        spelled[f"scale_set_{sanitised(instance.scale_set)}"].add(instance.scale_set.lower())
        spelled[f"resource_group_{sanitised(instance.resource_group)}"].add(instance.resource_group.lower())
    return [f"group {group} holds the hosts of {' and '.join(sorted(names))}" for group, names in sorted(spelled.items()) if len(names) > 1]


def keep(fleet: t.Iterable[Instance], states: t.Collection[str]) -> tuple[list[Instance], str]:
    """The instances in one of ``states``, and one line about the others ("" where there are none)."""
    kept: list[Instance] = []
    dropped: dict[str, list[str]] = collections.defaultdict(list)
    for instance in fleet:
        if instance.state not in states:
            dropped[instance.state].append(instance.name)
        else:
            kept.append(instance)
    if not dropped:
        return kept, ""
    total = sum(map(len, dropped.values()))
    parts = ", ".join(f"{len(names)} {state} ({shortened(names)})" for state, names in sorted(dropped.items()))
    return kept, f"{total} of {total + len(kept)} instances left out: {parts}; name further states in `states` to keep them"


def check_names(named: t.Iterable[tuple[str, Instance]]) -> None:
    """Raise AzureError for an instance without host name and for two instances with the same one."""
    owners: dict[str, Instance] = {}
    for name, instance in named:
        if not name:
            raise AzureError(
                f"{instance.resource_id} gets no host name: ARM gives no computer name for it; set `hostname` to another expression"
            )
        # Names are looked up in DNS and in known_hosts, where case does not count.
        other = owners.setdefault(name.lower(), instance)
        if other is not instance:
            first, second = sorted((other.resource_id, instance.resource_id))
            raise AzureError(
                f"host name {name} belongs to two instances: {first} and {second}; "
                "set `hostname` to an expression that tells them apart, for example: hostname: scale_set ~ '-' ~ instance_id"
            )


def shortened(names: t.Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    ordered = sorted(names)
    rest = len(ordered) - NAMES_SHOWN
    return ", ".join(ordered[:NAMES_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
