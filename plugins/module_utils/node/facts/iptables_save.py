# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parser for ``iptables-save``."""

from __future__ import annotations

from .model import Rules


def parse(text: str) -> dict[str, Rules]:
    """Each table's chains with their rules, in the order of the kernel; counters and comments lines are left out."""
    tables: dict[str, dict[str, list[str]]] = {}
    chains: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("*"):
            chains = tables.setdefault(line[1:].strip(), {})
        elif line.startswith(":"):
            chains.setdefault(line[1:].split(" ", 1)[0], [])
        elif line.startswith("-A "):
            _verb, chain, *rest = line.split(" ", 2)
            chains.setdefault(chain, []).append(rest[0] if rest else "")
    return {table: Rules(chains={chain: tuple(rules) for chain, rules in found.items()}) for table, found in tables.items()}
