# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a wish to changes, kind by kind."""

from __future__ import annotations

import hashlib

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.desired import Desired, DesiredFile, DesiredSysctl, DesiredUnit, plan
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.facts.model import Facts, File, Sysctl, Unit
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.plan import diff, simulate
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.spec import NodeError

DIGEST = "sha256:" + hashlib.sha256(b"a").hexdigest()


@pytest.mark.parametrize(
    ("found", "wanted", "said", "before"),
    [
        (None, DesiredFile(path="/f", text="a"), "create", None),
        (File(text="a"), DesiredFile(path="/f", text="a"), None, None),
        (File(text="b"), DesiredFile(path="/f", text="a"), "change", "b"),
        (File(text="a", mode=0o600), DesiredFile(path="/f", text="a"), "change", "(mode 0600)\na"),
        (File(text="a", mode=0), DesiredFile(path="/f", text="a", mode=0), None, None),
        (File(kind="link", mode=0o777, link="x"), DesiredFile(path="/f", text="a"), "change", "(link)"),
        (File(sha256=DIGEST), DesiredFile(path="/f", text="a", secret=True), None, None),
        (File(sha256=DIGEST), DesiredFile(path="/f", text="b", secret=True), "change", DIGEST),
        (File(sha256=DIGEST), DesiredFile(path="/f", content=b"a"), None, None),
        (File(text="a"), DesiredFile(path="/f", content=b"a"), None, None),
        (File(text="a"), DesiredFile(path="/f", content=b"\xff"), "change", "a"),
        (File(text=""), DesiredFile(path="/f", text=""), None, None),
        (None, DesiredFile(path="/f", text=""), "create", None),
        (None, DesiredFile(path="/f"), None, None),
        (File(text="a"), DesiredFile(path="/f"), "remove", "a"),
        (File(kind="link", mode=0o777, link="x"), DesiredFile(path="/f"), "remove", "(link)"),
    ],
)
def test_files(found: File | None, wanted: DesiredFile, said: str | None, before: str | None) -> None:
    facts = Facts(files={"/f": found})
    changes = plan(facts, Desired(files=(wanted,))).changes
    assert [str(change) for change in changes] == ([f"file /f: {said}"] if said else [])
    assert not changes or changes[0].before == before
    assert plan(simulate(facts, changes), Desired(files=(wanted,))).changes == ()


def test_a_directory_where_a_file_shall_be_is_an_error() -> None:
    with pytest.raises(NodeError, match="/f is a directory on the node"):
        plan(Facts(files={"/f": File(kind="directory", mode=0o755)}), Desired(files=(DesiredFile(path="/f"),)))


def test_a_leftover_known_by_its_folder_alone_goes() -> None:
    facts = Facts(directories={"/d": ("old", "other")})
    wanted = Desired(files=(DesiredFile(path="/d/old"),))
    changes = plan(facts, wanted).changes
    assert [str(change) for change in changes] == ["file /d/old: remove"]
    after = simulate(facts, changes)
    assert after.directories == {"/d": ("other",)} and plan(after, wanted).changes == ()


@pytest.mark.parametrize(
    ("found", "wanted", "verbs", "notes"),
    [
        (Unit(), DesiredUnit(name="u", enabled=True, active=True), ["enable, start"], 0),
        (Unit(enabled=True), DesiredUnit(name="u", enabled=True, active=True), ["start"], 0),
        (Unit(enabled=True, active=True), DesiredUnit(name="u", enabled=False, active=False), ["disable, stop"], 0),
        (Unit(enabled=True, active=True), DesiredUnit(name="u"), [], 0),
        (Unit(fixed="static"), DesiredUnit(name="u", enabled=True), [], 1),
        (Unit(fixed="static"), DesiredUnit(name="u", enabled=False, active=True), ["start"], 1),
        (Unit(fixed="static"), DesiredUnit(name="u", active=False), [], 0),
    ],
)
def test_units(found: Unit, wanted: DesiredUnit, verbs: list[str], notes: int) -> None:
    facts = Facts(units={"u": found})
    planned = plan(facts, Desired(units=(wanted,)))
    assert ([change.after for change in planned.changes], len(planned.notes)) == (verbs, notes)
    assert plan(simulate(facts, planned.changes), Desired(units=(wanted,))).changes == ()


@pytest.mark.parametrize(
    ("found", "changes", "note"),
    [
        (Sysctl(value="1"), ["sysctl k: 1 -> 4 5"], ""),
        (Sysctl(value="4\t5"), [], ""),
        (Sysctl(value="4\t5", settable=False), [], ""),
        (Sysctl(value="1", settable=False), [], "sysctl k is 1 and not settable here; the drop-in holds 4 5"),
        (None, [], "sysctl k is absent and not settable here; the drop-in holds 4 5"),
    ],
)
def test_sysctls(found: Sysctl | None, changes: list[str], note: str) -> None:
    planned = plan(Facts(sysctls={"k": found}), Desired(sysctls=(DesiredSysctl(key="k", value="4 5"),)))
    assert [str(change) for change in planned.changes] == changes
    assert planned.notes == ((note,) if note else ())


def test_the_order_ends_units_first_and_starts_them_after_systemd_was_told() -> None:
    wanted = Desired(
        packages=("p",),
        directories={"/d": 0o755},
        files=(DesiredFile(path="/etc/systemd/system/old.service"), DesiredFile(path="/etc/systemd/system/new.service", text="n")),
        links={"/d/l": "t"},
        sysctls=(DesiredSysctl(key="k", value="1"),),
        units=(DesiredUnit(name="new.service", enabled=True, active=True), DesiredUnit(name="old.service", enabled=False, active=False)),
    )
    facts = Facts(
        files={"/etc/systemd/system/old.service": File(text="o")},
        sysctls={"k": Sysctl(value="0")},
        units={"old.service": Unit(enabled=True, active=True)},
    )
    assert [f"{change.kind} {change.target}" for change in plan(facts, wanted).changes] == [
        "unit old.service",
        "package p",
        "directory /d",
        "file /etc/systemd/system/old.service",
        "file /etc/systemd/system/new.service",
        "link /d/l",
        "sysctl k",
        "reload systemd",
        "unit new.service",
    ]


def test_a_unit_that_systemd_holds_in_an_old_form_is_read_again() -> None:
    wanted = Desired(units=(DesiredUnit(name="u", enabled=True),))
    changes = plan(Facts(units={"u": Unit(enabled=True, needs_reload=True)}), wanted).changes
    assert [change.kind for change in changes] == ["reload"]


def test_a_diff_ends_its_lines_and_hides_secrets() -> None:
    wanted = Desired(files=(DesiredFile(path="/a", text="x"), DesiredFile(path="/b", text="hunter2", secret=True)))
    entries = diff("s", plan(Facts(files={"/b": File(sha256=DIGEST)}), wanted).changes)
    assert [(entry["before"], entry["after"]) for entry in entries] == [("", "x\n"), ("(secret)\n", "(secret)\n")]
    assert entries[0]["before_header"] == "s: file /a"
