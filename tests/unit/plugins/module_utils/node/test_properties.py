# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The promise of every subsystem: when its plan has been carried out, there is nothing left to plan."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.node import converge, document, registry
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.facts.model import Facts
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.plan import simulate
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from node_fakes import TEXTS
from node_strategies import VARIABLES, facts

NAMES = [subsystem.name for subsystem in registry.SUBSYSTEMS]


@st.composite
def nodes(draw: st.DrawFn, names: t.Sequence[str]) -> tuple[Facts, document.Document]:
    variables = {key: value for name in names for key, value in draw(VARIABLES[name]).items()}
    state = document.build(names, variables, lambda name, parameters: TEXTS.get(name, {}))
    return draw(facts(converge.reads(state))), state


def _check(found: Facts, state: document.Document) -> None:
    planned = converge.plan_all(found, state)
    after = simulate(found, tuple(change for item in planned for change in item.plan.changes))
    assert [str(change) for item in converge.plan_all(after, state) for change in item.plan.changes] == []


@pytest.mark.parametrize("name", NAMES)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(st.data())
def test_nothing_is_left_to_plan(name: str, data: st.DataObject) -> None:
    _check(*data.draw(nodes([name])))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(nodes(NAMES))
def test_nothing_is_left_to_plan_for_all_together(node: tuple[Facts, document.Document]) -> None:
    _check(*node)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(nodes(NAMES))
def test_facts_survive_json_and_give_the_same_result(node: tuple[Facts, document.Document]) -> None:
    found, state = node
    again = Facts.from_document(json.loads(json.dumps(found.to_document())))
    assert again == found
    results = [converge.result(one, converge.plan_all(one, state), check=True) for one in (found, again)]
    assert results[0] == results[1] == json.loads(json.dumps(results[0]))


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(nodes(["custom"]))
def test_no_diff_and_no_result_tells_a_secret(node: tuple[Facts, document.Document]) -> None:
    found, state = node
    files = state["subsystems"]["custom"]["parameters"]["custom_files"]
    for number, item in enumerate(files):
        if item["secret"]:
            item["content"] = f"hunter2-{number}"
    result = converge.result(found, converge.plan_all(found, state), check=True)
    assert "hunter2" not in json.dumps(result)
