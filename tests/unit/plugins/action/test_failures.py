# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A failed run: one message, what had been done, files for a replay; and secrets in none of them."""

from __future__ import annotations

import json
import shlex
import typing as t

import pytest
from ansible.errors import AnsibleActionFail
from click.testing import CliRunner

from gpufleet.cli import main

SECRET = "hunter2-hunter2"
FILES = [{"path": "/etc/a", "content": "a\n"}, {"path": "/etc/token", "content": SECRET, "mode": "0600", "secret": True}]
MODULE = "gpufleet.vmss.converge"


def failed(carrier: t.Any, *subsystems: str, **given: t.Any) -> str:
    with pytest.raises(AnsibleActionFail) as caught:
        carrier.run(*subsystems, **given)
    return caught.value.message


def without_addresses(carrier: t.Any) -> t.Any:
    carrier.node.instance = None
    return carrier


def test_a_failed_run_leaves_facts_and_state_for_the_owner_alone(carrier: t.Any) -> None:
    message = failed(without_addresses(carrier), "alias_network")
    files = {path.name: path for path in carrier.failures.iterdir()}
    assert set(files) == {"node1-facts.json", "node1-state.json"}
    assert {path.stat().st_mode & 0o777 for path in files.values()} == {0o600}
    assert carrier.failures.stat().st_mode & 0o777 == 0o700
    assert message.startswith("alias_network: ") and "169.254.169.254" in message
    last = message.splitlines()[-1]
    assert last == f"Replay the plan with: gpufleet node plan --facts {files['node1-facts.json']} --state {files['node1-state.json']}"


def test_the_replay_command_comes_to_the_same_failure_without_the_node(carrier: t.Any) -> None:
    message = failed(without_addresses(carrier), "alias_network")
    _program, *arguments = shlex.split(message.splitlines()[-1].partition(": ")[2])
    replayed = CliRunner().invoke(main, arguments)
    assert replayed.exit_code == 1 and replayed.stderr.strip() == f"gpufleet-node: {message.splitlines()[0]}"


def test_the_default_folder_is_the_user_s(carrier: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(carrier.failures.parent))
    message = failed(without_addresses(carrier), "alias_network", failure_directory=None)
    assert f"{carrier.failures.parent}/.ansible/gpufleet/failures/node1-facts.json" in message


def test_a_folder_that_cannot_be_written_does_not_hide_the_failure(carrier: t.Any) -> None:
    carrier.failures.write_text("no folder", encoding="utf-8")
    first, last = failed(without_addresses(carrier), "alias_network").splitlines()
    assert first.startswith("alias_network: ") and "169.254.169.254" in first
    assert last.startswith(f"The facts for a replay of the plan cannot be saved in {carrier.failures} (File exists)")


def test_a_host_s_name_is_no_path(carrier: t.Any) -> None:
    failed(without_addresses(carrier), "alias_network", variables={"inventory_hostname": "../up/node1"})
    assert {path.name for path in carrier.failures.iterdir()} == {".._up_node1-facts.json", ".._up_node1-state.json"}


def test_what_was_done_before_a_failure_is_said(carrier: t.Any) -> None:
    carrier.node.failing = {("systemctl", "enable", "gpufleet-accounting.service")}
    message = failed(carrier, "custom", "traffic_accounting", variables={"custom_files": FILES})
    first, done, replay = message.splitlines()
    assert first.startswith("`systemctl enable gpufleet-accounting.service` ended with status 1")
    assert done.startswith("Done before that: custom: file /etc/a: create; custom: file /etc/token: create; ")
    assert "traffic_accounting: rules mangle" in done and replay.startswith("Replay the plan with: ")


def test_what_earlier_passes_did_is_said_too(carrier: t.Any) -> None:
    del carrier.node.packages["containernetworking-plugins"]
    carrier.node.failing = {("systemctl", "enable", "gpufleet-accounting.service")}
    carrier.node.packages.pop("iptables")
    message = failed(carrier, "custom", "alias_network", "traffic_accounting", variables={"custom_files": FILES})
    _first, done, _replay = message.splitlines()
    assert (
        done.index("custom: file /etc/a: create") < done.index("package containernetworking-plugins: install") < done.index("rules mangle")
    )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"failed": True, "msg": "MODULE FAILURE"}, "MODULE FAILURE"),
        ({"failed": True, "module_stderr": "sudo: a password is required"}, "sudo: a password is required"),
        ({"unreachable": True, "msg": "no route"}, "no route"),
        ({}, "the node program gave no answer"),
    ],
)
def test_an_answer_without_facts_is_a_message_without_files(carrier: t.Any, answer: dict[str, t.Any], said: str) -> None:
    carrier.answers[MODULE] = [answer]
    assert failed(carrier, "custom") == said
    assert not carrier.failures.exists()


def test_a_secret_goes_to_the_node_apart_from_the_state_and_comes_back_nowhere(carrier: t.Any) -> None:
    result = carrier.run("custom", variables={"custom_files": FILES})
    arguments = carrier.calls[0].arguments
    assert arguments["secrets"] == {"custom": {"custom_files/1/content": SECRET}}
    assert SECRET not in json.dumps(arguments["state"])
    assert carrier.node.text("/etc/token") == SECRET
    assert SECRET not in json.dumps(result) and "(secret)" in json.dumps(result["diff"])
    # Also not when it is there already, or is taken away again.
    assert SECRET not in json.dumps(carrier.run("custom", variables={"custom_files": [*FILES[:1], {**FILES[1], "content": "other"}]}))
    assert SECRET not in json.dumps(carrier.run("custom", variables={"custom_files": FILES[:1]}))


def test_a_secret_is_not_in_what_a_failure_saves_or_says(carrier: t.Any) -> None:
    carrier.run("custom", variables={"custom_files": FILES})
    message = failed(without_addresses(carrier), "custom", "alias_network", variables={"custom_files": FILES})
    saved = "".join(path.read_text(encoding="utf-8") for path in carrier.failures.iterdir())
    assert "/etc/token" in saved and SECRET not in saved + message


def test_a_secret_of_the_wrong_kind_is_not_shown(carrier: t.Any) -> None:
    wrong = [{"path": "/etc/token", "content": {"key": SECRET}, "secret": True}]
    assert SECRET not in failed(carrier, "custom", variables={"custom_files": wrong})
