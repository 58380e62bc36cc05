# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carrying out a plan: the only place that changes a node."""

from __future__ import annotations

import typing as t

from . import rules
from .facts.read import PENDING
from .plan import Change, Kind
from .spec import NodeError
from .system import System


def apply(system: System, change: Change) -> None:
    """Carry out one change. Raises NodeError with the tool's own words when it cannot be done."""
    if change.kind not in _HOW:
        raise NodeError(f"a change of kind {change.kind} is not carried out on the node itself")
    _HOW[change.kind](system, change)


def _file(system: System, change: Change) -> None:
    if change.after is None:
        system.remove(change.target)
        return
    content = change.after.encode() if change.content is None else change.content
    system.write(change.target, content, mode=0o644 if change.mode is None else change.mode)


def _directory(system: System, change: Change) -> None:
    system.directory(change.target, mode=0o755 if change.mode is None else change.mode)


def _link(system: System, change: Change) -> None:
    system.link(change.target, change.after or "")


def _rules(system: System, change: Change) -> None:
    _run(system, ["iptables-restore", "--noflush", "-w", "60"], stdin=rules.restore_input(change.target, change.lines))


def _unit(system: System, change: Change) -> None:
    for verb in (change.after or "").split(", "):
        _run(system, ["systemctl", verb, change.target])


def _reload(system: System, change: Change) -> None:
    _run(system, ["systemctl", "daemon-reload"])


def _restart(system: System, change: Change) -> None:
    _run(system, ["systemctl", "restart", change.target])


def remember(system: System, restarts: t.Iterable[str], reboot: t.Iterable[str], *, reload: bool) -> None:
    """Write down what is still owed, so that a run that is killed here is finished by the next one.

    The file lies under /run: a reboot settles all of it, and clears it.
    """
    owed = {"restarts": sorted(set(restarts)), "reboot": sorted(set(reboot)), "reload": reload}
    if any(owed.values()):
        system.write_json(PENDING, owed)
    else:
        system.remove(PENDING)


def _sysctl(system: System, change: Change) -> None:
    try:
        system.set_sysctl(change.target, change.after or "")
    except OSError as error:
        raise NodeError(f"sysctl {change.target} cannot be set to {change.after} ({error.strerror}); check the value") from error


def _module(system: System, change: Change) -> None:
    _run(system, ["modprobe", change.target])


def _address(system: System, change: Change) -> None:
    name, address = change.target.split(" ")
    _run(system, ["ip", "address", "delete", address, "dev", name])


def _run(system: System, argv: list[str], *, stdin: str = "") -> None:
    done = system.run(argv, stdin=stdin)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip() or "nothing"
        raise NodeError(f"`{' '.join(argv)}` ended with status {done.returncode} and said: {said}")


_HOW: dict[Kind, t.Callable[[System, Change], None]] = {
    "file": _file,
    "directory": _directory,
    "link": _link,
    "sysctl": _sysctl,
    "rules": _rules,
    "reload": _reload,
    "unit": _unit,
    "restart": _restart,
    "module": _module,
    "address": _address,
}
