# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet in one of Ansible's caches, with the time at which it was read.

It is one text, because Ansible copies and tags every part of what it keeps (measured at 7,500 hosts: 2.6 s, against 0.3 s).
How old it is is decided by that time and not by the cache, which forgets what is too old to be fresh: an answer that
cannot be had may then still be replaced by a stale one.
"""

from __future__ import annotations

import dataclasses
import json
import typing as t

from ansible.plugins.inventory import get_cache_plugin

from ..module_utils.azure.client import parse
from ..module_utils.azure.fleet import Instance

_FIELDS = tuple(field.name for field in dataclasses.fields(Instance))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kept:
    """``read_at`` is in seconds since 1970."""

    instances: tuple[Instance, ...]
    read_at: float


def encode(kept: Kept) -> str:
    """One JSON text, the names of the fields once."""
    rows = [[getattr(item, name) for name in _FIELDS] for item in kept.instances]
    return json.dumps({"read_at": kept.read_at, "fields": _FIELDS, "instances": rows}, separators=(",", ":"))


def decode(text: object) -> Kept | None:
    """What ``encode`` made; None for anything else, such as what another version wrote."""
    document = parse(text.encode()) if isinstance(text, str) else None
    if not isinstance(document, dict) or document.get("fields") != list(_FIELDS):
        return None
    aliases = _FIELDS.index("alias_addresses")
    try:
        for row in document["instances"]:
            row[aliases] = tuple(row[aliases])
        instances = tuple(Instance(**dict(zip(_FIELDS, row, strict=True))) for row in document["instances"])
        return Kept(instances=instances, read_at=float(document["read_at"]))
    except (IndexError, KeyError, TypeError, ValueError):
        return None


class FleetCache:
    """One fleet's place in a cache plugin. ``warn`` gets a line where the cache cannot be used."""

    def __init__(self, options: t.Mapping[str, t.Any], key: str, warn: t.Callable[[str], None]) -> None:
        """``options`` are those of the documentation fragment inventory_cache, and ``stale_limit`` in seconds."""
        self._key = key
        self._warn = warn
        self._fresh_seconds = float(options["cache_timeout"])
        given = {
            "_uri": options["cache_connection"],
            "_prefix": options["cache_prefix"],
            # 0 means for ever, here as there.
            "_timeout": self._fresh_seconds and max(self._fresh_seconds, float(options["stale_limit"])),
        }
        self._plugin = get_cache_plugin(options["cache_plugin"], **{name: value for name, value in given.items() if value is not None})

    def fresh(self, now: float) -> Kept | None:
        """The fleet, if it was read within the cache's time."""
        return self.within(self._fresh_seconds or float("inf"), now)

    def within(self, seconds: float, now: float) -> Kept | None:
        """The fleet, if it was read within so many seconds. One from the future was written by a wrong clock and is none."""
        try:
            kept = decode(self._plugin.get(self._key))
        except Exception as error:  # what plugins raise for a file that another version wrote is anything
            self._warn(f"the cache is not used: {error}")
            return None
        return kept if kept and 0 <= now - kept.read_at <= seconds else None

    def keep(self, kept: Kept) -> None:
        """Write it at once: a play that ends badly later does not lose it."""
        self._plugin[self._key] = encode(kept)
        self._plugin.set_cache()
