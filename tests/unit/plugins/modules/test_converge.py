# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module on a node of a temporary tree: what it takes, and what it answers when all goes well and when not."""

from __future__ import annotations

import json
import pathlib
import typing as t

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufleet.vmss.plugins.module_utils.node import document
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.facts.model import Facts
from ansible_collections.gpufleet.vmss.plugins.modules import converge as module
from node_fakes import TEXTS, FakeNode

SECRET = "hunter2-hunter2"
FILES = [{"path": "/etc/token", "content": SECRET, "mode": "0600", "secret": True}]


def state(*names: str, **variables: t.Any) -> tuple[document.Document, dict[str, t.Any]]:
    """A state document and its secrets, as the action plugin sends them."""
    return document.without_secrets(document.build(names, variables, lambda name, parameters: TEXTS.get(name, {})))


class Module:
    """Runs the module on ``node`` as Ansible starts it."""

    def __init__(self, node: FakeNode, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.node = node
        self._capsys = capsys
        monkeypatch.setattr(module, "System", lambda root: node)

    def __call__(self, *, check: bool = False, **arguments: t.Any) -> dict[str, t.Any]:
        with patch_module_args({"_ansible_check_mode": check, **arguments}), pytest.raises(SystemExit) as end:
            module.main()
        answer: dict[str, t.Any] = json.loads(self._capsys.readouterr().out)
        assert (end.value.code == 0) == (not answer.get("failed"))
        return answer


@pytest.fixture
def run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Module:
    return Module(FakeNode(tmp_path / "root"), monkeypatch, capsys)


def test_without_a_state_it_says_how_it_is_called(run: Module) -> None:
    answer = run(subsystems=["custom"])
    assert answer["failed"] and "call gpufleet.vmss.converge as a task" in answer["msg"]


def test_the_answer_is_that_of_the_node_program(run: Module) -> None:
    public, secrets = state("traffic_accounting")
    answer = run(subsystems=["traffic_accounting"], state=public, secrets=secrets)
    assert answer["changed"] and answer["subsystems"]["traffic_accounting"]["changes"]
    assert {"diff", "restarts", "needs"} <= set(answer)
    assert not run(subsystems=["traffic_accounting"], state=public)["changed"]


def test_check_mode_changes_nothing_and_predicts(run: Module) -> None:
    public, _secrets = state("traffic_accounting")
    before = run.node.state()
    predicted = run(subsystems=["traffic_accounting"], state=public, check=True)
    assert predicted["changed"] and run.node.state() == before
    assert run(subsystems=["traffic_accounting"], state=public)["subsystems"] == predicted["subsystems"]


def test_secrets_are_joined_to_the_state_and_answered_nowhere(run: Module) -> None:
    public, secrets = state("custom", custom_files=FILES)
    answer = run(subsystems=["custom"], state=public, secrets=secrets)
    assert run.node.text("/etc/token") == SECRET
    assert SECRET not in json.dumps(answer)
    assert "file /etc/token: create" in answer["subsystems"]["custom"]["changes"]


def test_a_plan_that_cannot_be_made_answers_with_facts_for_a_replay(run: Module) -> None:
    run.node.instance = None
    public, _secrets = state("alias_network")
    before = run.node.state()
    answer = run(subsystems=["alias_network"], state=public)
    assert answer["failed"] and answer["msg"].startswith("alias_network: ") and answer["done"] == []
    assert Facts.from_document(answer["facts"]).interfaces and run.node.state() == before


def test_a_failure_in_the_middle_answers_with_what_was_done(run: Module) -> None:
    run.node.failing = {("systemctl", "enable", "gpufleet-accounting.service")}
    public, _secrets = state("traffic_accounting")
    answer = run(subsystems=["traffic_accounting"], state=public)
    assert answer["failed"] and "it does not want to" in answer["msg"]
    assert any("rules mangle" in change for change in answer["done"])


def test_a_failure_holds_no_secret(run: Module) -> None:
    public, secrets = state("custom", "alias_network", custom_files=FILES)
    assert not run(subsystems=["custom", "alias_network"], state=public, secrets=secrets).get("failed")
    run.node.instance = None
    answer = run(subsystems=["custom", "alias_network"], state=public, secrets=secrets)
    assert answer["failed"] and "/etc/token" in answer["facts"]["files"] and SECRET not in json.dumps(answer)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"format": 99, "subsystems": {}}, "format 99"),
        ({"format": 1, "subsystems": {"custm": {"parameters": {}}}}, "did you mean custom?"),
        ({"format": 1, "subsystems": {"custom": {"parameters": {"custom_files": 1}}}}, "custom_files must be of type list"),
    ],
)
def test_a_document_of_another_release_is_one_message(run: Module, document: dict[str, t.Any], said: str) -> None:
    answer = run(subsystems=["custom"], state=document)
    assert answer["failed"] and said in answer["msg"] and "facts" not in answer


def test_an_unknown_argument_is_refused(run: Module) -> None:
    assert "Unsupported parameters" in run(subsystems=["custom"], states={})["msg"]
