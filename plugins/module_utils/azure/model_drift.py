# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What else than the network would change if a Uniform instance were brought to the latest model.

"Latest model" is one step for Azure: an image that somebody wrote into the model last month comes along, and with it a reimage.
Pure. Property names and shapes: Microsoft.Compute 2024-07-01.
"""

from __future__ import annotations

import typing as t

from . import ip_configurations
from .documents import Document, at

# Parts of virtualMachineProfile that ARM shows of an instance too. It never shows user data, priority, and the like.
SHOWN = ("storageProfile", "osProfile", "hardwareProfile", "securityProfile", "diagnosticsProfile", "licenseType")
# What only a model has, what is written and never read, and what an instance has besides the model's words.
NOT_COMPARED = frozenset({"computerNamePrefix", "customData", "adminPassword", "secrets", "protectedSettings", "provisionAfterExtensions"})
# By what the items of a list are the same: data disks, extensions, and keys of ssh.
IDENTITIES = ("lun", "name", "path")
UNSEEN = "something that ARM does not show"


def between(machine: Document, scale_set: Document) -> tuple[str, ...]:
    """The properties, in the set's words, in which an instance's model differs from the set's, its network aside. Sorted.

    ARM's own word comes first: an instance that has the latest model differs in nothing. One that has not, and in which no
    difference is to be seen, its network included, has one that ARM does not show.
    """
    properties, profile = at(machine, "properties"), at(scale_set, "properties", "virtualMachineProfile")
    if properties.get("latestModelApplied") is True:
        return ()
    found = set(uncovered({"name": at(scale_set, "sku").get("name")}, at(machine, "sku"), "sku"))
    # A model without data disks has no such list, or an empty one.
    wanted = {**profile, "storageProfile": {"dataDisks": [], **at(profile, "storageProfile")}}
    for part in SHOWN:
        found.update(uncovered(wanted.get(part), properties.get(part), part))
    found.update(uncovered(at(profile, "extensionProfile").get("extensions") or [], _extensions(machine), "extensionProfile"))
    if not found and not _network_differs(machine, scale_set):
        return (UNSEEN,)
    return tuple(sorted(found))


def _network_differs(machine: Document, scale_set: Document) -> bool:
    """Whether ipConfigurations are pending, or anything else of the NICs."""
    model = ip_configurations.of_model(scale_set) or []
    if ip_configurations.signature(model) != ip_configurations.signature(ip_configurations.of_instance(machine)):
        return True
    wanted = at(scale_set, "properties", "virtualMachineProfile", "networkProfile").get("networkInterfaceConfigurations")
    held = at(machine, "properties", "networkProfileConfiguration").get("networkInterfaceConfigurations")
    return bool(uncovered(wanted, held, ""))


def _extensions(machine: Document) -> list[Document]:
    """An instance's extensions: resources of their own, whose names may have the instance's before them."""
    found = [item for item in machine.get("resources") or [] if isinstance(item, dict)]
    return [{**item, "name": str(item.get("name")).rpartition("/")[2]} for item in found]


def uncovered(wanted: t.Any, held: t.Any, path: str) -> list[str]:
    """The paths at which an instance does not have what the model says. What the instance has besides is ARM's own: ids, exact versions."""
    if isinstance(wanted, dict):
        inside = held if isinstance(held, dict) else {}
        return [
            each for key, value in wanted.items() if key not in NOT_COMPARED for each in uncovered(value, inside.get(key), f"{path}.{key}")
        ]
    if isinstance(wanted, list):
        return _uncovered_items(wanted, held if isinstance(held, list) else [], path)
    # A property that is left out and one that is off are the same for Azure.
    if wanted in (None, "", False) and held in (None, "", False):
        return []
    # ARM writes names in ids in any case.
    same = wanted.lower() == held.lower() if isinstance(wanted, str) and isinstance(held, str) else wanted == held
    return [] if same else [path]


def _uncovered_items(wanted: list[t.Any], held: list[t.Any], path: str) -> list[str]:
    """Items of both lists, by what makes them the same; one that the model no longer has would go from the instance."""
    identity = next(
        (key for key in IDENTITIES if wanted + held and all(isinstance(item, dict) and key in item for item in wanted + held)), ""
    )
    if not identity:
        return [] if len(wanted) == len(held) and not any(uncovered(*pair, path) for pair in zip(wanted, held, strict=True)) else [path]
    there = {str(item[identity]).lower(): item for item in held}
    found: list[str] = []
    for item in wanted:
        other = there.pop(str(item[identity]).lower(), None)
        place = f"{path}[{item[identity]}]"
        found += [place] if other is None else uncovered(item, other, place)
    return [*found, *(f"{path}[{item[identity]}]" for item in there.values())]
