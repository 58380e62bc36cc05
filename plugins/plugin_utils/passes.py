# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several passes of the node program as one result."""

from __future__ import annotations

import typing as t

Result = dict[str, t.Any]


def merge(passes: t.Sequence[Result]) -> Result:
    """The union of what every pass changed, in order; needs and notes as the last pass leaves them.

    What a pass needed (a package) counts as changed, since a later pass saw it fulfilled: a real run then
    reports the same changes that check mode predicted.
    """
    last = passes[-1]
    sections: dict[str, t.Any] = {}
    for number, one in enumerate(passes):
        for name, part in one["subsystems"].items():
            section = sections.setdefault(name, {"changed": False, "changes": [], "notes": []})
            fulfilled = part["needs"] if number < len(passes) - 1 else []
            section["changes"] += [change for change in (*part["changes"], *fulfilled) if change not in section["changes"]]
            section["changed"] = bool(section["changes"])
            section["notes"] = part["notes"]
    restarts = list(dict.fromkeys(unit for one in passes for unit in one["restarts"]))
    result = {
        "changed": bool(restarts) or any(section["changed"] for section in sections.values()),
        "subsystems": sections,
        "diff": _unique([entry for one in passes for entry in one["diff"]]),
        "restarts": restarts,
        "needs": {kind: needed for kind, needed in last["needs"].items() if needed},
    }
    # People read this: what is empty is left out.
    for section in sections.values():
        if not section["notes"]:
            del section["notes"]
    return {key: value for key, value in result.items() if value or key == "changed"}


def made(passes: t.Sequence[Result], *, needs_are_met: bool = True) -> list[str]:
    """What these passes changed, for the message of a failure: each change once, with its subsystem.

    What a pass needed came after it; of the last one that is so only with ``needs_are_met``.
    """
    changes: dict[str, None] = {}
    for number, one in enumerate(passes):
        met = needs_are_met or number < len(passes) - 1
        for name, part in one["subsystems"].items():
            for change in (*part["changes"], *(part["needs"] if met else ())):
                changes[f"{name}: {change}"] = None
    return list(changes)


def _unique(entries: list[dict[str, str]]) -> list[dict[str, str]]:
    kept: list[dict[str, str]] = []
    for entry in entries:
        if entry not in kept:
            kept.append(entry)
    return kept
