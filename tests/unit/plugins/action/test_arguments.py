# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the action makes of its arguments and of the host's variables, in the form of the roles and in the fused one."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleActionFail
from ansible.template import trust_as_template

MODULE = "gpufleet.vmss.converge"
ALL = ("node_program", "custom", "alias_network", "traffic_accounting")


def refused(carrier: t.Any, *subsystems: str, **given: t.Any) -> str:
    """The message of a run that is refused before the node is touched."""
    with pytest.raises(AnsibleActionFail) as caught:
        carrier.run(*subsystems, **given)
    assert carrier.calls == []
    return caught.value.message


def asked(carrier: t.Any) -> dict[str, t.Any]:
    """The subsystems of the state document that was sent last."""
    return dict(carrier.calls[-1].arguments["state"]["subsystems"])


def test_an_unknown_argument_is_named_with_the_known_ones(carrier: t.Any) -> None:
    message = refused(carrier, "custom", subsystem="custom")
    assert message == "gpufleet.vmss.converge has no argument subsystem; known: config, failure_directory, subsystems"


@pytest.mark.parametrize("given", [[], None, "custom", {"custom": 1}])
def test_subsystems_must_be_a_list_that_names_one(carrier: t.Any, given: t.Any) -> None:
    assert "subsystems must be a list with at least one name" in refused(carrier, subsystems=given)


@pytest.mark.parametrize("config", [None, {}])
def test_an_unknown_subsystem_is_an_error_with_the_nearest_name(carrier: t.Any, config: t.Any) -> None:
    assert (
        refused(carrier, "trafic_accounting", config=config) == "there is no subsystem trafic_accounting; did you mean traffic_accounting?"
    )


@pytest.mark.parametrize("config", [None, {"traffic_accounting_state": "present"}], ids=["fused", "role"])
def test_a_misspelt_variable_is_an_error_with_the_nearest_name(carrier: t.Any, config: t.Any) -> None:
    message = refused(carrier, "traffic_accounting", config=config, variables={"traffic_accounting_nmae": "x"})
    assert message == "traffic_accounting: there is no variable traffic_accounting_nmae; did you mean traffic_accounting_name?"


def test_a_misspelt_key_of_config_is_an_error(carrier: t.Any) -> None:
    message = refused(carrier, "traffic_accounting", config={"traffic_accounting_nmae": "x"})
    assert "did you mean traffic_accounting_name?" in message


def test_a_value_of_the_wrong_kind_is_an_error_that_names_it(carrier: t.Any) -> None:
    message = refused(carrier, "traffic_accounting", variables={"traffic_accounting_internal_ranges": "10.0.0.0/8"})
    assert message == "traffic_accounting: traffic_accounting_internal_ranges must be of type list, but is str"


def test_a_variable_that_cannot_be_templated_is_named(carrier: t.Any) -> None:
    message = refused(carrier, "traffic_accounting", variables={"traffic_accounting_name": trust_as_template("{{ nowhere }}")})
    assert message.startswith("variable traffic_accounting_name cannot be templated: ") and "nowhere" in message


def test_the_fused_form_takes_the_host_s_variables_templated_and_leaves_others(carrier: t.Any) -> None:
    variables = {"cluster": "research", "traffic_accounting_name": trust_as_template("{{ cluster }}"), "alias_network_mtu": "not ours here"}
    carrier.run("traffic_accounting", variables=variables)
    parameters = asked(carrier)["traffic_accounting"]["parameters"]
    assert parameters["traffic_accounting_name"] == "research" and parameters["traffic_accounting_state"] == "present"


def test_the_form_of_the_roles_takes_config_and_no_variables(carrier: t.Any) -> None:
    carrier.run("traffic_accounting", config={"traffic_accounting_name": "a"}, variables={"traffic_accounting_name": "b"})
    assert asked(carrier)["traffic_accounting"]["parameters"]["traffic_accounting_name"] == "a"


@pytest.mark.parametrize(
    ("run", "skip", "left"),
    [
        (["all"], [], ALL),
        (["traffic_accounting"], [], ("node_program", "traffic_accounting")),
        (["all"], ["custom"], ("node_program", "alias_network", "traffic_accounting")),
        (["traffic_accounting"], ["node_program"], ("traffic_accounting",)),
    ],
)
def test_tags_narrow_the_fused_form(carrier: t.Any, run: list[str], skip: list[str], left: tuple[str, ...]) -> None:
    result = carrier.run(*ALL, variables={"ansible_run_tags": run, "ansible_skip_tags": skip})
    assert tuple(asked(carrier)) == left and set(result["subsystems"]) == set(left)


def test_a_tag_that_names_nothing_is_an_error(carrier: t.Any) -> None:
    message = refused(carrier, *ALL, variables={"ansible_run_tags": ["trafic_accounting"]})
    assert message == "tag trafic_accounting names no subsystem; did you mean traffic_accounting?"


def test_a_run_that_skips_every_subsystem_says_so(carrier: t.Any) -> None:
    result = carrier.run(*ALL, variables={"ansible_run_tags": ["all"], "ansible_skip_tags": list(ALL)})
    assert carrier.calls == [] and result["skipped"] and not result["changed"]
    assert result["skip_reason"] == "the tags of this run leave no subsystem"


def test_tags_do_not_narrow_a_role_which_has_its_own(carrier: t.Any) -> None:
    carrier.run("custom", config={}, variables={"ansible_run_tags": ["anything"]})
    assert tuple(asked(carrier)) == ("custom",)


def test_handlers_are_notified_by_the_fused_form_for_what_changed(carrier: t.Any) -> None:
    carrier.run("custom")
    result = carrier.run("custom", "alias_network", "traffic_accounting")
    assert result["_ansible_notify"] == ["gpufleet alias_network changed", "gpufleet traffic_accounting changed"]
    assert not carrier.run("custom", "alias_network", "traffic_accounting").get("_ansible_notify")


def test_a_play_without_a_handler_for_a_topic_is_no_error(carrier: t.Any) -> None:
    result = carrier.run("alias_network", "traffic_accounting", heard=["gpufleet traffic_accounting changed"])
    assert result["subsystems"]["alias_network"]["changed"]
    assert result["_ansible_notify"] == ["gpufleet traffic_accounting changed"]


def test_a_role_s_task_notifies_by_its_own_keyword(carrier: t.Any) -> None:
    result = carrier.run("custom", config={})
    assert result["changed"] and "_ansible_notify" not in result
