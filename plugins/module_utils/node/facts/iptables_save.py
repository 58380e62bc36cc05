# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parser for ``iptables-save -t TABLE``."""

from __future__ import annotations

from .model import Rules


def parse(text: str) -> Rules:
    """Chains with their rules, in the order of the kernel; counters and comments lines are left out."""
    chains: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith(":"):
            chains.setdefault(line[1:].split(" ", 1)[0], [])
        elif line.startswith("-A "):
            _verb, chain, *rest = line.split(" ", 2)
            chains.setdefault(chain, []).append(rest[0] if rest else "")
    return Rules(chains={chain: tuple(rules) for chain, rules in chains.items()})
