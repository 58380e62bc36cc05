# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parser for ``ip -json address show``."""

from __future__ import annotations

import json

from ..spec import NodeError

ARGV = ("ip", "-json", "address", "show")


def parse(text: str) -> dict[str, tuple[str, ...]]:
    """The addresses of each interface with their prefix lengths, in the kernel's order."""
    try:
        return {
            item["ifname"]: tuple(f"{entry['local']}/{entry['prefixlen']}" for entry in item.get("addr_info", ()) if "local" in entry)
            for item in json.loads(text or "[]")
            if "ifname" in item
        }
    except (ValueError, KeyError, TypeError) as error:
        raise NodeError(f"`{' '.join(ARGV)}` printed what cannot be read ({error}); look at it on the node") from error
