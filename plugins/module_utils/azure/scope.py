# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which part of Azure is asked for: subscriptions, and resource groups and scale sets by name, glob and tag."""

from __future__ import annotations

import dataclasses
import difflib
import fnmatch
import typing as t

from .errors import AzureError
from .fleet import ScaleSet

_GLOB = frozenset("*?[")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scope:
    """Names may be globs, without regard to case; none means all. ``tags`` are those of the scale set, with globs as values.

    Here everything is about whole scale sets: what is left out costs no further call.
    """

    resource_groups: tuple[str, ...] = ()
    scale_sets: tuple[str, ...] = ()
    exclude_resource_groups: tuple[str, ...] = ()
    exclude_scale_sets: tuple[str, ...] = ()
    tags: t.Mapping[str, str] = dataclasses.field(default_factory=dict)

    def only_groups(self) -> tuple[str, ...]:
        """The resource groups where all are named without globs, else none."""
        return () if any(map(is_glob, self.resource_groups)) else self.resource_groups

    def choose(self, everything: t.Sequence[ScaleSet], subscription_ids: t.Sequence[str]) -> list[ScaleSet]:
        """The scale sets in scope, sorted by id, each once.

        Raises AzureError for a name without a glob that does not exist: a typing error must not become a smaller fleet.
        """
        where = f"in subscription {', '.join(subscription_ids)}"
        groups = sorted({item.resource_group.lower() for item in everything})
        _check(self.resource_groups, groups, kind="resource group with a scale set in it", option="resource_groups", where=where)
        in_groups = [item for item in everything if matches(item.resource_group, self.resource_groups)]
        _check(self.scale_sets, sorted({item.name.lower() for item in in_groups}), kind="scale set", option="scale_sets", where=where)
        wanted = {item.resource_id.lower(): item for item in in_groups if self._has(item)}
        return [wanted[key] for key in sorted(wanted)]

    def _has(self, item: ScaleSet) -> bool:
        return (
            matches(item.name, self.scale_sets)
            and not (self.exclude_scale_sets and matches(item.name, self.exclude_scale_sets))
            and not (self.exclude_resource_groups and matches(item.resource_group, self.exclude_resource_groups))
            and all(tag in item.tags and fnmatch.fnmatchcase(item.tags[tag], value) for tag, value in self.tags.items())
        )


def matches(name: str, patterns: t.Sequence[str]) -> bool:
    """Whether a name is one of ``patterns``, or there are none. Azure's names are the same in upper and lower case."""
    return not patterns or any(fnmatch.fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


def is_glob(name: str) -> bool:
    return not _GLOB.isdisjoint(name)


def _check(names: t.Iterable[str], known: t.Sequence[str], *, kind: str, option: str, where: str) -> None:
    for name in names:
        if is_glob(name) or name.lower() in known:
            continue
        near = difflib.get_close_matches(name.lower(), known, n=1)
        noun, _with, rest = kind.partition(" with ")
        if near:
            hint = f"did you mean {near[0]}?"
        elif known:
            hint = f"there are: {', '.join(known[:20])}"
        else:
            hint = f"no {noun} is found there; this identity may lack the right to read it"
        raise AzureError(f"there is no {noun} {name}{f' with {rest}' if rest else ''} {where}; correct {option} ({hint})")
