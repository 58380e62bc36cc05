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
import typing as t

from . import fleet, interfaces
from .account import Account, Reader, flat
from .documents import Document
from .errors import ArmError, AzureError, IncompleteError, UnavailableError
from .scope import Scope

# The newest versions that public and sovereign clouds have alike; raw documents need no newer one.
COMPUTE_VERSION = "2024-07-01"
# The only version that documents the list of a whole scale set's interfaces; the SDK sends it too.
SCALE_SET_NETWORK_VERSION = "2018-10-01"
# privateIPAddressPrefixLength is in Microsoft.Network since 2023-11-01.
NETWORK_VERSION = "2024-05-01"

# ARM takes 25 reads a second in the long run; 16 at 75 ms each would be 213 a second, over within one bucket of 250.
PARALLEL = 16
# An instance that goes between the list of instances and that of interfaces is one without address; the next reading lacks it.
READS_OF_A_SET = 3


class Listing:
    """One reading of a fleet. ``parallel`` is how many calls may be under way at once, over all accounts."""

    def __init__(self, accounts: t.Sequence[Account], scope: Scope, *, parallel: int = PARALLEL, keep_documents: bool = False) -> None:
        self._accounts = accounts
        self._scope = scope
        self._parallel = parallel
        self._keep = keep_documents

    def read(self) -> tuple[fleet.Instance, ...]:
        """Every instance in scope, sorted by resource id.

        Raises AzureError for a name in scope that does not exist, UnavailableError where not even the list of scale
        sets can be had, and IncompleteError for any page after that.
        """
        with concurrent.futures.ThreadPoolExecutor(max_workers=self._parallel, thread_name_prefix="azure_vmss") as pool:
            try:
                sets = self._scale_sets(pool)
                found = self._instances(sets, pool)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        return tuple(sorted(found, key=lambda instance: instance.resource_id.lower()))

    # Scale sets

    def _scale_sets(self, pool: concurrent.futures.Executor) -> dict[fleet.ScaleSet, Reader]:
        """Those in scope, with who reads them."""
        places = [
            (account.reader, subscription, group)
            for account in self._accounts
            for subscription in account.subscription_ids
            # One list per subscription; or per resource group where all are named, because the right to read may end there.
            for group in self._scope.only_groups() or ("",)
        ]
        readers: dict[fleet.ScaleSet, Reader] = {}
        try:
            for (reader, _subscription, _group), found in zip(places, pool.map(lambda place: _sets(*place), places), strict=True):
                readers.update(dict.fromkeys(found, reader))
        except ArmError as error:
            if error.may_pass:
                raise UnavailableError(str(error)) from error
            raise
        subscriptions = [identifier for account in self._accounts for identifier in account.subscription_ids]
        return {item: readers[item] for item in self._scope.choose(list(readers), subscriptions)}

    # Instances and interfaces

    def _instances(self, sets: t.Mapping[fleet.ScaleSet, Reader], pool: concurrent.futures.Executor) -> list[fleet.Instance]:
        """Raises IncompleteError."""
        try:
            uniform = pool.map(lambda item: self._uniform(sets[item], item), [item for item in sets if not item.flexible])
            flexible = self._flexible({item: reader for item, reader in sets.items() if item.flexible}, pool)
            found = [instance for part in (*uniform, *flexible) for instance in part]
        except AzureError as error:
            raise IncompleteError(str(error)) from error
        lost = fleet.without_address(found)
        if lost:
            raise IncompleteError(
                f"{lost[0].resource_id} is running, but ARM lists no network interface with a primary address for it"
                + (f", nor for {len(lost) - 1} others" if len(lost) > 1 else "")
                + "; it may be on its way out: run again"
            )
        return found

    def _uniform(self, reader: Reader, item: fleet.ScaleSet) -> tuple[fleet.Instance, ...]:
        found: tuple[fleet.Instance, ...] = ()
        for _attempt in range(READS_OF_A_SET):
            # Interfaces are read after the instances they belong to, so that an instance made in between cannot lack its own.
            machines = self._machines(reader, item)
            owned = self._interfaces(reader, f"{item.resource_id}/networkInterfaces", SCALE_SET_NETWORK_VERSION)
            found = fleet.joined(machines, owned)
            if not fleet.without_address(found):
                break
        return found

    def _flexible(
        self, sets: t.Mapping[fleet.ScaleSet, Reader], pool: concurrent.futures.Executor
    ) -> t.Iterator[tuple[fleet.Instance, ...]]:
        """Interfaces of Flexible sets lie beside all others of their resource group."""
        groups: dict[str, list[fleet.ScaleSet]] = collections.defaultdict(list)
        for item in sets:
            groups[_group_path(item).lower()].append(item)
        machines = dict(zip(sets, pool.map(lambda item: self._machines(sets[item], item), sets), strict=True))
        paths = {key: f"{_group_path(items[0])}/providers/Microsoft.Network/networkInterfaces" for key, items in groups.items()}
        lists = pool.map(lambda key: self._interfaces(sets[groups[key][0]], paths[key], NETWORK_VERSION), groups)
        for items, owned in zip(groups.values(), lists, strict=True):
            for item in items:
                yield fleet.joined(machines[item], owned)

    def _machines(self, reader: Reader, item: fleet.ScaleSet) -> list[fleet.Instance]:
        path, parameters = f"{item.resource_id}/virtualMachines", {"$expand": "instanceView"}
        if item.flexible:
            # Instance views of virtual machines are only given to a list that is filtered by scale set.
            path = f"{_group_path(item)}/providers/Microsoft.Compute/virtualMachines"
            parameters["$filter"] = f"'virtualMachineScaleSet/id' eq '{item.resource_id}'"

        def made(documents: list[dict[str, t.Any]]) -> list[fleet.Instance]:
            return [fleet.instance(item, document, keep_document=self._keep) for document in documents]

        return flat(reader.pages(path, made, api_version=COMPUTE_VERSION, **parameters))

    def _interfaces(self, reader: Reader, path: str, version: str) -> dict[str, list[interfaces.Interface]]:
        def made(documents: list[dict[str, t.Any]]) -> list[interfaces.Interface]:
            return [interfaces.interface(document, keep_document=self._keep) for document in documents]

        return interfaces.by_owner(flat(reader.pages(path, made, api_version=version)))


def _sets(reader: Reader, subscription: str, group: str) -> list[fleet.ScaleSet]:
    where = f"/subscriptions/{subscription}" + (f"/resourceGroups/{group}" if group else "")

    def made(documents: t.Sequence[Document]) -> list[fleet.ScaleSet]:
        return [fleet.scale_set(document) for document in documents]

    try:
        return flat(reader.pages(f"{where}/providers/Microsoft.Compute/virtualMachineScaleSets", made, api_version=COMPUTE_VERSION))
    except ArmError as error:
        # The group may be in another one of the subscriptions; the scope finds out.
        if group and error.code == "ResourceGroupNotFound":
            return []
        raise


def _group_path(item: fleet.ScaleSet) -> str:
    return f"/subscriptions/{item.subscription_id}/resourceGroups/{item.resource_group}"
