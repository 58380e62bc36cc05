# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looking into ARM's raw documents, in which anything may be absent or null."""

from __future__ import annotations

import typing as t

Document = t.Mapping[str, t.Any]


def at(document: t.Any, *keys: str) -> Document:
    """The mapping under ``keys``; an empty one where there is none or null."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def parts(resource_id: str) -> dict[str, str]:
    """A resource id's types and names: {"resourcegroups": "rg", ...}. ARM's ids are case-insensitive, so types are lower-case here."""
    words = resource_id.strip("/").split("/")
    return {kind.lower(): name for kind, name in zip(words[::2], words[1::2], strict=False)}
