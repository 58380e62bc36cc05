# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which lists of ARM make up a fleet, and asking for them side by side.

No call is ever made for one instance: instances come by scale set and page with their instance view, interfaces of
Uniform sets by scale set and page, those of Flexible sets by resource group and page. 75 Uniform sets of 100
instances cost 152 calls.
"""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import difflib
import fnmatch
import typing as t

from . import fleet
from .errors import ArmError, AzureError

Document = dict[str, t.Any]

# The newest versions that public and sovereign clouds have alike; raw documents need no newer one.
COMPUTE_VERSION = "2024-07-01"
# The only version that documents the list of a whole scale set's interfaces; the SDK sends it too.
SCALE_SET_NETWORK_VERSION = "2018-10-01"
# privateIPAddressPrefixLength is in Microsoft.Network since 2023-11-01.
NETWORK_VERSION = "2024-05-01"

# ARM takes 25 reads a second in the long run; 16 at 75 ms each would be 213 a second, over within one bucket of 250.
PARALLEL = 16

_GLOB = frozenset("*?[")


class Reader(t.Protocol):
    """What is needed of client.Client."""

    def pages(self, path: str, *, api_version: str, **parameters: str) -> list[Document]: ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scope:
    """What is asked for. Names of groups and sets may be globs, without regard to case; none means all."""

    subscription_ids: tuple[str, ...]
    resource_groups: tuple[str, ...] = ()
    scale_sets: tuple[str, ...] = ()
    keep_documents: bool = False
    parallel: int = PARALLEL


def read(client: Reader, scope: Scope) -> tuple[fleet.Instance, ...]:
    """Every instance in scope, sorted by resource id.

    Raises AzureError for a page that cannot be had and for a name in scope that does not exist.
    """
    with concurrent.futures.ThreadPoolExecutor(max_workers=scope.parallel, thread_name_prefix="azure_vmss") as pool:
        try:
            sets = _scale_sets(client, scope, pool)
            # Interfaces are read after the instances they belong to, so that an instance made in between cannot lack its own.
            machines = dict(zip(sets, pool.map(lambda item: _machines(client, item), sets), strict=True))
            interfaces = _interfaces(client, sets, pool)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    found = [
        instance
        for item in sets
        for instance in fleet.instances(item, machines[item], interfaces[item], keep_documents=scope.keep_documents)
    ]
    return tuple(sorted(found, key=lambda instance: instance.resource_id.lower()))


def _scale_sets(client: Reader, scope: Scope, pool: concurrent.futures.Executor) -> list[fleet.ScaleSet]:
    everything = [
        fleet.scale_set(document) for documents in pool.map(lambda place: place(), _places(client, scope)) for document in documents
    ]
    groups = sorted({item.resource_group.lower() for item in everything})
    _check(scope.resource_groups, groups, kind="resource group", option="resource_groups", where=scope, note=" with a scale set in it")
    in_groups = [item for item in everything if _matches(item.resource_group, scope.resource_groups)]
    _check(scope.scale_sets, [item.name.lower() for item in in_groups], kind="scale set", option="scale_sets", where=scope)
    wanted = {item.resource_id.lower(): item for item in in_groups if _matches(item.name, scope.scale_sets)}
    return [wanted[key] for key in sorted(wanted)]


def _places(client: Reader, scope: Scope) -> list[t.Callable[[], list[Document]]]:
    """One list per subscription; or per resource group where all are named, because the right to read may end there."""

    def subscription(identifier: str) -> list[Document]:
        return client.pages(f"/subscriptions/{identifier}/providers/Microsoft.Compute/virtualMachineScaleSets", api_version=COMPUTE_VERSION)

    def group(identifier: str, name: str) -> list[Document]:
        path = f"/subscriptions/{identifier}/resourceGroups/{name}/providers/Microsoft.Compute/virtualMachineScaleSets"
        try:
            return client.pages(path, api_version=COMPUTE_VERSION)
        except ArmError as error:
            # The group may be in another one of the subscriptions; _check finds out.
            if error.code == "ResourceGroupNotFound":
                return []
            raise

    if scope.resource_groups and not any(_is_glob(name) for name in scope.resource_groups):
        return [
            lambda identifier=identifier, name=name: group(identifier, name)  # type: ignore[misc]
            for identifier in scope.subscription_ids
            for name in scope.resource_groups
        ]
    return [lambda identifier=identifier: subscription(identifier) for identifier in scope.subscription_ids]  # type: ignore[misc]


def _machines(client: Reader, item: fleet.ScaleSet) -> list[Document]:
    if not item.flexible:
        return client.pages(f"{item.resource_id}/virtualMachines", api_version=COMPUTE_VERSION, **{"$expand": "instanceView"})
    # Instance views of virtual machines are only given to a list that is filtered by scale set.
    return client.pages(
        f"{_group_path(item)}/providers/Microsoft.Compute/virtualMachines",
        api_version=COMPUTE_VERSION,
        **{"$filter": f"'virtualMachineScaleSet/id' eq '{item.resource_id}'", "$expand": "instanceView"},
    )


def _interfaces(
    client: Reader, sets: t.Sequence[fleet.ScaleSet], pool: concurrent.futures.Executor
) -> dict[fleet.ScaleSet, dict[str, list[fleet.Document]]]:
    """The interface documents for each set by instance. Those of Flexible sets lie beside all others of their resource group."""
    paths: dict[str, str] = {}
    used: dict[str, list[fleet.ScaleSet]] = collections.defaultdict(list)
    for item in sets:
        path = (
            f"{_group_path(item)}/providers/Microsoft.Network/networkInterfaces"
            if item.flexible
            else f"{item.resource_id}/networkInterfaces"
        )
        paths[path] = NETWORK_VERSION if item.flexible else SCALE_SET_NETWORK_VERSION
        used[path].append(item)
    lists = pool.map(lambda path: fleet.by_owner(client.pages(path, api_version=paths[path])), paths)
    return {item: owned for path, owned in zip(paths, lists, strict=True) for item in used[path]}


def _group_path(item: fleet.ScaleSet) -> str:
    return f"/subscriptions/{item.subscription_id}/resourceGroups/{item.resource_group}"


def _check(names: t.Iterable[str], known: t.Sequence[str], *, kind: str, option: str, where: Scope, note: str = "") -> None:
    for name in names:
        if _is_glob(name) or name.lower() in known:
            continue
        near = difflib.get_close_matches(name.lower(), known, n=1)
        there = f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(set(known))[:20]) or 'none'}"
        raise AzureError(f"there is no {kind} {name}{note} in subscription {', '.join(where.subscription_ids)}; correct {option} ({there})")


def _matches(name: str, patterns: t.Sequence[str]) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


def _is_glob(name: str) -> bool:
    return not _GLOB.isdisjoint(name)
