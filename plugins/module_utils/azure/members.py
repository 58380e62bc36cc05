# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The instances of one scale set, read and brought to other aliases: Uniform by the set's latest model, Flexible by their own NICs."""

from __future__ import annotations

import dataclasses
import typing as t

from . import interfaces, ip_configurations, model_drift, operations
from .account import flat
from .client import Client
from .documents import Document, at, parts
from .errors import AzureError
from .ip_configurations import Aliases, Signature
from .listing import NETWORK_VERSION, SCALE_SET_NETWORK_VERSION
from .waves import Candidate

Page = list[dict[str, t.Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Member:
    """An instance with the aliases that it has and those that it shall have; ``interface`` is the document of its own NIC, if it has one."""

    candidate: Candidate
    resource_id: str
    held: Signature
    wished: Signature
    interface: Document = dataclasses.field(default_factory=dict)

    @property
    def going(self) -> dict[str, int]:
        """The aliases that it loses, as ``ip_configurations.leaving`` takes them."""
        return dict(self.held - self.wished)


class Members(t.Protocol):
    def read(self, before: Document, after: Document) -> list[Member]:
        """Every instance, in ARM's order; ``before`` is the set as it is, ``after`` the set with the model that is wanted. Raises AzureError."""

    def leaving(self, members: t.Sequence[Member]) -> dict[str, list[str]]:
        """The addresses and blocks that these lose, by instance id; without those that lose none. Raises AzureError."""

    def update(self, members: t.Sequence[Member], deadline: float) -> None:
        """Bring these to what is wanted, and wait for the end until ``time.monotonic()`` is ``deadline``. Raises AzureError."""


class Uniform:
    """``path`` is the set's id, ``version`` the one of Microsoft.Compute that is asked."""

    def __init__(self, client: Client, path: str, version: str) -> None:
        self._client = client
        self._path = path
        self._version = version
        # By vm_id, as it was when the instance was first seen: once a new model is written, every instance is behind it.
        self._drift: dict[str, tuple[str, ...]] = {}

    def read(self, before: Document, after: Document) -> list[Member]:
        wished = ip_configurations.signature(ip_configurations.of_model(after) or [])

        def made(documents: Page) -> list[Member]:
            return [self._member(document, before, wished) for document in documents]

        return flat(self._client.pages(f"{self._path}/virtualMachines", made, api_version=self._version))

    def _member(self, document: Document, before: Document, wished: Signature) -> Member:
        vm_id = str(at(document, "properties").get("vmId") or "")
        if vm_id not in self._drift:
            self._drift[vm_id] = model_drift.between(document, before)
        return Member(
            candidate=_candidate(document, drift=self._drift[vm_id]),
            resource_id=str(document.get("id") or ""),
            held=ip_configurations.signature(ip_configurations.of_instance(document)),
            wished=wished,
        )

    def leaving(self, members: t.Sequence[Member]) -> dict[str, list[str]]:
        losing = {item.resource_id.lower(): item for item in members if item.going}
        if not losing:
            return {}

        def made(documents: Page) -> list[interfaces.Interface]:
            return [interfaces.interface(document, keep_document=True) for document in documents]

        found = self._client.pages(f"{self._path}/networkInterfaces", made, api_version=SCALE_SET_NETWORK_VERSION)
        owned = interfaces.by_owner(flat(found))
        return _leaving((item, _primary(owned.get(key, ()))) for key, item in losing.items())

    def update(self, members: t.Sequence[Member], deadline: float) -> None:
        ids = [item.candidate.instance_id for item in members]
        what = f"bringing instances {', '.join(ids)} to the latest model"
        place, body = f"{self._path}/manualupgrade", {"instanceIds": ids}
        operations.begin(self._client, "POST", place, api_version=self._version, body=body, what=what).result(deadline)


class Flexible:
    """As ``Uniform``, for instances that are virtual machines with NICs of their own."""

    def __init__(self, client: Client, path: str, version: str, wanted: Aliases) -> None:
        self._client = client
        self._path = path
        self._group = path.partition("/providers/")[0]
        self._version = version
        self._wanted = wanted

    def read(self, before: Document, after: Document) -> list[Member]:
        def owned(documents: Page) -> list[interfaces.Interface]:
            return [interfaces.interface(document, keep_document=True) for document in documents]

        machines = self._client.pages(
            f"{self._group}/providers/Microsoft.Compute/virtualMachines",
            lambda documents: documents,
            api_version=self._version,
            **{"$filter": f"'virtualMachineScaleSet/id' eq '{self._path}'"},
        )
        # Read after the machines, so that a machine that was made in between cannot lack its own.
        listed = self._client.pages(f"{self._group}/providers/Microsoft.Network/networkInterfaces", owned, api_version=NETWORK_VERSION)
        nics = interfaces.by_owner(flat(listed))
        return [self._member(document, _primary(nics.get(str(document.get("id")).lower(), ()))) for document in flat(machines)]

    def _member(self, document: Document, nic: Document) -> Member:
        candidate = _candidate(document)
        if not nic:
            # Not there yet, or no longer.
            candidate = dataclasses.replace(candidate, state="creating")
        held = ip_configurations.of_interface(nic) if nic else []
        return Member(
            candidate=candidate,
            resource_id=str(document.get("id") or ""),
            held=ip_configurations.signature(held) if nic else frozenset(),
            wished=ip_configurations.signature(ip_configurations.changed(held, self._wanted)) if nic else frozenset(),
            interface=nic,
        )

    def leaving(self, members: t.Sequence[Member]) -> dict[str, list[str]]:
        return _leaving((item, item.interface) for item in members if item.going)

    def update(self, members: t.Sequence[Member], deadline: float) -> None:
        begun: list[operations.Operation] = []
        failed: list[AzureError] = []
        for item in members:
            try:
                begun += self._begin(item)
            except AzureError as error:
                failed.append(error)
                break
        # What has begun is followed to its end, whatever becomes of the others.
        for operation in begun:
            try:
                operation.result(deadline)
            except AzureError as error:
                failed.append(error)
        if failed:
            raise failed[0]

    def _begin(self, item: Member) -> list[operations.Operation]:
        place = str(item.interface["id"])
        nic = self._client.document(place, api_version=NETWORK_VERSION)
        after = ip_configurations.changed_interface(nic, self._wanted)
        if after == nic:
            return []
        what = f"changing the NIC of {item.candidate.instance_id}"
        etag = str(nic.get("etag") or "")
        return [operations.begin(self._client, "PUT", place, api_version=NETWORK_VERSION, body=after, what=what, etag=etag)]


def _candidate(document: Document, drift: tuple[str, ...] = ()) -> Candidate:
    properties = at(document, "properties")
    own_name = parts(str(document.get("id") or "")).get("virtualmachines", "")
    return Candidate(
        instance_id=str(document.get("instanceId") or own_name),
        vm_id=str(properties.get("vmId") or ""),
        name=str(document.get("name") or own_name),
        protected=bool(at(properties, "protectionPolicy").get("protectFromScaleSetActions")),
        state=str(properties.get("provisioningState") or "").lower(),
        drift=drift,
    )


def _primary(nics: t.Sequence[interfaces.Interface]) -> Document:
    """The document of an instance's primary NIC; empty where there is none."""
    return next((dict(nic.document or {}) for nic in nics if nic.primary or len(nics) == 1), {})


def _leaving(losing: t.Iterable[tuple[Member, Document]]) -> dict[str, list[str]]:
    found = {
        item.candidate.instance_id: ip_configurations.leaving(ip_configurations.of_interface(nic), item.going)
        for item, nic in losing
        if nic
    }
    return {key: addresses for key, addresses in found.items() if addresses}
