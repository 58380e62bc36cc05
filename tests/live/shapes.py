# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers without what they are about: made anonymous, reduced to their shape, and compared by it. Pure."""

from __future__ import annotations

import re
import typing as t

_GUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")
_KEY = re.compile(r"ssh-\S+ \S+( \S+)?")
_HOME = re.compile(r"/home/[^/]+")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T[0-9:.]+(?:Z|\+00:00)?")
# Values of these names may tell whose they are.
PRIVATE = frozenset({"keyData", "adminUsername", "computerName", "computerNamePrefix", "tags", "macAddress", "domainName", "$skiptoken"})


def anonymous(value: t.Any, names: t.Mapping[str, str]) -> t.Any:
    """The same document with identities, addresses, keys and times replaced, and ``names`` (what to hide: what to say) too."""
    if isinstance(value, dict):
        return {key: "(private)" if key in PRIVATE and item else anonymous(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [anonymous(item, names) for item in value]
    if isinstance(value, str):
        value = _HOME.sub("/home/(user)", value)
        text = _KEY.sub("(key)", _TIME.sub("(time)", _ADDRESS.sub("(address)", _GUID.sub("(guid)", value))))
        for name, said in names.items():
            text = re.sub(re.escape(name), said, text, flags=re.IGNORECASE)
        return text
    return value


def shape(value: t.Any, place: str = "") -> dict[str, str]:
    """Every place of a document with the type of what stands there. All items of a list share one place."""
    found = {place or "/": _type(value)}
    if isinstance(value, dict):
        for key, item in value.items():
            found |= shape(item, f"{place}/{key}")
    elif isinstance(value, list):
        for item in value:
            found |= shape(item, f"{place}/[]")
    return found


def _type(value: t.Any) -> str:
    names = {dict: "object", list: "list", str: "text", bool: "truth", int: "number", float: "number", type(None): "null"}
    return names[type(value)]


def differences(real: t.Any, lab: t.Any) -> list[str]:
    """What one answer has and the other lacks or has otherwise, a line each."""
    theirs, ours = shape(real), shape(lab)
    lines = [f"{place}: Azure has {theirs[place]}, the lab has nothing" for place in sorted(set(theirs) - set(ours))]
    lines += [f"{place}: the lab has {ours[place]}, Azure has nothing" for place in sorted(set(ours) - set(theirs))]
    lines += [
        f"{place}: Azure has {theirs[place]}, the lab has {ours[place]}"
        for place in sorted(set(theirs) & set(ours))
        if theirs[place] != ours[place]
    ]
    return lines
