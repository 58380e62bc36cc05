# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loop of the action: passes, with packages and reboots between them, and how each of these can fail."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.gpufleet.vmss.plugins.action.converge import PASSES

MODULE = "gpufleet.vmss.converge"
APT = "ansible.builtin.apt"
REBOOT = "ansible.builtin.reboot"
CNI = "containernetworking-plugins"
MODPROBE = {"custom_modprobe": {"nvidia": ["options nvidia NVreg_A=1"]}}
BOTH = {**MODPROBE, "node_program_reboot": "allowed"}


def with_driver(carrier: t.Any) -> t.Any:
    carrier.node.path("/sys/module/nvidia").mkdir(parents=True)
    return carrier


def without_plugins(carrier: t.Any) -> t.Any:
    del carrier.node.packages[CNI]
    return carrier


def test_a_converged_node_takes_one_pass(carrier: t.Any) -> None:
    first = carrier.run("traffic_accounting")
    assert first["changed"] and first["subsystems"]["traffic_accounting"]["changed"]
    # The default callback shows the result of a change as it would with -v, and none of a run without.
    assert first["_ansible_verbose_always"] is True
    carrier.calls.clear()
    second = carrier.run("traffic_accounting")
    assert carrier.names == [MODULE] and second.pop("_ansible_verbose_always") is False and not second.pop("_ansible_notify")
    assert second == {"changed": False, "subsystems": {"traffic_accounting": {"changed": False, "changes": []}}}


def test_packages_are_installed_between_two_passes_and_reported_as_changes(carrier: t.Any) -> None:
    without_plugins(carrier)
    result = carrier.run("alias_network", "custom")
    assert carrier.names == [MODULE, APT, MODULE]
    install = carrier.calls[1].arguments
    assert install["name"] == [CNI] and install["state"] == "present" and not install["install_recommends"]
    assert "update_cache" not in install
    changes = result["subsystems"]["alias_network"]["changes"]
    assert changes[0] == f"package {CNI}: install" and len(changes) == len(set(changes)) > 3
    assert "needs" not in result
    assert not carrier.run("alias_network", "custom")["changed"]


def test_check_mode_makes_one_pass_and_predicts_all_of_them(carrier: t.Any) -> None:
    without_plugins(with_driver(carrier))
    before = carrier.node.state()
    predicted = carrier.run("alias_network", "custom", variables=BOTH, check=True)
    assert carrier.names == [MODULE] and carrier.node.state() == before
    made = carrier.run("alias_network", "custom", variables=BOTH)
    assert predicted["subsystems"] == made["subsystems"]
    # The prediction names the reboot that a run would make; afterwards none is due.
    assert predicted["needs"]["packages"] == [CNI] and "nvidia" in predicted["needs"]["reboot"][0]
    assert "needs" not in made


def test_package_lists_are_fetched_only_when_the_ones_at_hand_do_not_do(carrier: t.Any) -> None:
    without_plugins(carrier).answers[APT] = [{"failed": True, "msg": "No package matching"}]
    carrier.run("alias_network")
    assert carrier.names == [MODULE, APT, APT, MODULE]
    first, second = (call.arguments for call in carrier.calls if call.name == APT)
    assert second == {**first, "update_cache": True}


def test_packages_that_cannot_be_had_are_one_message_with_what_was_done(carrier: t.Any) -> None:
    without_plugins(carrier).answers[APT] = [{"failed": True, "msg": "first"}, {"failed": True, "msg": "No package matching"}]
    with pytest.raises(AnsibleActionFail) as caught:
        carrier.run("alias_network", "custom", variables={"custom_files": [{"path": "/etc/a"}]})
    message = caught.value.message
    assert f"packages {CNI} could not be installed: No package matching; check the node's package sources" in message
    assert "Done before that: custom: file /etc/a: create" in message
    assert carrier.names == [MODULE, APT, APT]


def test_packages_that_never_come_end_the_loop(carrier: t.Any) -> None:
    without_plugins(carrier).answers[APT] = [{"changed": True}] * PASSES
    with pytest.raises(AnsibleActionFail, match=f"after {PASSES} passes packages {CNI} are still missing; look at the node"):
        carrier.run("alias_network")
    assert carrier.names.count(MODULE) == PASSES


def test_a_reboot_is_only_reported_unless_it_is_allowed(carrier: t.Any) -> None:
    with_driver(carrier)
    for variables in (MODPROBE, {**MODPROBE, "node_program_reboot": "never"}):
        result = carrier.run("custom", variables=variables)
        assert REBOOT not in carrier.names
        assert "nvidia" in result["needs"]["reboot"][0]


def test_an_allowed_reboot_is_made_and_nothing_is_due_then(carrier: t.Any) -> None:
    result = with_driver(carrier).run("custom", variables=BOTH)
    assert carrier.names == [MODULE, REBOOT, MODULE]
    assert carrier.calls[1].arguments["reboot_timeout"] >= 600
    assert "needs" not in result
    assert "file /etc/modprobe.d/gpufleet-custom-nvidia.conf: create" in result["subsystems"]["custom"]["changes"]


def test_whether_a_reboot_is_allowed_may_be_a_template(carrier: t.Any) -> None:
    variables = {**MODPROBE, "maintenance": True, "node_program_reboot": "{{ 'allowed' if maintenance else 'never' }}"}
    with_driver(carrier).run("custom", variables=template(variables))
    assert REBOOT in carrier.names


def test_the_roles_may_reboot_too(carrier: t.Any) -> None:
    with_driver(carrier).run("custom", config=MODPROBE, variables=BOTH)
    assert carrier.names == [MODULE, REBOOT, MODULE]


def test_a_reboot_that_fails_is_one_message_with_what_was_done(carrier: t.Any) -> None:
    with_driver(carrier).answers[REBOOT] = [{"failed": True, "msg": "Timed out waiting for last boot time check"}]
    with pytest.raises(AnsibleActionFail) as caught:
        carrier.run("custom", variables=BOTH)
    assert "the reboot did not come to its end: Timed out waiting" in caught.value.message
    assert "Done before that: custom: file /etc/modprobe.d/gpufleet-custom-nvidia.conf: create" in caught.value.message


def test_a_reboot_that_is_always_due_ends_the_loop(carrier: t.Any) -> None:
    with_driver(carrier).answers[REBOOT] = [{"changed": True}] * PASSES
    with pytest.raises(AnsibleActionFail, match=f"after {PASSES} passes a reboot is still due"):
        carrier.run("custom", variables=BOTH)
    assert carrier.names.count(REBOOT) == PASSES - 1


def test_packages_come_before_a_reboot(carrier: t.Any) -> None:
    without_plugins(with_driver(carrier)).run("alias_network", "custom", variables=BOTH)
    assert carrier.names == [MODULE, APT, MODULE, REBOOT, MODULE]


def template(variables: dict[str, t.Any]) -> dict[str, t.Any]:
    """Texts as they come from a playbook, where they may be templates."""
    from ansible.template import trust_as_template

    return {name: trust_as_template(value) if isinstance(value, str) else value for name, value in variables.items()}
