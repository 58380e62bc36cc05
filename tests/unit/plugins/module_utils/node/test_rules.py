# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning of iptables lines, by table and by property."""

from __future__ import annotations

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.facts.model import Rules
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.plan import rules_after
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.rules import DesiredRules, plan_lines, restore_input
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.subsystems.traffic_accounting import CHAIN_PREFIX, _is_ours, desired_rules
from hypothesis import given
from node_strategies import FOREIGN, tables

NETWORK = ("10.0.0.0/8",)
STRICT = desired_rules("openai", NETWORK, strict=True)
OWN = desired_rules("openai", NETWORK, strict=False)
ABSENT = DesiredRules(chain_prefix=CHAIN_PREFIX, is_ours=_is_ours)


def counter(direction: str, name: str = "openai", network: str = "10.0.0.0/8") -> str:
    match = "-s" if direction == "in" else "-d"
    return f'! {match} {network} -m comment --comment "iptables-exporter {name} traffic=internet-{direction}"'


EMPTY = {"INPUT": (), "FORWARD": (), "OUTPUT": ()}
ARTICLE = {"INPUT": (counter("in"),), "FORWARD": (counter("in"), counter("out")), "OUTPUT": (counter("out"),)}
BEHIND_JUMPS = {
    "INPUT": ("-j GPUFLEET-ACCT-INPUT-IN",),
    "FORWARD": ("-j GPUFLEET-ACCT-FORWARD-IN", "-j GPUFLEET-ACCT-FORWARD-OUT"),
    "OUTPUT": ("-j GPUFLEET-ACCT-OUTPUT-OUT",),
    "GPUFLEET-ACCT-INPUT-IN": (counter("in"),),
    "GPUFLEET-ACCT-FORWARD-IN": (counter("in"),),
    "GPUFLEET-ACCT-OUTPUT-OUT": (counter("out"),),
    "GPUFLEET-ACCT-FORWARD-OUT": (counter("out"),),
}
KUBE = "-m comment --comment kube-proxy -j MARK --set-xmark 0x4000/0x4000"
THREE = desired_rules("openai", ("10.0.0.0/8", "172.16.0.0/12"), strict=False).chains["GPUFLEET-ACCT-INPUT-IN"]


def test_the_four_published_rules() -> None:
    assert dict(STRICT.hooks) == ARTICLE


@pytest.mark.parametrize(
    ("found", "wanted", "lines"),
    [
        pytest.param(ARTICLE, STRICT, (), id="already right"),
        pytest.param(BEHIND_JUMPS, OWN, (), id="already right, own chains"),
        pytest.param({**ARTICLE, "INPUT": (KUBE, counter("in"), "-p tcp")}, STRICT, (), id="between rules of others"),
        pytest.param({**ARTICLE, "FORWARD": ARTICLE["FORWARD"][::-1]}, STRICT, (), id="another order keeps its counters"),
        pytest.param({**ARTICLE, "OUTPUT": (counter("out").replace('"', "'"),)}, STRICT, (), id="quoted in another way"),
        pytest.param(
            EMPTY,
            STRICT,
            (f"-A INPUT {counter('in')}", f"-A FORWARD {counter('in')}", f"-A FORWARD {counter('out')}", f"-A OUTPUT {counter('out')}"),
            id="first run",
        ),
        pytest.param({**ARTICLE, "INPUT": (counter("in"), KUBE, counter("in"))}, STRICT, (f"-D INPUT {counter('in')}",), id="twice"),
        pytest.param(
            {**ARTICLE, "INPUT": (counter("in", "old"),)},
            STRICT,
            (f"-D INPUT {counter('in', 'old')}", f"-A INPUT {counter('in')}"),
            id="renamed",
        ),
        pytest.param(
            {**ARTICLE, "POSTROUTING": (counter("out"), KUBE)},
            STRICT,
            (f"-D POSTROUTING {counter('out')}",),
            id="left where we no longer count",
        ),
        pytest.param({**ARTICLE, "FOREIGN": (counter("in"),)}, STRICT, (), id="in a chain of others it is theirs"),
        pytest.param(ARTICLE, ABSENT, tuple(f"-D {hook} {rule}" for hook, rules in ARTICLE.items() for rule in rules), id="absent"),
        pytest.param(EMPTY, ABSENT, (), id="absent already"),
        pytest.param(
            {"INPUT": ("-j GPUFLEET-ACCT-OLD", KUBE), "GPUFLEET-ACCT-OLD": (counter("in"),)},
            ABSENT,
            ("-D INPUT -j GPUFLEET-ACCT-OLD", "-F GPUFLEET-ACCT-OLD", "-X GPUFLEET-ACCT-OLD"),
            id="a jump goes before its chain",
        ),
    ],
)
def test_planned_lines(found: dict[str, tuple[str, ...]], wanted: DesiredRules, lines: tuple[str, ...]) -> None:
    planned = plan_lines(Rules(chains=found), wanted)
    # The order between built-in chains says nothing.
    assert sorted(planned) == sorted(lines)
    assert [line for line in planned if line[:2] in ("-F", "-X")] == [line for line in lines if line[:2] in ("-F", "-X")]
    assert not plan_lines(rules_after(Rules(chains=found), planned), wanted)


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        (THREE, ()),
        ((), tuple(f"-I C {number} {rule}" for number, rule in enumerate(THREE, start=1))),
        (THREE[:2], (f"-I C 3 {THREE[2]}",)),
        ((THREE[1], THREE[0], THREE[2]), ("-D C 1", f"-I C 2 {THREE[1]}")),
        ((*THREE, KUBE), ("-D C 4",)),
        ((THREE[0], KUBE, KUBE, *THREE[1:]), ("-D C 3", "-D C 2")),
    ],
)
def test_an_own_chain_is_mended_line_by_line(found: tuple[str, ...], lines: tuple[str, ...]) -> None:
    wanted = DesiredRules(chains={"C": THREE}, chain_prefix="C", is_ours=_is_ours)
    assert sorted(plan_lines(Rules(chains={"C": found}), wanted)) in (sorted(lines), sorted(_other_diff(found)))


def _other_diff(found: tuple[str, ...]) -> tuple[str, ...]:
    """Of two swapped rules either may be the one that moves."""
    return ("-D C 2", f"-I C 1 {THREE[0]}") if found[:2] == (THREE[1], THREE[0]) else ()


@pytest.mark.parametrize(
    ("first", "second"), [(STRICT, OWN), (OWN, STRICT), (OWN, desired_rules("b", NETWORK, strict=False)), (OWN, ABSENT)]
)
def test_one_form_becomes_another_and_nothing_is_left(first: DesiredRules, second: DesiredRules) -> None:
    start = Rules(chains={**EMPTY, "INPUT": (KUBE,)})
    there = rules_after(start, plan_lines(start, first))
    then = rules_after(there, plan_lines(there, second))
    straight = rules_after(start, plan_lines(start, second))
    assert then == straight and then.chains["INPUT"][0] == KUBE


@pytest.mark.parametrize(
    ("rule", "ours"),
    [
        (counter("in"), True),
        (counter("out", "any-name"), True),
        ("-j GPUFLEET-ACCT-X", True),
        ("-j KUBE-FORWARD", False),
        (counter("in") + " -j ACCEPT", False),
        ('-m comment --comment "iptables-exporter openai traffic=rdma"', False),
        ('-m comment --comment "traffic=internet-in"', False),
        ('-m comment --comment "an open', False),
        ("-m comment --comment", False),
        ("-p tcp -j", False),
        ("", False),
    ],
)
def test_which_rules_are_ours(rule: str, ours: bool) -> None:
    assert _is_ours(rule) is ours


@given(tables())
def test_any_table_is_led_to_any_wish_in_one_call_and_others_keep_theirs(table: Rules) -> None:
    for wanted in (STRICT, OWN, ABSENT):
        after = rules_after(table, plan_lines(table, wanted))
        assert plan_lines(after, wanted) == ()
        for chain, rules in table.chains.items():
            if not chain.startswith(CHAIN_PREFIX):
                kept = [rule for rule in after.chains[chain] if rule in FOREIGN or not _is_ours(rule)]
                assert kept == [rule for rule in rules if rule in FOREIGN or not _is_ours(rule)]


def test_one_call_holds_one_table() -> None:
    assert restore_input("mangle", ["-A INPUT -p tcp"]) == "*mangle\n-A INPUT -p tcp\nCOMMIT\n"
