# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Planning of iptables rules: only the changed lines of one table, so that untouched rules keep their counters.

Our rules are of two kinds: whole chains of our own, and single rules of ours in the kernel's
built-in chains. What others put beside them is neither read as ours nor rewritten or moved.
"""

from __future__ import annotations

import dataclasses
import difflib
import shlex
import typing as t

from .facts.model import Rules

# The only chains besides our own in which a rule can be ours (iptables(8), all tables).
BUILT_IN = ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")


@dataclasses.dataclass(frozen=True, kw_only=True)
class DesiredRules:
    """What one table shall hold of ours.

    ``chains`` maps each own chain to its rules, in order. ``hooks`` maps a built-in chain to the rules that we
    append there, or with ``hooks_first`` put before all others. A rule is the text that ``iptables-save`` prints after
    ``-A CHAIN ``.
    ``chain_prefix`` marks a chain as ours; ``is_ours`` says of a rule in a built-in chain whether it is ours.
    """

    chains: t.Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    hooks: t.Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    hooks_first: bool = False
    chain_prefix: str
    is_ours: t.Callable[[str], bool]


def plan_lines(found: Rules, wanted: DesiredRules) -> tuple[str, ...]:
    """The lines of one ``iptables-restore --noflush`` call that lead to ``wanted``; empty when all is right.

    New chains come first, since a jump needs its target; jumps go before the chains that they enter are removed.
    """
    lines = [f":{chain} - [0:0]" for chain in wanted.chains if chain not in found.chains]
    for chain, rules in wanted.chains.items():
        lines += _own_chain(chain, found.chains.get(chain, ()), rules)
    for chain in (*wanted.hooks, *(chain for chain in BUILT_IN if chain not in wanted.hooks)):
        ours = [rule for rule in found.chains.get(chain, ()) if wanted.is_ours(rule)]
        lines += _hook(chain, ours, wanted.hooks.get(chain, ()), first=wanted.hooks_first)
    stale = [chain for chain in found.chains if chain.startswith(wanted.chain_prefix) and chain not in wanted.chains]
    lines += [f"-F {chain}" for chain in stale] + [f"-X {chain}" for chain in stale]
    return tuple(lines)


def _own_chain(chain: str, found: t.Sequence[str], wanted: t.Sequence[str]) -> list[str]:
    """Deletions from the last to the first, then insertions from the first to the last, so that numbers stay true."""
    blocks = difflib.SequenceMatcher(a=[words(rule) for rule in found], b=[words(rule) for rule in wanted], autojunk=False).get_opcodes()
    deletions = [f"-D {chain} {number + 1}" for tag, low, high, *_wanted in blocks if tag != "equal" for number in range(low, high)]
    insertions = [
        f"-I {chain} {number + 1} {wanted[number]}"
        for tag, _from, _to, low, high in blocks
        if tag != "equal"
        for number in range(low, high)
    ]
    return deletions[::-1] + insertions


def _hook(chain: str, ours: t.Sequence[str], wanted: t.Sequence[str], *, first: bool) -> list[str]:
    """Each wanted rule once, wherever it stands: moving it would reset its counter for nothing."""
    missing = [words(rule) for rule in wanted]
    lines = []
    for rule in ours:
        if words(rule) in missing:
            missing.remove(words(rule))
        else:
            lines.append(f"-D {chain} {rule}")
    new = [rule for rule in wanted if words(rule) in missing]
    if first:
        return lines + [f"-I {chain} {number} {rule}" for number, rule in enumerate(new, start=1)]
    return lines + [f"-A {chain} {rule}" for rule in new]


def words(rule: str) -> tuple[str, ...]:
    """A rule as words: versions of iptables quote comments differently, the words are the same."""
    try:
        return tuple(shlex.split(rule))
    except ValueError:  # an open quote, in a rule that is not ours
        return tuple(rule.split())


def text(table: Rules) -> str:
    """The table as people know it, for a diff; built-in chains without rules are left out."""
    return "".join(f"-A {chain} {rule}\n" for chain, rules in table.chains.items() for rule in rules)


def restore_input(table: str, lines: t.Iterable[str]) -> str:
    """Standard input for one ``iptables-restore --noflush`` call."""
    return "\n".join((f"*{table}", *lines, "COMMIT")) + "\n"
