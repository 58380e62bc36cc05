# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of a converge: variables to one state document, a bounded loop of passes, one result."""

from __future__ import annotations

import json
import os
import pathlib
import shlex
import typing as t

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.gpufleet.vmss.plugins.module_utils.node import document, registry
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.spec import NodeError
from ansible_collections.gpufleet.vmss.plugins.plugin_utils import passes, tags, templates

# A package pass, a reboot pass, and one of each that these bring; more would be a plan that never settles.
PASSES = 4
APT_LOCK_LIMIT_SECONDS = 600
REBOOT_LIMIT_SECONDS = 1800
ARGUMENTS = frozenset({"subsystems", "config", "failure_directory"})
FAILURES = "~/.ansible/gpufleet/failures"


class ActionModule(ActionBase):
    """Runs in the worker of one host."""

    TRANSFERS_FILES = False
    _supports_check_mode = True
    _supports_async = False
    _supports_diff = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        super().run(tmp, task_vars)
        variables = task_vars or {}
        try:
            state = self._state(variables)
        except NodeError as error:
            raise AnsibleActionFail(str(error)) from error
        if not state["subsystems"]:
            return {"changed": False, "skipped": True, "skip_reason": "the tags of this run leave no subsystem", "subsystems": {}}
        return self._loop(state, variables)

    # The state document

    def _state(self, variables: dict[str, t.Any]) -> document.Document:
        arguments = self._task.args
        for name in arguments:
            if name not in ARGUMENTS:
                raise NodeError(f"gpufleet.vmss.converge has no argument {name}; known: {', '.join(sorted(ARGUMENTS))}")
        names = plain(arguments.get("subsystems"))
        if not isinstance(names, list) or not names:
            raise NodeError("gpufleet.vmss.converge: subsystems must be a list with at least one name")
        for name in names:
            registry.subsystem(name)
        config = arguments.get("config")
        if config is None:
            names = tags.narrow(names, plain(variables.get("ansible_run_tags") or []), plain(variables.get("ansible_skip_tags") or []))
            values = self._from_host(names, variables)
        else:
            values = plain(config)
            for name in names:
                known = {parameter.name for parameter in registry.subsystem(name).parameters}
                document.refuse_misspelt(name, variables, known)
        return document.build(names, values, templates.render)

    def _from_host(self, names: t.Iterable[str], variables: dict[str, t.Any]) -> dict[str, t.Any]:
        """The host's variables that belong to these subsystems, templated one by one; others with their prefixes are refused later."""
        values = {}
        for name in names:
            for variable in variables:
                if variable.startswith(f"{name}_"):
                    values[variable] = self._variable(variable, variables)
        return values

    def _variable(self, name: str, variables: dict[str, t.Any]) -> t.Any:
        try:
            return plain(self._templar.template(variables[name]))
        except AnsibleError as error:
            raise NodeError(f"variable {name} cannot be templated: {error}") from error

    # Passes

    def _loop(self, state: document.Document, variables: dict[str, t.Any]) -> dict[str, t.Any]:
        done: list[passes.Result] = []
        while True:
            done.append(self._pass(state, variables, earlier=done))
            needs = done[-1]["needs"]
            if self._task.check_mode:
                break
            if needs["packages"]:
                self._limit(done, f"packages {', '.join(needs['packages'])} are still missing")
                self._install(needs["packages"], variables, done)
            elif needs["reboot"] and self._reboot_allowed(variables):
                self._limit(done, f"a reboot is still due ({'; '.join(needs['reboot'])})")
                self._reboot(variables, done)
            else:
                break
        result = passes.merge(done)
        if self._task.args.get("config") is None:
            topics = [f"gpufleet {name} changed" for name, part in result["subsystems"].items() if part["changed"]]
            result["_ansible_notify"] = [topic for topic in topics if topic in self._heard()]
        # The default callback shows what each subsystem changed, as it would with -v; nothing for a host without changes.
        result["_ansible_verbose_always"] = result["changed"]
        return result

    def _heard(self) -> set[str]:
        """What the handlers of this play listen to. To notify one that is not there would be an error, and a user need not have all."""
        handlers = [handler for block in self._task.get_play().handlers for handler in block.block]
        return {topic for handler in handlers for topic in (*handler.listen, handler.name)}

    def _pass(self, state: document.Document, variables: dict[str, t.Any], *, earlier: list[passes.Result]) -> passes.Result:
        public, secrets = document.without_secrets(state)
        arguments: dict[str, t.Any] = {"subsystems": list(state["subsystems"]), "state": public, "secrets": secrets}
        result: dict[str, t.Any] = self._execute_module(module_name="gpufleet.vmss.converge", module_args=arguments, task_vars=variables)
        if result.get("failed") or "subsystems" not in result:
            self._fail(result, public, variables, earlier)
        return result

    def _fail(
        self, result: dict[str, t.Any], state: document.Document, variables: dict[str, t.Any], earlier: list[passes.Result]
    ) -> t.NoReturn:
        message = str(result.get("msg") or result.get("module_stderr") or result.get("exception") or "the node program gave no answer")
        message += _done_before(passes.made(earlier) + (result.get("done") or []))
        if result.get("facts"):
            message += f"\n{self._saved(result['facts'], state, variables)}"
        raise AnsibleActionFail(message)

    def _saved(self, facts: dict[str, t.Any], state: document.Document, variables: dict[str, t.Any]) -> str:
        """Save what the plan was made from; returns the line that says how to replay it, or why that cannot be done."""
        folder = pathlib.Path(str(self._task.args.get("failure_directory") or FAILURES)).expanduser()
        host = str(variables.get("inventory_hostname", "host")).replace("/", "_")
        paths = {kind: folder / f"{host}-{kind}.json" for kind in ("facts", "state")}
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for kind, content in (("facts", facts), ("state", state)):
                with open(os.open(paths[kind], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                    json.dump(plain(content), file, indent=1)
        except OSError as error:
            # The reason of the failure must not be lost to this one.
            return (
                f"The facts for a replay of the plan cannot be saved in {folder} ({error.strerror}); set failure_directory to another place"
            )
        return "Replay the plan with: " + shlex.join(
            ["gpufleet", "node", "plan", "--facts", str(paths["facts"]), "--state", str(paths["state"])]
        )

    def _limit(self, done: list[passes.Result], what: str) -> None:
        if len(done) >= PASSES:
            raise AnsibleActionFail(
                f"after {PASSES} passes {what}; look at the node, then run again{_done_before(passes.made(done, needs_are_met=False))}"
            )

    def _install(self, packages: list[str], variables: dict[str, t.Any], done: list[passes.Result]) -> None:
        """Install, and fetch package lists only if the ones that are there do not do: a mirror serves thousands of nodes."""
        arguments = {"name": packages, "state": "present", "install_recommends": False, "lock_timeout": APT_LOCK_LIMIT_SECONDS}
        result = self._execute_module(module_name="ansible.builtin.apt", module_args=arguments, task_vars=variables)
        if result.get("failed"):
            result = self._execute_module(
                module_name="ansible.builtin.apt", module_args={**arguments, "update_cache": True}, task_vars=variables
            )
        if result.get("failed"):
            raise AnsibleActionFail(
                f"packages {', '.join(packages)} could not be installed: {result.get('msg')}; check the node's package sources"
                + _done_before(passes.made(done, needs_are_met=False))
            )

    def _reboot_allowed(self, variables: dict[str, t.Any]) -> bool:
        return "node_program_reboot" in variables and self._variable("node_program_reboot", variables) == "allowed"

    def _reboot(self, variables: dict[str, t.Any], done: list[passes.Result]) -> None:
        task = self._task.copy()
        task.args = {"reboot_timeout": REBOOT_LIMIT_SECONDS}
        action = self._shared_loader_obj.action_loader.get(
            "ansible.builtin.reboot",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        result = action.run(task_vars=variables)
        if result.get("failed"):
            raise AnsibleActionFail(
                f"the reboot did not come to its end: {result.get('msg')}; look at the node's serial console{_done_before(passes.made(done))}"
            )


def _done_before(changes: list[str]) -> str:
    """The line of a failure's message that says what had been changed by then."""
    return f"\nDone before that: {'; '.join(changes)}" if changes else ""


def plain(value: t.Any) -> t.Any:
    """Plain JSON data: no tags, no lazy templates, nothing that a node could not read."""
    return json.loads(json.dumps(_copied(value)))


def _copied(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {str(key): _copied(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_copied(item) for item in value]
    return value
