# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""site.yml and fleet.yml mean the same: one order, and from the same variables the same state documents."""

from __future__ import annotations

import functools
import pathlib
import typing as t

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template
from ansible_collections.gpufleet.vmss.plugins.module_utils.node import registry

ROOT = pathlib.Path(__file__).parents[4]
NAMES = [subsystem.name for subsystem in registry.SUBSYSTEMS]
# As a user sets them: by inventory with their types, or by -e, where all are text.
TYPED = {
    "node_program_reboot": "allowed",
    "custom_files": [
        {"path": "/etc/example.conf", "content": "a=1\n", "restarts": ["example.service"]},
        {"path": "/etc/token", "content": "hunter2", "mode": "0600", "secret": True},
    ],
    "custom_sysctls": {"net.core.somaxconn": 8192},
    "custom_units": [{"name": "example.service", "content": "[Service]\nExecStart=/bin/true\n", "enabled": True}],
    "custom_modprobe": {"nvidia": ["options nvidia NVreg_A=1"]},
    "alias_network_neighbour_thresholds": [100, 200, 300],
    "traffic_accounting_name": "research",
    "traffic_accounting_internal_ranges": ["10.0.0.0/8", "172.16.0.0/12"],
}
AS_TEXT = {"alias_network_state": "absent", "traffic_accounting_strict_article": "true"}


@functools.cache
def documents(path: str) -> t.Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def by_role(carrier: t.Any, name: str, variables: dict[str, t.Any]) -> dict[str, t.Any]:
    """What a role's task sends: its config templated from its defaults and the host's variables, as Ansible does it."""
    (task,) = documents(f"roles/{name}/tasks/main.yml")
    arguments = task["gpufleet.vmss.converge"]
    known = {**documents(f"roles/{name}/defaults/main.yml"), **variables}
    config = Templar(loader=DataLoader(), variables=known).template(_trusted(arguments["config"]))
    carrier.run(*arguments["subsystems"], config=config, variables=known, check=True)
    return dict(carrier.calls[-1].arguments)


def _trusted(value: dict[str, str]) -> dict[str, t.Any]:
    return {key: trust_as_template(text) for key, text in value.items()}


@pytest.mark.parametrize("variables", [{}, TYPED, AS_TEXT], ids=["defaults", "typed", "text"])
def test_roles_and_the_fused_form_send_the_same_documents(carrier: t.Any, variables: dict[str, t.Any]) -> None:
    carrier.run(*NAMES, variables=variables, check=True)
    fused = carrier.calls[-1].arguments
    sections: dict[str, t.Any] = {}
    secrets: dict[str, t.Any] = {}
    for name in NAMES:
        sent = by_role(carrier, name, variables)
        sections.update(sent["state"]["subsystems"])
        secrets.update(sent["secrets"])
    assert fused["state"]["subsystems"] == sections
    assert fused["secrets"] == secrets and bool(secrets) == ("custom_files" in variables)
    # Else it would be the defaults that were compared.
    sent = {key: value for section in sections.values() for key, value in section["parameters"].items()}
    assert all(sent[key] != documents(f"roles/{_owner(key)}/defaults/main.yml")[key] for key in variables)


def _owner(variable: str) -> str:
    return next(name for name in NAMES if variable.startswith(f"{name}_"))


@pytest.mark.parametrize("subsystem", registry.SUBSYSTEMS, ids=lambda item: item.name)
def test_a_role_passes_every_variable_of_its_subsystem_and_no_other(subsystem: t.Any) -> None:
    (task,) = documents(f"roles/{subsystem.name}/tasks/main.yml")
    names = [parameter.name for parameter in subsystem.parameters]
    assert task["gpufleet.vmss.converge"] == {"subsystems": [subsystem.name], "config": {name: "{{ " + name + " }}" for name in names}}
    assert task["notify"] == f"gpufleet {subsystem.name} changed"


def test_site_names_every_subsystem_as_a_role_in_the_order_of_a_run() -> None:
    tasks = documents("playbooks/site.yml")[-1]["tasks"]
    roles = [task for task in tasks if "ansible.builtin.import_role" in task]
    assert [task["ansible.builtin.import_role"]["name"] for task in roles] == [f"gpufleet.vmss.{name}" for name in NAMES]
    assert [task["tags"] for task in roles] == [[name, "always"] if name == "node_program" else [name] for name in NAMES]
    others = [task for task in tasks if task not in roles]
    assert [task["loop"] for task in (tasks[0], tasks[-1])] == [task["loop"] for task in others]
    assert "pre_roles" in tasks[0]["loop"] and "post_roles" in tasks[-1]["loop"]


def test_fleet_is_one_task_for_every_subsystem_with_a_handler_for_each() -> None:
    play = documents("playbooks/fleet.yml")[-1]
    (task,) = play["tasks"]
    assert task["gpufleet.vmss.converge"] == {"subsystems": NAMES} and task["tags"] == ["always"]
    assert [handler["listen"] for handler in play["handlers"]] == [f"gpufleet {name} changed" for name in NAMES]


@pytest.mark.parametrize("playbook", ["site.yml", "fleet.yml"])
def test_every_playbook_checks_first_that_there_is_a_host_whatever_the_tags(playbook: str) -> None:
    first = documents(f"playbooks/{playbook}")[0]
    assert first["ansible.builtin.import_playbook"] == "check_inventory.yml"
    assert documents("playbooks/check_inventory.yml")[0]["tags"] == ["always"]
