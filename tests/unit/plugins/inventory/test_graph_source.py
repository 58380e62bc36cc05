# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``source: graph``: the same fleet from Azure Resource Graph, but for what it does not know."""

from __future__ import annotations

import typing as t

import pytest

from lab.azure import resource_graph

UNKNOWN = ("fault_domain", "placement_group", "health_state")
QUERY = "/providers/Microsoft.ResourceGraph/resources"


@pytest.fixture(autouse=True)
def plenty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests share one Azure and would wait for each other's queries."""
    monkeypatch.setattr(resource_graph, "QUERIES", 1000)


def test_the_same_hosts_variables_and_groups(inventory: t.Any) -> None:
    arm, graph = inventory(), inventory(source="graph")
    for hosts in (arm.hosts, graph.hosts):
        assert len(hosts) == 463
    expected = {name: {key: value for key, value in host.items() if key not in UNKNOWN} for name, host in arm.hosts.items()}
    assert graph.hosts == expected
    absent = ("fault_domain_", "placement_group_", "_meta", "all")
    groups = [{name: group for name, group in answer.document.items() if not name.startswith(absent)} for answer in (arm, graph)]
    assert groups[0] == groups[1] != {}
    assert "which may be 60 s behind and does not know fault_domain, placement_group, health_state" in graph.stderr


def test_scopes_hold_for_both_sources(inventory: t.Any) -> None:
    assert set(inventory(source="graph", scale_sets=["GPU*"]).hosts) == {"gpua000000", "gpua000001"}
    assert set(inventory(source="graph", scale_set_tags={"cluster": "b"}).hosts) == {"cpub000000"}
    assert "did you mean gpua?" in inventory(source="graph", scale_sets=["gpuaa"]).stderr


def test_few_queries_and_nothing_else(inventory: t.Any, fault: t.Any) -> None:
    queries, others = fault(path=QUERY, latency=0.001, times=100), fault(path="/subscriptions/", latency=0.001, times=100)
    assert inventory(source="graph").hosts
    assert (queries.seen, others.seen) == (5, 0)


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource_graph, "PAGE_BYTES", 60_000)


def test_pages_that_are_too_large_are_asked_for_in_halves(inventory: t.Any, fault: t.Any, small_pages: None) -> None:
    queries = fault(path=QUERY, latency=0.001, times=1000)
    expected = inventory(scale_sets=["many", "gpua"]).stdout
    graph = inventory(source="graph", scale_sets=["many", "gpua"])
    assert queries.seen > 8 and len(graph.hosts) == 232
    assert set(graph.hosts) == {name for name in graph.hosts if name in expected}


def test_the_quota_is_waited_for(inventory: t.Any, fault: t.Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two queries a second."""
    monkeypatch.setattr(resource_graph, "QUERIES", 2)
    monkeypatch.setattr(resource_graph, "WINDOW_SECONDS", 1)
    assert len(inventory(source="graph").hosts) == 463


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"status": 403}, "role Reader"),
        ({"answer": "null_list"}, "page 1 holds no list of documents but null"),
        ({"answer": "no_next_link"}, "rows came, and no link to the others"),
    ],
)
def test_a_part_is_no_fleet(inventory: t.Any, fault: t.Any, small_pages: None, answer: dict[str, t.Any], said: str) -> None:
    fault(path=QUERY, times=100, after=1, **answer)
    refused = inventory(source="graph")
    assert refused.status != 0 and said in refused.stderr and "_meta" not in refused.stdout


def test_no_subscription_that_can_be_read(inventory: t.Any) -> None:
    answer = inventory(source="graph", subscription_ids=["00000000-0000-4000-8000-000000000009"])
    assert answer.status != 0 and "NoValidSubscriptionsInQueryRequest" in answer.stderr


def test_full_documents_are_of_the_other_source(inventory: t.Any) -> None:
    assert "Resource Graph has no full documents; use source: arm" in inventory(source="graph", full_document=True).stderr
