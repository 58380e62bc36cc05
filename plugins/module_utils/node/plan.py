# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes, and what they come to: the plan as a value, its simulation, its diff.

A Change is everything that apply needs, so ``changed``, check mode, the diff and the return
values all come from the same plan.
"""

from __future__ import annotations

import dataclasses
import posixpath
import typing as t

from .facts.model import Facts, File, Rules, Sysctl, Unit

Kind = t.Literal["package", "directory", "file", "link", "sysctl", "rules", "reload", "unit", "restart", "module", "address"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Change:
    """One step from what is to what shall be.

    ``target`` names what is changed: a path, a sysctl key, a unit, a package, an iptables table, a kernel module,
    an interface with one of its addresses ("eth0 10.1.0.5/16").
    ``before`` and ``after`` are its states as text; None is "absent".
    ``content`` holds the bytes of a file that is not text, ``mode`` the permission bits of a file or directory.
    ``lines`` are the lines of one iptables-restore call for a change of rules.
    ``restarts`` names units to restart once all is applied; ``reboot`` says why a reboot is due, empty for none.
    ``needs`` says that something outside the program must act first; later changes of the subsystem wait for it.
    ``scope`` is "kernel" for what a container shares with its machine.
    """

    kind: Kind
    target: str
    before: str | None = None
    after: str | None = None
    mode: int | None = None
    content: bytes | None = None
    lines: tuple[str, ...] = ()
    restarts: tuple[str, ...] = ()
    reboot: str = ""
    needs: t.Literal["", "package"] = ""
    scope: t.Literal["namespace", "kernel"] = "namespace"
    secret: bool = False

    def __str__(self) -> str:
        """One line for people; the same in check mode and after the change was made."""
        if self.kind == "package":
            return f"package {self.target}: install"
        if self.kind == "sysctl":
            return f"sysctl {self.target}: {self.before} -> {self.after}"
        if self.kind == "rules":
            return f"rules {self.target}: " + ", ".join(self.lines)
        if self.kind == "unit":
            return f"unit {self.target}: {self.after}"
        if self.kind == "link":
            return f"link {self.target} -> {self.after}" if self.after is not None else f"link {self.target}: remove"
        if self.kind == "module":
            return f"module {self.target}: load"
        if self.kind == "address":
            return f"address {self.target}: remove"
        if self.kind in ("file", "directory"):
            verb = "remove" if self.after is None else "create" if self.before is None else "change"
            return f"{self.kind} {self.target}: {verb}"
        return f"{self.kind} {self.target}"


Changes = tuple[Change, ...]


def simulate(facts: Facts, changes: Changes) -> Facts:
    """The facts as they will be after ``changes``, package installs included."""
    for change in changes:
        facts = dataclasses.replace(facts, **_EFFECTS[change.kind](facts, change))
    return facts


def _of_path(facts: Facts, change: Change) -> dict[str, t.Any]:
    folder, name = posixpath.split(change.target)
    directories = dict(facts.directories)
    if folder in directories:
        names = {*directories[folder], name} if change.after is not None else set(directories[folder]) - {name}
        directories[folder] = tuple(sorted(names))
    return {"files": {**facts.files, change.target: _file_after(change)}, "directories": directories}


def _of_sysctl(facts: Facts, change: Change) -> dict[str, t.Any]:
    return {"sysctls": {**facts.sysctls, change.target: Sysctl(value=change.after or "")}}


def _of_unit(facts: Facts, change: Change) -> dict[str, t.Any]:
    return {"units": {**facts.units, change.target: _unit_after(facts.units.get(change.target, Unit()), change.after or "")}}


def _of_package(facts: Facts, change: Change) -> dict[str, t.Any]:
    tables = facts.tables
    if change.target == "iptables":
        tables = {name: dataclasses.replace(table, available=True) for name, table in tables.items()}
    return {"packages": {**facts.packages, change.target: change.after}, "tables": tables}


def _of_rules(facts: Facts, change: Change) -> dict[str, t.Any]:
    return {"tables": {**facts.tables, change.target: rules_after(facts.tables.get(change.target, Rules()), change.lines)}}


def _of_reload(facts: Facts, change: Change) -> dict[str, t.Any]:
    return {"units": {name: dataclasses.replace(unit, needs_reload=False) for name, unit in facts.units.items()}, "pending_reload": False}


def _of_restart(facts: Facts, change: Change) -> dict[str, t.Any]:
    return {"pending_restarts": tuple(name for name in facts.pending_restarts if name != change.target)}


def _of_module(facts: Facts, change: Change) -> dict[str, t.Any]:
    return {"modules": {**facts.modules, change.target: True}}


def _of_address(facts: Facts, change: Change) -> dict[str, t.Any]:
    name, address = change.target.split(" ")
    interface = facts.interfaces[name]
    left = tuple(item for item in interface.addresses if item != address)
    return {"interfaces": {**facts.interfaces, name: dataclasses.replace(interface, addresses=left)}}


_EFFECTS: dict[Kind, t.Callable[[Facts, Change], dict[str, t.Any]]] = {
    "file": _of_path,
    "directory": _of_path,
    "link": _of_path,
    "sysctl": _of_sysctl,
    "unit": _of_unit,
    "package": _of_package,
    "rules": _of_rules,
    "reload": _of_reload,
    "restart": _of_restart,
    "module": _of_module,
    "address": _of_address,
}


def _file_after(change: Change) -> File | None:
    if change.after is None:
        return None
    if change.kind == "link":
        return File(kind="link", link=change.after, mode=0o777)
    if change.kind == "directory":
        return File(kind="directory", mode=0o755 if change.mode is None else change.mode)
    mode = 0o644 if change.mode is None else change.mode
    if change.content is not None:
        return File(mode=mode, sha256=change.after)
    return File(mode=mode, text=change.after)


def _unit_after(unit: Unit, after: str) -> Unit:
    words = {word.strip() for word in after.split(",")}
    if "enable" in words or "disable" in words:
        unit = dataclasses.replace(unit, enabled="enable" in words)
    if "start" in words or "stop" in words:
        unit = dataclasses.replace(unit, active="start" in words)
    return unit


def rules_after(table: Rules, lines: t.Iterable[str]) -> Rules:
    """What the lines of one ``iptables-restore --noflush`` call make of a table."""
    chains = {chain: list(rules) for chain, rules in table.chains.items()}
    for line in lines:
        if line.startswith(":"):
            chains[line[1:].split(" ", 1)[0]] = []
            continue
        verb, chain, *rest = line.split(" ", 2)
        rule = rest[0] if rest else ""
        if verb == "-A":
            chains.setdefault(chain, []).append(rule)
        elif verb == "-I":
            number, text = rule.split(" ", 1)
            chains.setdefault(chain, []).insert(int(number) - 1, text)
        elif verb == "-D" and rule.isdigit():
            del chains[chain][int(rule) - 1]
        elif verb == "-D":
            chains[chain].remove(rule)
        elif verb == "-F":
            chains[chain] = []
        elif verb == "-X":
            del chains[chain]
    return Rules(available=True, chains={chain: tuple(rules) for chain, rules in chains.items()})


def diff(subsystem: str, changes: Changes) -> list[dict[str, str]]:
    """Ansible's diff form for one subsystem's changes; secrets and binary content are named, not shown."""
    entries = []
    for change in changes:
        header = f"{subsystem}: {change.kind} {change.target}"
        entries.append(
            {
                "before_header": header,
                "after_header": header,
                "before": _shown(change, change.before),
                "after": _shown(change, change.after),
            }
        )
    return entries


def _shown(change: Change, text: str | None) -> str:
    if text is None:
        return ""
    if change.secret:
        return "(secret)\n"
    return text if text.endswith("\n") else text + "\n"
