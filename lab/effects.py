# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to happen to the nodes for one fleet to become the next: found by comparison, then carried out.

``steps`` is pure. ``perform`` runs inside the lab's mount namespace, in the order in which nothing is missed: what goes
first, then what changes, then what comes.
"""

from __future__ import annotations

import dataclasses
import typing as t

from . import access, fabric, node
from .fleet import Fleet, Instance
from .paths import Paths

Kind = t.Literal["remove", "stop", "rewire", "reimage", "restart", "start", "create"]
ORDER: tuple[Kind, ...] = t.get_args(Kind)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Step:
    """One thing to do to one node. ``before`` is the instance as it was, ``after`` as it shall be."""

    kind: Kind
    before: Instance | None = None
    after: Instance | None = None


def steps(before: Fleet, after: Fleet) -> tuple[Step, ...]:
    """In the order in which they are to be carried out. Stubs have no node, so nothing happens to them."""
    old = {item.vm_id: item for item in fabric.nodes(before)}
    found: list[Step] = []
    for item in fabric.nodes(after):
        earlier = old.pop(item.vm_id, None)
        if earlier is None:
            found.append(Step(kind="create", after=item))
        else:
            found += [Step(kind=kind, before=earlier, after=item) for kind in _kinds(earlier, item)]
    found += [Step(kind="remove", before=item) for item in old.values()]
    return tuple(sorted(found, key=lambda step: ORDER.index(step.kind)))


def _kinds(before: Instance, after: Instance) -> list[Kind]:
    kinds: list[Kind] = ["rewire"] if before.configurations != after.configurations else []
    if before.generation != after.generation:
        kinds.append("reimage")
    elif before.power == "running" != after.power:
        kinds.append("stop")
    elif before.power != "running" == after.power:
        kinds.append("start")
    elif before.boots != after.boots and after.power == "running":
        kinds.append("restart")
    return kinds


def perform(paths: Paths, before: Fleet, after: Fleet) -> None:
    """Bring the machine from one fleet to the next. Raises LabError with what could not be done."""
    todo = steps(before, after)
    if not todo:
        return
    for step in todo:
        if step.kind in ("remove", "stop") and step.before:
            node.stop(paths, step.before)
        if step.kind == "remove" and step.before:
            node.discard(paths, step.before)
            fabric.detach(paths, step.before)
        if step.kind == "rewire" and step.before and step.after:
            fabric.rewire(paths, step.before, step.after)
        if step.kind == "create" and step.after:
            fabric.attach(paths, after, step.after)
    # Sets of allowed addresses change at once for all, before a node that asks for its own starts.
    fabric.load_rules(paths, after)
    _boot(paths, after, todo)
    access.write(paths, after)


def _boot(paths: Paths, after: Fleet, todo: t.Iterable[Step]) -> None:
    started = []
    for step in todo:
        item = step.after
        if item is None or step.kind in ("stop", "rewire"):
            continue
        if step.kind == "reimage":
            node.stop(paths, item)
            node.discard(paths, item)
        if step.kind in ("reimage", "create"):
            node.prepare(paths, after, item)
        if item.power != "running":
            continue
        if step.kind in ("reimage", "create"):
            node.launch(paths, item)
        elif step.kind == "restart":
            node.restart(paths, item)
        else:
            node.resume(paths, item)
        started.append(item)
    node.wait(paths, started)
