# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Counters in the mangle table that tell internal from internet traffic."""

from __future__ import annotations

import ipaddress
import re

from ..desired import UNIT_DIRECTORY, Desired, DesiredFile, DesiredUnit
from ..distributions import BY_ID, distribution
from ..facts.model import Facts, Reads
from ..rules import DesiredRules, words
from ..spec import NodeError, Parameter
from ..subsystem import Parameters, Subsystem, Texts

TABLE = "mangle"
CHAIN_PREFIX = "GPUFLEET-ACCT-"
UNIT = "gpufleet-accounting.service"
# The hooks that see traffic: INPUT and OUTPUT the node's own, FORWARD that of pods. Each with a direction:
# what comes from outside is told by its source, what leaves by its destination.
HOOKS = (("INPUT", "in"), ("FORWARD", "in"), ("OUTPUT", "out"), ("FORWARD", "out"))
_MATCH = {"in": "-s", "out": "-d"}
_NAME = re.compile(r"^[A-Za-z0-9_.-]{1,32}$")

SPEC = (
    Parameter(
        name="traffic_accounting_state",
        type="str",
        default="present",
        choices=("present", "absent"),
        description="Whether the counters shall be there.",
    ),
    Parameter(
        name="traffic_accounting_name",
        type="str",
        default="openai",
        description="First word of the rules' comments after iptables-exporter, by which exporters group them.",
    ),
    Parameter(
        name="traffic_accounting_internal_ranges",
        type="list",
        elements="str",
        default=["10.0.0.0/8"],
        description="Networks whose traffic counts as internal, in CIDR form. All else is internet.",
    ),
    Parameter(
        name="traffic_accounting_strict_article",
        type="bool",
        default=False,
        description=(
            "Put the four rules into the built-in chains INPUT, FORWARD and OUTPUT, as the published 7,500-node cluster has them, "
            "instead of into chains of our own. Needs exactly one internal range."
        ),
    ),
)


def _reads(parameters: Parameters) -> Reads:
    return Reads(
        tables=frozenset({TABLE}),
        packages=frozenset(item.iptables_package for item in BY_ID.values()),
        files=frozenset({UNIT_DIRECTORY + UNIT}),
        units=frozenset({UNIT}),
    )


def _desired(parameters: Parameters, texts: Texts, facts: Facts) -> Desired:
    name = parameters["traffic_accounting_name"]
    if not _NAME.match(name):
        raise NodeError(f"traffic_accounting_name is {name!r}; use 1 to 32 letters, digits, dots, dashes or underscores")
    if parameters["traffic_accounting_state"] == "absent":
        return Desired(
            tables={TABLE: DesiredRules(chain_prefix=CHAIN_PREFIX, is_ours=_is_ours)},
            files=(DesiredFile(path=UNIT_DIRECTORY + UNIT, variables=("traffic_accounting_state",)),),
            units=(DesiredUnit(name=UNIT, enabled=False, active=False),),
        )
    return Desired(
        packages=(distribution(facts.distribution).iptables_package,),
        tables={TABLE: desired_rules(name, _ranges(parameters), strict=parameters["traffic_accounting_strict_article"])},
        files=(
            DesiredFile(path=UNIT_DIRECTORY + UNIT, text=texts["gpufleet-accounting.service"], variables=("traffic_accounting_templates",)),
        ),
        # Enabled only: it is for the next boot, and this run has just done what it would do.
        units=(DesiredUnit(name=UNIT, enabled=True),),
    )


def _ranges(parameters: Parameters) -> tuple[str, ...]:
    given = parameters["traffic_accounting_internal_ranges"]
    ranges = []
    for text in given:
        try:
            ranges.append(str(ipaddress.IPv4Network(text)))
        except ValueError as error:
            raise NodeError(
                f"traffic_accounting_internal_ranges holds {text!r}, which is no IPv4 network ({error}); write it as 10.0.0.0/8"
            ) from error
        if ranges[-1].endswith("/0"):
            raise NodeError(
                f"traffic_accounting_internal_ranges holds {text}, so nothing would count as internet; name the networks of your own"
            )
    if not ranges:
        raise NodeError("traffic_accounting_internal_ranges is empty, so all traffic would count as internet; name at least one network")
    if parameters["traffic_accounting_strict_article"] and len(ranges) != 1:
        raise NodeError(
            f"traffic_accounting_strict_article takes one range, traffic_accounting_internal_ranges holds {len(ranges)}; "
            "give one, or set traffic_accounting_strict_article to false"
        )
    return tuple(ranges)


def desired_rules(name: str, ranges: tuple[str, ...], *, strict: bool) -> DesiredRules:
    """The four rules, in the built-in chains or behind a jump into a chain of our own for each hook and direction."""
    if strict:
        hooks: dict[str, tuple[str, ...]] = {}
        for hook, direction in HOOKS:
            hooks[hook] = (*hooks.get(hook, ()), _counter(name, direction, ranges[0]))
        return DesiredRules(hooks=hooks, chain_prefix=CHAIN_PREFIX, is_ours=_is_ours)
    chains: dict[str, tuple[str, ...]] = {}
    jumps: dict[str, tuple[str, ...]] = {}
    for hook, direction in HOOKS:
        chain = f"{CHAIN_PREFIX}{hook}-{direction.upper()}"
        jumps[hook] = (*jumps.get(hook, ()), f"-j {chain}")
        if len(ranges) == 1:
            chains[chain] = (_counter(name, direction, ranges[0]),)
        else:
            chains[chain] = (*(f"{_MATCH[direction]} {network} -j RETURN" for network in ranges), _counter(name, direction, None))
    return DesiredRules(chains=chains, hooks=jumps, chain_prefix=CHAIN_PREFIX, is_ours=_is_ours)


def _counter(name: str, direction: str, internal: str | None) -> str:
    match = f"! {_MATCH[direction]} {internal} " if internal else ""
    return f'{match}-m comment --comment "iptables-exporter {name} traffic=internet-{direction}"'


def _is_ours(rule: str) -> bool:
    """A jump into one of our chains, or a counter with the published comment and no target, whatever its name."""
    parts = words(rule)
    target, comment = _after(parts, "-j"), _after(parts, "--comment")
    if target:
        return target.startswith(CHAIN_PREFIX)
    return comment.startswith("iptables-exporter ") and comment.endswith(("traffic=internet-in", "traffic=internet-out"))


def _after(parts: tuple[str, ...], option: str) -> str:
    """The word after an option; empty when it is not given."""
    return parts[parts.index(option) + 1] if option in parts[:-1] else ""


SUBSYSTEM = Subsystem(
    name="traffic_accounting",
    summary="Count internal and internet traffic with iptables rules in the mangle table.",
    spec=SPEC,
    templates=("gpufleet-accounting.service.j2",),
    reads=_reads,
    desired=_desired,
    after={"node_program": "its boot unit calls the node program"},
)
