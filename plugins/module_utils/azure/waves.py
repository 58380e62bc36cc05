# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which instances are brought to a scale set's model now, in which batches, and why the others are not.

Pure. Only instances that the caller calls idle are ever chosen.
"""

from __future__ import annotations

import dataclasses
import difflib
import typing as t

from .errors import AzureError

# Azure is still, or no longer, at these.
UNSETTLED = ("creating", "deleting")
Reason = t.Literal["not_idle", "protected", "drifted", "unsettled", "gone"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Candidate:
    """An instance whose aliases are not those wanted.

    ``instance_id`` is the number of a Uniform instance and the VM's name for Flexible; ``vm_id`` is the identity of the
    machine, since numbers come again. ``state`` is the provisioning state in lower case. ``drift`` are the properties that
    would change besides.
    """

    instance_id: str
    vm_id: str
    name: str
    protected: bool = False
    state: str = "succeeded"
    drift: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Skipped:
    """``drift`` is that of the instance, for reason "drifted"; "gone" is one that was there when the waves were planned."""

    instance_id: str
    vm_id: str
    reason: Reason
    drift: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Named:
    """Instances that a caller names, by vm_id, instance_id or name, without regard to case."""

    entries: frozenset[str]

    @classmethod
    def of(cls, entries: t.Iterable[str]) -> Named:
        return cls(entries=frozenset(entry.strip().lower() for entry in entries))

    def __contains__(self, item: Candidate) -> bool:
        return not self.entries.isdisjoint(_words(item))

    def check(self, option: str, members: t.Iterable[Candidate], place: str) -> None:
        """Raise AzureError for an entry that is no instance: it may be gone, and another one may have its number."""
        known = {word for item in members for word in _words(item)}
        for entry in sorted(self.entries - known):
            near = difflib.get_close_matches(entry, known, n=1)
            raise AzureError(
                f"{option}: {place} has no instance {entry!r}"
                + (f"; did you mean {near[0]}?" if near else "")
                + "; it may have been replaced: run the inventory again, and name instances by vm_id"
            )


def choose(candidates: t.Iterable[Candidate], *, idle: Named, allow_drift: Named) -> tuple[list[Candidate], list[Skipped]]:
    """Those that may be updated now, and the others with the reason, both in the order given."""
    chosen: list[Candidate] = []
    skipped: list[Skipped] = []
    for item in candidates:
        reason = _reason(item, idle, allow_drift)
        if reason is None:
            chosen.append(item)
        else:
            drift = item.drift if reason == "drifted" else ()
            skipped.append(Skipped(instance_id=item.instance_id, vm_id=item.vm_id, reason=reason, drift=drift))
    return chosen, skipped


def batches(chosen: t.Sequence[Candidate], size: int) -> list[list[Candidate]]:
    """The waves, all of ``size`` but the last."""
    return [list(chosen[start : start + size]) for start in range(0, len(chosen), size)]


def _reason(item: Candidate, idle: Named, allow_drift: Named) -> Reason | None:
    if item not in idle:
        return "not_idle"
    if item.protected:
        return "protected"
    if item.state in UNSETTLED:
        return "unsettled"
    return "drifted" if item.drift and item not in allow_drift else None


def _words(item: Candidate) -> set[str]:
    return {word.lower() for word in (item.vm_id, item.instance_id, item.name) if word}
