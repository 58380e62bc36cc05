# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin with a real templar and task, over a node of a temporary tree in place of a connection."""

from __future__ import annotations

import collections
import dataclasses
import pathlib
import typing as t
from unittest import mock

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.block import Block
from ansible.playbook.play import Play
from ansible.playbook.task import Task
from ansible.template import Templar
from ansible_collections.gpufleet.vmss.plugins.action import converge as action
from ansible_collections.gpufleet.vmss.plugins.module_utils.node import converge, document, registry
from node_fakes import FakeNode

Result = dict[str, t.Any]
MODULE = "gpufleet.vmss.converge"
APT = "ansible.builtin.apt"
REBOOT = "ansible.builtin.reboot"


@dataclasses.dataclass
class Call:
    """One thing that the action did on the node."""

    name: str
    arguments: dict[str, t.Any]


class Carrier:
    """Carries the action's calls out on ``node``. What lies in ``answers`` by the name of a call is given in its place, once each."""

    def __init__(self, node: FakeNode, failures: pathlib.Path) -> None:
        self.node = node
        self.failures = failures
        self.calls: list[Call] = []
        self.answers: dict[str, list[Result]] = collections.defaultdict(list)

    @property
    def names(self) -> list[str]:
        return [call.name for call in self.calls]

    def run(
        self,
        *subsystems: str,
        config: dict[str, t.Any] | None = None,
        variables: dict[str, t.Any] | None = None,
        check: bool = False,
        heard: t.Sequence[str] | None = None,
        **arguments: t.Any,
    ) -> Result:
        """Run the action as a task with these variables; ``config`` is the form of the roles, without it the fused one.

        ``heard`` are the topics that the play's handlers listen to, by default those of all subsystems.
        """
        known = {"inventory_hostname": "node1", **(variables or {})}
        task = Task(block=Block(play=_play(heard)))
        task.args = {"subsystems": list(subsystems), "failure_directory": str(self.failures), **arguments}
        if config is not None:
            task.args["config"] = config
        task.check_mode = check
        task.async_val = 0
        loader = DataLoader()
        plugin = action.ActionModule(
            task=task,
            connection=mock.Mock(),
            play_context=mock.Mock(),
            loader=loader,
            templar=Templar(loader=loader, variables=known),
            shared_loader_obj=None,
        )
        with (
            mock.patch.object(plugin, "_execute_module", lambda **given: self._execute(check=check, **given)),
            mock.patch.object(plugin._shared_loader_obj.action_loader, "get", self._reboot_action),
        ):
            return plugin.run(task_vars=known)

    def _execute(self, *, check: bool, module_name: str, module_args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> Result:
        self.calls.append(Call(module_name, module_args))
        if self.answers[module_name]:
            return self.answers[module_name].pop(0)
        if module_name == APT:
            self.node.packages.update(dict.fromkeys(module_args["name"], "1"))
            return {"changed": True}
        assert module_name == MODULE and set(module_args) == {"subsystems", "state", "secrets"}
        try:
            return converge.converge(document.with_secrets(module_args["state"], module_args["secrets"]), self.node, check=check)
        except converge.Failed as error:
            return {"failed": True, "msg": str(error), "done": list(error.done), "facts": error.facts and error.facts.to_document()}

    def _reboot_action(self, name: str, *, task: Task, **_given: t.Any) -> mock.Mock:
        """What a reboot leaves: all under /run is gone."""
        assert name == REBOOT

        def reboot(task_vars: dict[str, t.Any]) -> Result:
            self.calls.append(Call(REBOOT, task.args))
            if self.answers[REBOOT]:
                return self.answers[REBOOT].pop(0)
            self.node.path("/run/gpufleet/pending.json").unlink()
            return {"changed": True, "rebooted": True}

        return mock.Mock(run=reboot)


def _play(heard: t.Sequence[str] | None) -> Play:
    topics = [f"gpufleet {subsystem.name} changed" for subsystem in registry.SUBSYSTEMS] if heard is None else heard
    handlers = [{"name": f"Handler {number}", "ansible.builtin.meta": "noop", "listen": topic} for number, topic in enumerate(topics)]
    return Play.load({"name": "A play", "hosts": "all", "gather_facts": False, "handlers": handlers}, loader=DataLoader())


@pytest.fixture
def carrier(tmp_path: pathlib.Path) -> Carrier:
    return Carrier(FakeNode(tmp_path / "root"), tmp_path / "failures")
