# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checking of variables, and the state document that they become."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.node import document
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.spec import NodeError, Parameter, has_secrets, secret_places, validate
from hypothesis import given
from hypothesis import strategies as st

SPEC = (
    Parameter(name="x_count", type="int", default=3, minimum=1, maximum=9, description="How many."),
    Parameter(name="x_mode", type="str", default="on", choices=("on", "off"), description="Which."),
    Parameter(name="x_names", type="list", elements="str", default=[], description="Names."),
    Parameter(name="x_key", type="str", secret=True, choices=("a", "b"), description="A key."),
    Parameter(
        name="x_items",
        type="list",
        default=[],
        description="Items.",
        options=(
            Parameter(name="id", type="str", required=True, description="Its name."),
            Parameter(name="text", type="str", secret_if="quiet", description="Its text."),
            Parameter(name="quiet", type="bool", default=False, description="Whether the text is secret."),
        ),
    ),
)
DEFAULTS = {"x_count": 3, "x_mode": "on", "x_names": [], "x_key": None, "x_items": []}


@pytest.mark.parametrize(
    ("given_values", "changed"),
    [
        ({}, {}),
        ({"x_count": "7"}, {"x_count": 7}),
        ({"x_count": None}, {}),
        ({"x_names": [1, "b"]}, {"x_names": ["1", "b"]}),
        ({"x_items": [{"id": "a", "quiet": "yes"}]}, {"x_items": [{"id": "a", "text": None, "quiet": True}]}),
    ],
)
def test_values_are_completed_and_typed(given_values: dict[str, t.Any], changed: dict[str, t.Any]) -> None:
    assert validate(SPEC, given_values, where="x") == {**DEFAULTS, **changed}


@pytest.mark.parametrize(
    ("given_values", "said"),
    [
        ({"x_cuont": 1}, "no variable x_cuont; did you mean x_count?"),
        ({"zzz": 1}, "no variable zzz; known: x_count"),
        ({"x_count": 0}, "x_count is 0, but must be at least 1"),
        ({"x_count": 10}, "x_count is 10, but must be at most 9"),
        ({"x_count": True}, "x_count must be of type int, but is bool"),
        ({"x_count": "--5"}, "x_count must be of type int, but is str"),
        ({"x_count": "\u00b2"}, "x_count must be of type int, but is str"),
        ({"x_mode": "maybe"}, "x_mode is 'maybe', but must be one of: on, off"),
        ({"x_names": "a"}, "x_names must be of type list"),
        ({"x_names": [["a"]]}, "x_names[0] must be of type str"),
        ({"x_items": ["a"]}, "x_items[0] must be of type dict"),
        ({"x_items": [{}]}, "x_items[0]: id is missing; Its name."),
        ({"x_items": [{"id": "a", "txet": "b"}]}, "x_items[0]: there is no variable txet; did you mean text?"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_what_would_be_right(given_values: dict[str, t.Any], said: str) -> None:
    with pytest.raises(NodeError) as error:
        validate(SPEC, given_values, where="x")
    assert said in str(error.value)


def test_the_message_about_a_secret_does_not_tell_it() -> None:
    with pytest.raises(NodeError) as error:
        validate(SPEC, {"x_key": "hunter2"}, where="x")
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ({"x_count": 1, "x_key": None}, {}),
        ({"x_key": "a"}, {"x_key": "a"}),
        ({"x_items": [{"id": "1", "text": "t"}, {"id": "2", "text": "u", "quiet": True}]}, {"x_items/1/text": "u"}),
    ],
)
def test_only_what_is_given_and_secret_is_a_secret(values: dict[str, t.Any], places: dict[str, t.Any]) -> None:
    assert secret_places(SPEC, values) == places
    assert has_secrets(SPEC, values) == bool(places)


def _custom(files: list[dict[str, t.Any]]) -> document.Document:
    return document.build(["custom"], {"custom_files": files}, lambda name, parameters: {})


@given(
    st.lists(st.fixed_dictionaries({"path": st.just("/etc/a"), "content": st.text(min_size=9), "secret": st.booleans()}), max_size=4),
)
def test_secrets_leave_the_document_and_come_back(files: list[dict[str, t.Any]]) -> None:
    whole = _custom(files)
    public, secrets = document.without_secrets(whole)
    shown = json.dumps(public)
    kept = public["subsystems"]["custom"]["parameters"]["custom_files"]
    assert ["content" in item for item in kept] == [not item["secret"] for item in files]
    assert document.with_secrets(json.loads(shown), json.loads(json.dumps(secrets))) == whole


@pytest.mark.parametrize(
    ("names", "variables", "said"),
    [
        (["traffic_accounting"], {"traffic_accounting_nmae": "x"}, "did you mean traffic_accounting_name?"),
        (["traffic_acounting"], {}, "no subsystem traffic_acounting; did you mean traffic_accounting?"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_nearest(names: list[str], variables: dict[str, t.Any], said: str) -> None:
    with pytest.raises(NodeError) as error:
        document.build(names, variables, lambda name, parameters: {})
    assert said in str(error.value)


def test_variables_of_others_are_left_alone() -> None:
    built = document.build(["custom"], {"traffic_accounting_name": "x", "my_own": 1}, lambda name, parameters: {})
    assert list(built["subsystems"]) == ["custom"]


def test_paths_of_templates_stay_on_the_controller() -> None:
    variables = {"traffic_accounting_templates": {"gpufleet-accounting.service": "mine.j2"}}
    built = document.build(["traffic_accounting"], variables, lambda name, parameters: {"gpufleet-accounting.service": "text"})
    section = built["subsystems"]["traffic_accounting"]
    assert "traffic_accounting_templates" not in section["parameters"] and section["texts"] == {"gpufleet-accounting.service": "text"}
