# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One run: facts once, a plan for every subsystem, apply, one result."""

from __future__ import annotations

import dataclasses
import json
import typing as t

from . import apply, registry
from .desired import Desired, DesiredFile, Plan, plan
from .document import FORMAT
from .facts import read as facts_read
from .facts.model import Facts, Reads
from .plan import Change, diff
from .spec import NodeError, has_secrets, validate
from .subsystem import Subsystem
from .system import System

STATE_DIRECTORY = "/etc/gpufleet/state.d"
Document = t.Mapping[str, t.Any]


class Failed(NodeError):  # noqa: N818 - the name of an end, beside a NodeError that is its reason
    """A run that did not end well: what had been done by then, and the facts for a replay."""

    def __init__(self, message: str, *, facts: Facts | None = None, done: t.Sequence[str] = ()) -> None:
        super().__init__(message)
        self.facts = facts
        self.done = tuple(done)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Planned:
    """One subsystem of a state document with its plan."""

    subsystem: Subsystem
    desired: Desired
    plan: Plan


def parse(document: Document) -> list[tuple[Subsystem, dict[str, t.Any], dict[str, str]]]:
    """Check a state document: subsystems in the order of the registry, each with its parameters and texts.

    Raises NodeError for another format, an unknown subsystem or variable, or a value that cannot be used.
    """
    if document.get("format") != FORMAT:
        raise NodeError(
            f"the state document has format {document.get('format')!r}, this program reads {FORMAT}; "
            "use program and document of one release"
        )
    sections = dict(document.get("subsystems", {}))
    for name in sections:
        registry.subsystem(name)
    return [
        (
            subsystem,
            validate(subsystem.parameters, sections[subsystem.name]["parameters"], where=subsystem.name),
            dict(sections[subsystem.name].get("texts", {})),
        )
        for subsystem in registry.SUBSYSTEMS
        if subsystem.name in sections
    ]


def reads(document: Document) -> Reads:
    """What the whole document needs read."""
    wanted = Reads()
    for subsystem, parameters, _texts in parse(document):
        own = frozenset({state_path(subsystem.name)})
        secret = own if has_secrets(subsystem.parameters, document["subsystems"][subsystem.name]["parameters"]) else frozenset()
        wanted |= subsystem.reads(parameters) | Reads(files=own, secret_files=secret)
    return wanted


def plan_all(facts: Facts, document: Document) -> tuple[Planned, ...]:
    """Pure: the plan of every subsystem of the document, in order."""
    planned = []
    for subsystem, parameters, texts in parse(document):
        try:
            desired = subsystem.desired(parameters, texts, facts)
        except NodeError as error:
            raise NodeError(f"{subsystem.name}: {error}") from error
        section = document["subsystems"][subsystem.name]
        secret = has_secrets(subsystem.parameters, section["parameters"])
        desired = dataclasses.replace(desired, files=(*desired.files, _state_file(subsystem.name, section, secret=secret)))
        try:
            planned.append(Planned(subsystem=subsystem, desired=desired, plan=plan(facts, desired)))
        except NodeError as error:
            raise NodeError(f"{subsystem.name}: {error}") from error
    _one_owner(planned)
    return tuple(planned)


def _one_owner(planned: t.Iterable[Planned]) -> None:
    """Two wishes for one file or kernel parameter would undo each other for ever, so they are refused."""
    files: dict[str, str] = {}
    sysctls: dict[str, tuple[str, str]] = {}
    for item in planned:
        name = item.subsystem.name
        for file in item.desired.files:
            owner = f"{name} ({', '.join(file.variables) or 'the program itself'})"
            if file.path in files:
                raise NodeError(f"{file.path} is wanted by {files[file.path]} and by {owner}; leave it to one of them")
            files[file.path] = owner
        for sysctl in item.desired.sysctls:
            owner = f"{name} ({sysctl.variable or 'the program itself'})"
            other, value = sysctls.setdefault(sysctl.key, (owner, sysctl.value))
            if value.split() != sysctl.value.split():
                raise NodeError(f"sysctl {sysctl.key} shall be {value} by {other} and {sysctl.value} by {owner}; leave it to one of them")


def state_path(name: str) -> str:
    """Where a subsystem's section of the state document lies on the node, for boot, timers and explain."""
    return f"{STATE_DIRECTORY}/{name}.json"


def stored_document(system: System, only: t.Collection[str] = ()) -> dict[str, t.Any]:
    """The state document that lies on the node, all of it or some subsystems."""
    found = [name.removesuffix(".json") for name in system.names(STATE_DIRECTORY) if name.endswith(".json") and not name.startswith(".")]
    if not found and not only:
        raise NodeError(f"no state lies in {STATE_DIRECTORY}: this node has never been converged; run the playbook for it first")
    for name in only:
        if name not in found:
            raise NodeError(f"{state_path(name)} does not exist: {name} has never been converged here; run the playbook for it first")
    return {"format": FORMAT, "subsystems": {name: system.read_json(state_path(name)) for name in found if not only or name in only}}


def converge(document: Document, system: System, *, check: bool) -> dict[str, t.Any]:
    """Bring the node to the document, or say what that would change.

    Returns the result document. Raises Failed, with what was done before and the facts for a replay.
    """
    facts = facts_read.read(system, reads(document))
    try:
        planned = plan_all(facts, document)
        if check:
            return result(facts, planned, check=True)
        if not _due(facts, planned):
            return result(facts, planned, check=False)
        with system.locked():
            # Another run may have changed the node while this one waited for the lock.
            facts = facts_read.read(system, reads(document))
            planned = plan_all(facts, document)
            _apply_all(system, facts, planned)
    except Failed:
        raise
    except NodeError as error:
        raise Failed(str(error), facts=facts) from error
    return result(facts, planned, check=False)


def _due(facts: Facts, planned: tuple[Planned, ...]) -> bool:
    return facts.pending_reload or bool(facts.pending_restarts) or any(applicable(item.plan) for item in planned)


def applicable(item: Plan) -> tuple[Change, ...]:
    """The changes that this pass may make: all before the first that needs something from outside."""
    for number, change in enumerate(item.changes):
        if change.needs:
            return item.changes[:number]
    return item.changes


def restarts(facts: Facts, planned: tuple[Planned, ...], *, all_passes: bool) -> tuple[str, ...]:
    """Units to restart at the end of the run, each once; one that the run itself starts needs no restart."""
    changes = [change for item in planned for change in (item.plan.changes if all_passes else applicable(item.plan))]
    started = {change.target for change in changes if change.kind == "unit" and "start" in (change.after or "").split(", ")}
    wanted = [*facts.pending_restarts, *(name for change in changes for name in change.restarts)]
    return tuple(name for name in dict.fromkeys(wanted) if name not in started)


def _apply_all(system: System, facts: Facts, planned: tuple[Planned, ...]) -> None:
    owed = list(restarts(facts, planned, all_passes=False))
    changes = [change for item in planned for change in applicable(item.plan)]
    reboot = (*facts.pending_reboot, *(change.reboot for change in changes if change.reboot))
    reload = facts.pending_reload or any(change.kind == "reload" for change in changes)
    done: list[str] = []
    try:
        apply.remember(system, owed, reboot, reload=reload)
        if facts.pending_reload:
            apply.apply(system, Change(kind="reload", target="systemd"))
            done.append("reload systemd")
        for item in planned:
            for change in applicable(item.plan):
                apply.apply(system, change)
                done.append(f"{item.subsystem.name}: {change}")
        if reload:
            apply.remember(system, owed, reboot, reload=False)
        while owed:
            apply.apply(system, Change(kind="restart", target=owed[0]))
            done.append(f"restart {owed.pop(0)}")
            apply.remember(system, owed, reboot, reload=False)
    except (NodeError, OSError) as error:
        raise Failed(str(error), facts=facts, done=done) from error


def result(facts: Facts, planned: tuple[Planned, ...], *, check: bool) -> dict[str, t.Any]:
    """What people and programs read of a run.

    In check mode the changes are those of all passes of a real run. Else they are those of this pass; ``needs`` is what the
    carrier must do before the next one, and ``waiting`` what that one will then do.
    """
    sections, diffs, packages = {}, [], []
    for item in planned:
        made = item.plan.changes if check else applicable(item.plan)
        rest = item.plan.changes[len(made) :]
        needs = tuple(change for change in rest if change.needs)
        packages += [change.target for change in item.plan.changes if change.kind == "package"]
        sections[item.subsystem.name] = {
            "changed": bool(made),
            "changes": [str(change) for change in made],
            "needs": [str(change) for change in needs],
            "waiting": [str(change) for change in rest if not change.needs],
            "notes": list(item.plan.notes),
        }
        diffs += diff(item.subsystem.name, (*made, *needs))
    units = restarts(facts, planned, all_passes=check)
    reasons = [*facts.pending_reboot, *(change.reboot for item in planned for change in item.plan.changes if change.reboot)]
    return {
        "changed": facts.pending_reload or bool(units) or any(section["changed"] for section in sections.values()),
        "subsystems": sections,
        "diff": diffs,
        "restarts": list(units),
        "needs": {"packages": list(dict.fromkeys(packages)), "reboot": list(dict.fromkeys(reasons))},
    }


def _state_file(name: str, section: Document, *, secret: bool) -> DesiredFile:
    text = json.dumps(section, indent=1, sort_keys=True) + "\n"
    return DesiredFile(path=state_path(name), text=text, mode=0o600, secret=secret)
