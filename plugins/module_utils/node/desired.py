# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a subsystem wants, as a value, and the one planner that turns it into changes."""

from __future__ import annotations

import dataclasses
import hashlib
import posixpath
import typing as t

from . import rules
from .facts.model import Facts, File, Rules, Unit
from .plan import Change, Changes, rules_after
from .spec import NodeError

UNIT_DIRECTORY = "/etc/systemd/system/"


@dataclasses.dataclass(frozen=True, kw_only=True)
class DesiredFile:
    """A file that shall hold ``text`` (or ``content``, for bytes), or be absent when both are None.

    ``variables`` names what decided it, for ``gpufleet-node explain``.
    """

    path: str
    text: str | None = None
    content: bytes | None = None
    mode: int = 0o644
    restarts: tuple[str, ...] = ()
    reboot: str = ""
    variables: tuple[str, ...] = ()
    secret: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class DesiredUnit:
    """A systemd unit; ``enabled`` or ``active`` None leaves that side as it is."""

    name: str
    enabled: bool | None = None
    active: bool | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class DesiredSysctl:
    """A kernel parameter that shall have ``value`` while running; the drop-in that keeps it is a DesiredFile.

    ``module`` is the kernel module by which the key comes.
    """

    key: str
    value: str
    variable: str = ""
    module: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Desired:
    """All that one subsystem wants of one node. ``notes`` are said in the result and change nothing.

    ``modules`` are kernel modules to be loaded. ``no_addresses`` maps an interface to addresses ("10.1.0.5") that shall not
    be on it. ``ready`` is a file that is written after everything else.
    """

    packages: tuple[str, ...] = ()
    directories: t.Mapping[str, int] = dataclasses.field(default_factory=dict)
    files: tuple[DesiredFile, ...] = ()
    links: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    modules: tuple[str, ...] = ()
    sysctls: tuple[DesiredSysctl, ...] = ()
    no_addresses: t.Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)
    tables: t.Mapping[str, rules.DesiredRules] = dataclasses.field(default_factory=dict)
    units: tuple[DesiredUnit, ...] = ()
    ready: DesiredFile | None = None
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Plan:
    """Ordered changes of one subsystem, and what is to be said besides."""

    changes: Changes = ()
    notes: tuple[str, ...] = ()


def plan(facts: Facts, desired: Desired) -> Plan:
    """The changes that lead from ``facts`` to ``desired``; empty when nothing is to be done.

    The order is the order of apply: packages first, since files of the subsystem may configure them;
    units after all that they read and after systemd has been told of changed unit files.
    """
    modules = [change for name in desired.modules if (change := _module(facts, name))]
    sysctls, notes = _sysctls(facts, desired.sysctls, coming={change.target for change in modules})
    units = [change for unit in desired.units if (change := _unit(facts.units.get(unit.name, Unit()), unit))]
    notes += tuple(note for unit in desired.units if (note := _fixed(facts.units.get(unit.name, Unit()), unit)))
    steps: list[Change | None] = [
        # systemctl wants the unit file to be there when it disables or stops a unit, so this comes before removals.
        *(change for change in units if _ends(change)),
        *(_package(facts, name) for name in desired.packages),
        *(_directory(facts.files.get(path), path, mode) for path, mode in desired.directories.items()),
        *(_file(_found(facts, wanted.path), wanted) for wanted in desired.files),
        *(_link(facts.files.get(path), path, target) for path, target in desired.links.items()),
        *modules,
        *sysctls,
        *(change for name, unwanted in desired.no_addresses.items() for change in _addresses(facts, name, unwanted)),
        *(_rules(facts.tables.get(table, Rules()), table, wanted) for table, wanted in desired.tables.items()),
    ]
    changes = [change for change in steps if change]
    stale = any(facts.units.get(unit.name, Unit()).needs_reload for unit in desired.units)
    if stale or any(change.target.startswith(UNIT_DIRECTORY) for change in changes):
        changes.append(Change(kind="reload", target="systemd"))
    changes += [change for change in units if not _ends(change)]
    if desired.ready and (change := _file(_found(facts, desired.ready.path), desired.ready)):
        changes.append(change)
    return Plan(changes=tuple(changes), notes=desired.notes + notes)


def _ends(unit: Change) -> bool:
    return {"disable", "stop"} & set((unit.after or "").split(", ")) != set()


def _package(facts: Facts, name: str) -> Change | None:
    if facts.packages.get(name) is not None:
        return None
    return Change(kind="package", target=name, after="installed", needs="package")


def _directory(found: File | None, path: str, mode: int) -> Change | None:
    if found and found.kind == "directory" and found.mode == mode:
        return None
    before = None if found is None else f"{found.kind} {found.mode:04o}"
    return Change(kind="directory", target=path, before=before, after=f"directory {mode:04o}", mode=mode)


def _found(facts: Facts, path: str) -> File | None:
    """What stands at a path; of a leftover, which nobody could ask for by name, only the listing of its folder tells."""
    folder, name = posixpath.split(path)
    if path not in facts.files and name in facts.directories.get(folder, ()):
        return File(sha256="(content not read)")
    return facts.files.get(path)


def _file(found: File | None, wanted: DesiredFile) -> Change | None:
    if found is not None and found.kind == "directory":
        raise NodeError(f"{wanted.path} is a directory on the node, where a file shall be; look at what it holds, and move it away")
    after = wanted.text if wanted.content is None else _digest(wanted.content)
    before = _content(found)
    if found is None and after is None:
        return None
    if found is not None and _same(found, wanted):
        if found.mode == wanted.mode:
            return None
        before = f"(mode {found.mode:04o})\n{before}"
    return Change(
        kind="file",
        target=wanted.path,
        before=before,
        after=after,
        mode=wanted.mode,
        content=wanted.content,
        restarts=wanted.restarts,
        reboot=wanted.reboot,
        secret=wanted.secret,
    )


def _same(found: File, wanted: DesiredFile) -> bool:
    """Whether the content is right; of a secret or binary file only the digest was read."""
    if found.kind != "file":
        return False
    if found.text is not None and wanted.text is not None:
        return found.text == wanted.text
    content = wanted.text.encode() if wanted.text is not None else wanted.content
    return content is not None and (found.sha256 or _digest((found.text or "").encode())) == _digest(content)


def _digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


def _content(found: File | None) -> str | None:
    if found is None:
        return None
    if found.kind != "file":
        return f"({found.kind})"
    return found.text if found.text is not None else found.sha256


def _link(found: File | None, path: str, target: str) -> Change | None:
    if found and found.kind == "link" and found.link == target:
        return None
    return Change(kind="link", target=path, before=None if found is None else found.link or f"({found.kind})", after=target)


def _module(facts: Facts, name: str) -> Change | None:
    # A container has the modules of its machine, and can load none.
    return None if facts.modules.get(name) or facts.container else Change(kind="module", target=name, after="loaded", scope="kernel")


def _addresses(facts: Facts, name: str, unwanted: frozenset[str]) -> list[Change]:
    found = facts.interfaces[name].addresses if name in facts.interfaces else ()
    return [
        Change(kind="address", target=f"{name} {address}", before=address) for address in found if address.partition("/")[0] in unwanted
    ]


def _sysctls(facts: Facts, wanted: tuple[DesiredSysctl, ...], *, coming: t.Collection[str]) -> tuple[list[Change], tuple[str, ...]]:
    """``coming`` are the modules that will have been loaded by then."""
    changes, notes = [], []
    for sysctl in wanted:
        found = facts.sysctls.get(sysctl.key)
        if found is not None and found.value.split() == sysctl.value.split():
            continue
        if found.settable if found is not None else sysctl.module in coming:
            before = found.value if found is not None else "absent"
            changes.append(Change(kind="sysctl", target=sysctl.key, before=before, after=sysctl.value))
        else:
            # A container shares these with its machine, or has no such key: the drop-in says what is wanted,
            # and neither "changed" nor "ok" would be true.
            value = "absent" if found is None else found.value
            notes.append(f"sysctl {sysctl.key} is {value} and not settable here; the drop-in holds {sysctl.value}")
    return changes, tuple(notes)


def _rules(found: Rules, table: str, wanted: rules.DesiredRules) -> Change | None:
    lines = rules.plan_lines(found, wanted)
    if not lines:
        return None
    return Change(kind="rules", target=table, before=rules.text(found), after=rules.text(rules_after(found, lines)), lines=lines)


def _fixed(found: Unit, wanted: DesiredUnit) -> str:
    if wanted.enabled is None or not found.fixed:
        return ""
    return f"unit {wanted.name} is {found.fixed}: it has nothing by which it could be enabled or disabled"


def _unit(found: Unit, wanted: DesiredUnit) -> Change | None:
    verbs = []
    if wanted.enabled is not None and wanted.enabled != found.enabled and not found.fixed:
        verbs.append("enable" if wanted.enabled else "disable")
    if wanted.active is not None and wanted.active != found.active:
        verbs.append("start" if wanted.active else "stop")
    if not verbs:
        return None
    before = f"{'enabled' if found.enabled else 'disabled'}, {'active' if found.active else 'inactive'}"
    return Change(kind="unit", target=wanted.name, before=before, after=", ".join(verbs))
