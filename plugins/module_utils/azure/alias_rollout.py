# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The aliases of one scale set: planned from one reading, then its model written and idle instances brought to it by waves."""

from __future__ import annotations

import dataclasses
import time
import typing as t

from . import ip_configurations, model_drift, operations, used_addresses, waves
from .client import Client
from .documents import Document, at
from .errors import ArmError, AzureError, UnavailableError
from .ip_configurations import SINGLE, Aliases
from .listing import COMPUTE_VERSION
from .members import Flexible, Member, Members, Uniform
from .used_addresses import Use
from .waves import Candidate, Named, Skipped

# The first version of Microsoft.Compute whose ipConfigurations can be blocks (azure-mgmt-compute 39.0.0). An older one
# neither shows a block's length nor keeps it when a model is written.
BLOCKS_VERSION = "2026-04-01"
UNKNOWN_VERSION = ("InvalidApiVersionParameter", "NoRegisteredProviderFound")
# Modes in which Azure brings every instance to a model as soon as it is written.
AT_ONCE = ("automatic", "rolling")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked for. ``path`` is the set's id; ``uses`` None means that nobody has looked. ``pause`` and ``timeout`` are in seconds."""

    path: str
    wanted: Aliases
    idle: Named
    allow_drift: Named
    uses: t.Sequence[Use] | None
    batch: int
    pause: float
    timeout: float


class InUseError(AzureError):
    """Addresses that would go are held by pods."""

    def __init__(self, held: t.Sequence[Use]) -> None:
        super().__init__(used_addresses.refusal(held))
        self.held = tuple(held)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """``before`` and ``after`` are the set as it is and with the model that is wanted. ``outdated`` are the members whose aliases are not
    those wanted; ``waves`` those of them that are brought to it now, ``skipped`` the others."""

    before: Document
    after: Document
    outdated: tuple[Member, ...]
    waves: tuple[tuple[Candidate, ...], ...]
    skipped: tuple[Skipped, ...]

    @property
    def writes_model(self) -> bool:
        return self.after != self.before

    @property
    def changes(self) -> bool:
        return self.writes_model or bool(self.waves)


class Rollout:
    """``wrote_model`` and ``updated`` say what has been done so far, also after an error; ``touched`` whether it may be more:
    a wave that failed has perhaps changed some instances, and a write whose answer was lost has perhaps come through."""

    def __init__(self, client: Client, request: Request, *, sleep: t.Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._request = request
        self._sleep = sleep
        self._version = BLOCKS_VERSION
        self.wrote_model = self.touched = False
        self.updated: list[list[Candidate]] = []

    def plan(self) -> Plan:
        """Read, and change nothing. Raises AzureError for what cannot be or must not be done, InUseError for pods in the way."""
        asked = self._request
        before = self._scale_set()
        after = ip_configurations.changed_model(before, asked.wanted)
        if after != before:
            _check_policy(before)
        self._members = self._instances(before)
        found = self._members.read(before, after)
        everyone = [item.candidate for item in found]
        for option, named in (("idle_instances", asked.idle), ("allow_model_drift", asked.allow_drift)):
            named.check(option, everyone, f"scale set {before.get('name')}")
        outdated = [item for item in found if item.held != item.wished]
        self._check_uses(outdated)
        chosen, skipped = waves.choose((item.candidate for item in outdated), idle=asked.idle, allow_drift=asked.allow_drift)
        return Plan(
            before=before,
            after=after,
            outdated=tuple(outdated),
            waves=tuple(map(tuple, waves.batches(chosen, asked.batch))),
            skipped=tuple(skipped),
        )

    def apply(self, plan: Plan) -> list[Skipped]:
        """Carry a plan out; the instances that were to be updated and are not, since they have changed meanwhile. Raises AzureError."""
        written = self._write(plan) if plan.writes_model else plan.before
        late: list[Skipped] = []
        for number, wave in enumerate(plan.waves):
            members = {item.candidate.vm_id: item for item in plan.outdated}
            if number:
                self._sleep(self._request.pause)
                members = self._again(written)
            # As they are now: protected meanwhile, or gone, perhaps with another machine under the same number.
            now = [members[item.vm_id].candidate for item in wave if item.vm_id in members]
            late += [Skipped(instance_id=item.instance_id, vm_id=item.vm_id, reason="gone") for item in wave if item.vm_id not in members]
            chosen, skipped = waves.choose(now, idle=self._request.idle, allow_drift=self._request.allow_drift)
            late += skipped
            if chosen:
                self.touched = True
                self._members.update([members[item.vm_id] for item in chosen], time.monotonic() + self._request.timeout)
                self.updated.append(chosen)
        self._verify(written)
        return late

    # Reading

    def _scale_set(self) -> Document:
        try:
            return self._client.document(self._request.path, api_version=self._version)
        except ArmError as error:
            if error.code not in UNKNOWN_VERSION or self._version == COMPUTE_VERSION:
                raise
            if self._request.wanted.prefix_length != SINGLE:
                raise AzureError(
                    f"blocks: this Azure does not know version {BLOCKS_VERSION} of Microsoft.Compute, and no blocks; use count"
                ) from error
        # A cloud that does not know the version has no blocks that an older one could lose.
        self._version = COMPUTE_VERSION
        return self._scale_set()

    def _instances(self, scale_set: Document) -> Members:
        path = str(scale_set.get("id") or self._request.path)
        if str(at(scale_set, "properties").get("orchestrationMode") or "Uniform").lower() == "flexible":
            return Flexible(self._client, path, self._version, self._request.wanted)
        return Uniform(self._client, path, self._version)

    def _check_uses(self, outdated: t.Sequence[Member]) -> None:
        leaving = self._members.leaving(outdated)
        if not leaving:
            return
        addresses = [address for held in leaving.values() for address in held]
        if self._request.uses is None:
            raise AzureError(
                f"{len(addresses)} addresses and blocks of {len(leaving)} instances would go ({addresses[0]} of {next(iter(leaving))} among them); "
                "say in addresses_in_use which ones pods hold, an empty list if none"
            )
        held = used_addresses.among(self._request.uses, addresses)
        if held:
            raise InUseError(held)

    def _again(self, written: Document) -> dict[str, Member]:
        """The members before another wave, by vm_id. Raises AzureError where the model is no longer the one that was written."""
        now = self._scale_set()
        _check_same(written, now)
        return {item.candidate.vm_id: item for item in self._members.read(now, now)}

    def _verify(self, written: Document) -> None:
        """Raise AzureError for an instance that Azure says it has updated, and that is as it was."""
        done = {item.vm_id for wave in self.updated for item in wave}
        if not done:
            return
        still = [
            item.candidate for item in self._members.read(written, written) if item.candidate.vm_id in done and item.held != item.wished
        ]
        if still:
            names = ", ".join(item.instance_id for item in still)
            raise AzureError(
                f"Azure reports success, but instances {names} do not have {self._request.wanted}; look at them in Azure and run again"
            )

    # Writing

    def _write(self, plan: Plan) -> Document:
        """The set with its new model, as ARM has it afterwards."""
        network = at(plan.after, "properties", "virtualMachineProfile", "networkProfile")
        # A PATCH of the NICs alone: a PUT would lose what ARM never shows, such as user data and settings of extensions.
        body = {
            "properties": {
                "virtualMachineProfile": {"networkProfile": {"networkInterfaceConfigurations": network["networkInterfaceConfigurations"]}}
            }
        }
        what, etag = f"writing the model of {plan.before.get('name')}", str(plan.before.get("etag") or "")
        deadline = time.monotonic() + self._request.timeout
        try:
            operations.begin(self._client, "PATCH", self._request.path, api_version=self._version, body=body, what=what, etag=etag).result(
                deadline
            )
        except UnavailableError:
            # Nobody has said that it did not come through.
            self.touched = True
            raise
        self.wrote_model = True
        now = self._scale_set()
        _check_same(plan.after, now)
        kept = at(now, "properties", "virtualMachineProfile", "networkProfile")
        lost = model_drift.uncovered(network, kept, "networkProfile")
        if lost:
            raise AzureError(
                f"the model of scale set {now.get('name')} does not have what was written ({', '.join(lost)}): no instance is brought to it; "
                "look at it in Azure and run again"
            )
        return now


def _check_policy(scale_set: Document) -> None:
    mode = str(at(scale_set, "properties", "upgradePolicy").get("mode") or "Manual")
    if mode.lower() in AT_ONCE:
        raise AzureError(
            f"scale set {scale_set.get('name')} has upgradePolicy.mode {mode}: a new model would change its instances at once, busy ones too; "
            "set it to Manual first"
        )


def _check_same(expected: Document, now: Document) -> None:
    """Raise AzureError where the model that instances would be brought to is not the one that was planned for."""
    if _model(expected) != _model(now):
        raise AzureError(
            f"the model of scale set {now.get('name')} was changed by somebody else meanwhile; no further instance is brought to it: "
            "run again, which compares anew"
        )


def _model(scale_set: Document) -> tuple[t.Any, ...]:
    """What an instance is made from. A model's time is renewed with every write."""
    profile = {key: value for key, value in at(scale_set, "properties", "virtualMachineProfile").items() if key != "timeCreated"}
    names = frozenset() if not profile else ip_configurations.signature(ip_configurations.of_model(scale_set) or [])
    return (at(scale_set, "sku").get("name"), {key: value for key, value in profile.items() if key != "networkProfile"}, names)
