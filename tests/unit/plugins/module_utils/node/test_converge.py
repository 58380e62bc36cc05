# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whole runs on a node of a temporary tree: first, second, check, killed anywhere, waiting for another."""

from __future__ import annotations

import fcntl
import json
import pathlib
import typing as t

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.node import cli, converge, document, registry, system
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.spec import NodeError
from node_fakes import TEXTS, FakeNode, FakeUnit, Killed

NAMES = [subsystem.name for subsystem in registry.SUBSYSTEMS]
UNIT = "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n"
VARIABLES: dict[str, t.Any] = {
    "custom_files": [
        {"path": "/etc/example.conf", "content": "a=1\n", "restarts": ["example.service"]},
        {"path": "/etc/systemd/system/other.service.d/x.conf", "content": "[Service]\nNice=5\n", "restarts": ["other.service"]},
        {"path": "/etc/token", "content": "hunter2", "mode": "0600", "secret": True},
    ],
    "custom_units": [{"name": "example.service", "content": UNIT, "enabled": True, "state": "started"}],
    "custom_sysctls": {"net.core.somaxconn": 8192},
    "custom_modprobe": {"nvidia": ["options nvidia NVreg_A=1"]},
}


def state(names: t.Sequence[str] = NAMES, **variables: t.Any) -> document.Document:
    own = {key: value for key, value in {**VARIABLES, **variables}.items() if any(key.startswith(f"{name}_") for name in names)}
    return document.build(names, own, lambda name, parameters: TEXTS.get(name, {}))


@pytest.fixture
def prepared(node: FakeNode) -> FakeNode:
    return prepare(node)


def prepare(node: FakeNode) -> FakeNode:
    """A node with a unit of the image running, and a driver loaded."""
    node._place("/etc/systemd/system/other.service", UNIT)
    node.units["other.service"] = FakeUnit(active=True, loaded=UNIT)
    node.path("/sys/module/nvidia").mkdir(parents=True)
    return node


def test_first_run_changes_and_the_second_neither_changes_nor_writes(prepared: FakeNode) -> None:
    first = converge.converge(state(), prepared, check=False)
    assert first["changed"] and all(section["changed"] for section in first["subsystems"].values())
    before, steps = prepared.state(), len(prepared.steps)
    second = converge.converge(state(), prepared, check=False)
    assert not second["changed"] and not any(section["changed"] for section in second["subsystems"].values())
    assert prepared.steps[steps:] == [] and prepared.state() == before
    assert second["needs"]["reboot"] == first["needs"]["reboot"] != []


def test_check_mode_writes_nothing_and_says_what_the_run_then_does(prepared: FakeNode) -> None:
    before = prepared.state()
    predicted = converge.converge(state(), prepared, check=True)
    assert prepared.state() == before and prepared.steps == []
    made = converge.converge(state(), prepared, check=False)
    assert predicted["subsystems"] == made["subsystems"] and predicted["restarts"] == made["restarts"] and predicted["diff"] == made["diff"]


def test_check_mode_of_a_bare_node_covers_what_follows_the_packages(prepared: FakeNode) -> None:
    prepared.packages = {}
    predicted = converge.converge(state(), prepared, check=True)
    first = converge.converge(state(), prepared, check=False)
    assert first["needs"]["packages"] == predicted["needs"]["packages"] == ["iptables", "containernetworking-plugins"]
    assert not first["subsystems"]["traffic_accounting"]["changed"] and first["subsystems"]["traffic_accounting"]["waiting"]
    prepared.packages = dict.fromkeys(first["needs"]["packages"], "1")
    second = converge.converge(state(), prepared, check=False)
    for name, section in predicted["subsystems"].items():
        packages = [change for change in section["changes"] if change.startswith("package ")]
        assert section["changes"] == packages + first["subsystems"][name]["changes"] + second["subsystems"][name]["changes"]
    assert not converge.converge(state(), prepared, check=True)["changed"]


def test_what_is_absent_is_taken_back(prepared: FakeNode) -> None:
    names = ["alias_network", "traffic_accounting"]
    before, tables = prepared.tree(), dict(prepared.tables)
    converge.converge(state(names), prepared, check=False)
    assert prepared.tables != tables
    converge.converge(state(names, alias_network_state="absent", traffic_accounting_state="absent"), prepared, check=False)
    assert prepared.tables == tables
    left = {path for path, item in prepared.tree().items() if before.get(path) != item and not item.startswith("directory")}
    running = {path for path in left if path.startswith("/proc/sys/")}
    assert left - running == {f"/etc/gpufleet/state.d/{name}.json" for name in names}


def _instants(tmp_path: pathlib.Path) -> int:
    node = prepare(FakeNode(tmp_path / "counted"))
    converge.converge(state(), node, check=False)
    return 2 * len(node.steps)


def test_killed_at_any_instant_the_next_run_ends_in_the_same_state(tmp_path: pathlib.Path) -> None:
    whole = prepare(FakeNode(tmp_path / "whole"))
    converge.converge(state(), whole, check=False)
    count = _instants(tmp_path)
    assert count > 60
    for instant in range(count):
        node = prepare(FakeNode(tmp_path / f"killed-{instant}"))
        node.kill_at = instant
        with pytest.raises(Killed):
            converge.converge(state(), node, check=False)
        converge.converge(state(), node, check=False)
        assert node.state() == whole.state(), f"killed at {instant}: {node.steps}"
        assert not converge.converge(state(), node, check=True)["changed"]
        for unit, path in (("example.service", "/etc/example.conf"), ("other.service", "/etc/systemd/system/other.service.d/x.conf")):
            assert json.loads(node.restarted_with[unit])[path] == node.tree()[path], f"{unit} runs with an old {path}, killed at {instant}"
        told = [number for number, step in enumerate(node.steps) if step == "systemctl daemon-reload"]
        written = [number for number, step in enumerate(node.steps) if step.startswith("write /etc/systemd/system/")]
        assert told[-1] > written[-1], f"systemd was not told, killed at {instant}"


def test_a_restart_that_fails_stays_owed_until_it_is_done(prepared: FakeNode) -> None:
    prepared.failing = {("systemctl", "restart", "other.service")}
    with pytest.raises(
        converge.Failed, match=r"systemctl restart other.service` ended with status 1 and said: it does not want to"
    ) as failed:
        converge.converge(state(), prepared, check=False)
    assert any(step.endswith("/etc/example.conf: create") for step in failed.value.done) and failed.value.facts is not None
    assert not [step for step in failed.value.done if "other.service" in step and step.startswith("restart")]
    predicted = converge.converge(state(), prepared, check=True)
    assert predicted["restarts"] == ["other.service"] and predicted["changed"]
    prepared.failing = set()
    assert converge.converge(state(), prepared, check=False)["restarts"] == ["other.service"]
    assert not converge.converge(state(), prepared, check=False)["changed"]


def test_a_failure_names_what_was_done_and_stops_there(prepared: FakeNode) -> None:
    prepared.failing = {("iptables-restore", "--noflush", "-w", "60")}
    with pytest.raises(converge.Failed) as failed:
        converge.converge(state(), prepared, check=False)
    assert failed.value.done[-1].startswith("alias_network: sysctl") and "iptables-restore" in str(failed.value)
    assert prepared.steps[-1] == "sysctl net.netfilter.nf_conntrack_max", "nothing after the failure"


def test_a_unit_that_the_run_starts_is_not_restarted_besides(prepared: FakeNode) -> None:
    assert converge.converge(state(), prepared, check=False)["restarts"] == ["other.service"]


def test_a_reboot_stays_due_until_the_node_has_rebooted(prepared: FakeNode) -> None:
    reason = "options of the loaded module nvidia changed (/etc/modprobe.d/gpufleet-custom-nvidia.conf)"
    assert converge.converge(state(), prepared, check=False)["needs"]["reboot"] == [reason]
    converge.converge(state(custom_files=[{"path": "/etc/b", "content": "b"}]), prepared, check=False)
    assert converge.converge(state(), prepared, check=True)["needs"]["reboot"] == [reason]
    prepared.path("/run/gpufleet/pending.json").unlink()  # /run is empty after a reboot
    assert converge.converge(state(), prepared, check=True)["needs"]["reboot"] == []


def test_no_secret_is_in_a_result_a_diff_or_saved_facts(prepared: FakeNode) -> None:
    results = [converge.converge(state(), prepared, check=check) for check in (True, False)]
    prepared.path("/etc/token").write_text("hunter2 of before")
    prepared.failing = {("systemctl", "restart", "example.service")}
    with pytest.raises(converge.Failed) as failed:
        converge.converge(
            state(custom_files=[*VARIABLES["custom_files"][1:], {**VARIABLES["custom_files"][0], "content": "b"}]), prepared, check=False
        )
    assert failed.value.facts is not None
    shown = json.dumps([results, failed.value.facts.to_document(), failed.value.done, str(failed.value)])
    assert "hunter2" not in shown and "(secret)" in shown
    assert prepared.path("/etc/token").read_text() == "hunter2"


@pytest.mark.parametrize(
    ("names", "variables", "said"),
    [
        (
            ["custom", "alias_network"],
            {"custom_sysctls": {"net.ipv4.ip_forward": 0}},
            "sysctl net.ipv4.ip_forward shall be 0 by custom (custom_sysctls) and 1 by alias_network",
        ),
        (
            ["custom"],
            {"custom_files": [{"path": "/etc/systemd/system/example.service", "content": ""}]},
            "/etc/systemd/system/example.service is wanted by custom (custom_files) and by custom (custom_units)",
        ),
    ],
)
def test_two_owners_are_refused_before_the_first_change(
    names: list[str], variables: dict[str, t.Any], said: str, prepared: FakeNode
) -> None:
    with pytest.raises(converge.Failed) as failed:
        converge.converge(state(names, **variables), prepared, check=False)
    assert said in str(failed.value) and prepared.steps == []


def test_a_directory_in_the_place_of_a_file_is_not_removed(prepared: FakeNode) -> None:
    prepared.path("/etc/example.conf").mkdir()
    with pytest.raises(converge.Failed, match=r"custom: /etc/example.conf is a directory on the node"):
        converge.converge(state(), prepared, check=False)
    assert prepared.steps == []


def test_waiting_for_another_run_has_a_limit(prepared: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "LOCK_LIMIT_SECONDS", 0.0)
    prepared.path("/run/gpufleet").mkdir(parents=True)
    with prepared.path(system.LOCK).open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(converge.Failed, match="another converge of this node is under way"):
            converge.converge(state(), prepared, check=False)
        assert not [step for step in prepared.steps if not step.startswith("directory /run/gpufleet")]
        assert converge.converge(state(), prepared, check=True)["changed"], "check mode needs no lock"
    assert converge.converge(state(), prepared, check=False)["changed"]


def test_what_another_run_did_meanwhile_is_not_done_twice(prepared: FakeNode, monkeypatch: pytest.MonkeyPatch) -> None:
    other = FakeNode.locked

    def late(self: FakeNode) -> t.Any:
        monkeypatch.setattr(FakeNode, "locked", other)
        converge.converge(state(), prepared, check=False)
        prepared.steps.clear()
        return other(self)

    monkeypatch.setattr(FakeNode, "locked", late)
    assert not converge.converge(state(), prepared, check=False)["changed"]
    assert not [step for step in prepared.steps if "pending.json" not in step and step != "directory /run/gpufleet"]


def test_folders_are_open_to_readers_whatever_the_mask(prepared: FakeNode) -> None:
    import os

    mask = os.umask(0o077)
    try:
        converge.converge(state(), prepared, check=False)
        assert os.umask(0o077) == 0o077
    finally:
        os.umask(mask)
    assert prepared.path("/etc/cni/net.d").stat().st_mode & 0o7777 == 0o755
    assert prepared.path("/etc/gpufleet/state.d").stat().st_mode & 0o7777 == 0o700


def test_the_stored_state_is_the_document_that_was_sent(prepared: FakeNode) -> None:
    converge.converge(state(), prepared, check=False)
    assert converge.stored_document(prepared) == state()
    assert converge.stored_document(prepared, ["custom"]) == state(["custom"])
    assert prepared.path("/etc/gpufleet/state.d/custom.json").stat().st_mode & 0o777 == 0o600
    assert not converge.converge(converge.stored_document(prepared), prepared, check=True)["changed"]


@pytest.mark.parametrize(
    ("only", "said"), [((), "this node has never been converged"), (("custom",), "custom has never been converged here")]
)
def test_a_node_without_state_says_so(only: tuple[str, ...], said: str, node: FakeNode) -> None:
    with pytest.raises(NodeError, match=said):
        converge.stored_document(node, only)


def test_another_format_is_refused(node: FakeNode) -> None:
    with pytest.raises(NodeError, match="use program and document of one release"):
        converge.converge({**state(), "format": 99}, node, check=True)


def test_a_root_is_for_check_mode_only(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--root", str(tmp_path), "converge"]) == 1
    assert "works with --check only" in capsys.readouterr().err


def test_a_plan_is_replayed_from_files(prepared: FakeNode, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ansible_collections.gpufleet.vmss.plugins.module_utils.node.facts import read

    facts = read.read(prepared, converge.reads(state()))
    (tmp_path / "facts.json").write_text(json.dumps(facts.to_document()))
    (tmp_path / "state.json").write_text(json.dumps(state()))
    assert cli.main(["plan", "--facts", str(tmp_path / "facts.json"), "--state", str(tmp_path / "state.json")]) == 0
    assert json.loads(capsys.readouterr().out) == converge.converge(state(), prepared, check=True)
    assert cli.main(["plan", "--facts", str(tmp_path / "none.json"), "--state", str(tmp_path / "state.json")]) == 1
    assert "none.json cannot be used" in capsys.readouterr().err
