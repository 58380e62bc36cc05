# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carrying out a plan: the only place that changes a node."""

from __future__ import annotations

import typing as t

from . import rules
from .facts.read import PENDING
from .plan import Change
from .spec import NodeError
from .system import System


def apply(system: System, change: Change) -> None:
    """Carry out one change. Raises NodeError with the tool's own words when it cannot be done."""
    if change.kind == "file":
        if change.after is None:
            system.remove(change.target)
        else:
            content = change.after.encode() if change.content is None else change.content
            system.write(change.target, content, mode=change.mode or 0o644)
    elif change.kind == "directory":
        system.directory(change.target, mode=change.mode or 0o755)
    elif change.kind == "link":
        system.link(change.target, change.after or "")
    elif change.kind == "sysctl":
        _set_sysctl(system, change)
    elif change.kind == "rules":
        _run(system, ["iptables-restore", "--noflush", "-w", "60"], stdin=rules.restore_input(change.target, change.lines))
    elif change.kind == "reload":
        _run(system, ["systemctl", "daemon-reload"])
    elif change.kind == "unit":
        for verb in (change.after or "").split(", "):
            _run(system, ["systemctl", verb, change.target])
    elif change.kind == "restart":
        _run(system, ["systemctl", "restart", change.target])
    else:
        raise NodeError(f"a change of kind {change.kind} is not carried out on the node itself")


def remember(system: System, restarts: t.Iterable[str], reboot: t.Iterable[str]) -> None:
    """Write down what is still owed, so that a run that is killed here is finished by the next one.

    The file lies under /run: a reboot settles both, and clears it.
    """
    owed = {"restarts": sorted(set(restarts)), "reboot": sorted(set(reboot))}
    if any(owed.values()):
        system.write_json(PENDING, owed)
    else:
        system.remove(PENDING)


def _set_sysctl(system: System, change: Change) -> None:
    try:
        system.set_sysctl(change.target, change.after or "")
    except OSError as error:
        raise NodeError(f"sysctl {change.target} cannot be set to {change.after} ({error.strerror}); check the value") from error


def _run(system: System, argv: list[str], *, stdin: str = "") -> None:
    done = system.run(argv, stdin=stdin)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip() or "nothing"
        raise NodeError(f"`{' '.join(argv)}` ended with status {done.returncode} and said: {said}")
