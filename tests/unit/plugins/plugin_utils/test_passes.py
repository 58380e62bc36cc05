# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several passes as one result."""

from __future__ import annotations

import typing as t

from ansible_collections.gpufleet.vmss.plugins.plugin_utils import passes

Result = dict[str, t.Any]


def section(changes: t.Sequence[str] = (), *, needs: t.Sequence[str] = (), notes: t.Sequence[str] = ()) -> Result:
    return {"changed": bool(changes), "changes": list(changes), "needs": list(needs), "waiting": [], "notes": list(notes)}


def one_pass(
    sections: dict[str, Result],
    *,
    restarts: t.Sequence[str] = (),
    packages: t.Sequence[str] = (),
    reboot: t.Sequence[str] = (),
    diff: t.Sequence[str] = (),
) -> Result:
    return {
        "changed": bool(restarts) or any(item["changed"] for item in sections.values()),
        "subsystems": sections,
        "diff": [{"before": "", "after": text} for text in diff],
        "restarts": list(restarts),
        "needs": {"packages": list(packages), "reboot": list(reboot)},
    }


FIRST = one_pass({"a": section(["a1"]), "b": section(needs=["package p: install"], notes=["old"])}, packages=["p"], diff=["a1", "p"])
SECOND = one_pass({"a": section(), "b": section(["b1"], notes=["new"])}, restarts=["x.service"], diff=["p", "b1"])


def test_changes_of_all_passes_are_joined_with_what_was_needed_in_between() -> None:
    merged = passes.merge([FIRST, SECOND])
    assert merged["subsystems"] == {
        "a": {"changed": True, "changes": ["a1"]},
        "b": {"changed": True, "changes": ["package p: install", "b1"], "notes": ["new"]},
    }
    assert merged["changed"] and merged["restarts"] == ["x.service"] and "needs" not in merged
    assert [entry["after"] for entry in merged["diff"]] == ["a1", "p", "b1"]


def test_what_the_last_pass_needs_stays_a_need_and_is_no_change() -> None:
    merged = passes.merge([one_pass({"b": section(needs=["package p: install"])}, packages=["p"], reboot=["why"])])
    assert merged == {
        "changed": False,
        "subsystems": {"b": {"changed": False, "changes": []}},
        "needs": {"packages": ["p"], "reboot": ["why"]},
    }


def test_a_reboot_that_a_later_pass_no_longer_needs_is_not_reported() -> None:
    assert "needs" not in passes.merge([one_pass({"a": section(["a1"])}, reboot=["why"]), one_pass({"a": section()})])


def test_nothing_changed_is_short() -> None:
    assert passes.merge([one_pass({"a": section()})]) == {"changed": False, "subsystems": {"a": {"changed": False, "changes": []}}}


def test_an_owed_restart_alone_is_a_change() -> None:
    merged = passes.merge([one_pass({"a": section()}, restarts=["x.service"]), one_pass({"a": section()}, restarts=["x.service"])])
    assert merged["changed"] and merged["restarts"] == ["x.service"]


def test_what_was_made_by_a_failure_names_each_change_once_with_its_subsystem() -> None:
    assert passes.made([FIRST, SECOND, SECOND]) == ["a: a1", "b: package p: install", "b: b1"]
    assert passes.made([FIRST], needs_are_met=False) == ["a: a1"]
    assert passes.made([]) == []
