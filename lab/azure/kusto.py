# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The little of Kusto's query language that the lab's Resource Graph understands; anything else is refused.

``TABLE | where PATH =~ 'TEXT' | where isnotempty(PATH) | project [NAME =] PATH, ... | order by COLUMN asc``
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

Row = t.Mapping[str, t.Any]

_PATH = r"[A-Za-z_][\w.]*"
_EQUALS = re.compile(rf"^({_PATH})\s*=~\s*'([^']*)'$")
_NOT_EMPTY = re.compile(rf"^isnotempty\(({_PATH})\)$")
_COLUMN = re.compile(rf"^(?:([A-Za-z_]\w*)\s*=\s*)?({_PATH})$")
_ORDER = re.compile(r"^by\s+([A-Za-z_]\w*)\s+asc$")


class QueryError(ValueError):
    """A query that is not understood; the message names the part."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Query:
    """``conditions`` are (path, text), text None for isnotempty; ``columns`` (name, path); ``order`` a column."""

    table: str
    conditions: tuple[tuple[str, str | None], ...]
    columns: tuple[tuple[str, str], ...]
    order: str

    def keeps(self, row: Row) -> bool:
        return all(_holds(find(row, path), text) for path, text in self.conditions)

    def project(self, row: Row) -> dict[str, t.Any]:
        if not self.columns:
            return dict(row)
        return {name: find(row, path) for name, path in self.columns}


def parse(text: str) -> Query:
    """Raises QueryError."""
    table, *steps = [part.strip() for part in text.split("|")]
    if not re.fullmatch(r"\w+", table):
        raise QueryError(f"'{table}' is no table")
    conditions: list[tuple[str, str | None]] = []
    columns: tuple[tuple[str, str], ...] = ()
    order = ""
    for step in steps:
        operator, _, rest = step.partition(" ")
        rest = " ".join(rest.split())
        if operator == "where" and (match := _EQUALS.match(rest)):
            conditions.append((match.group(1), match.group(2)))
        elif operator == "where" and (match := _NOT_EMPTY.match(rest)):
            conditions.append((match.group(1), None))
        elif operator == "project" and not columns:
            columns = tuple(_column(part.strip()) for part in rest.split(","))
        elif operator == "order" and (match := _ORDER.match(rest)):
            order = match.group(1)
        else:
            raise QueryError(f"'{step}' is not supported")
    return Query(table=table.lower(), conditions=tuple(conditions), columns=columns, order=order)


def find(row: t.Any, path: str) -> t.Any:
    """The value at a dotted path, None where there is none."""
    for key in path.split("."):
        row = row.get(key) if isinstance(row, dict) else None
    return row


def _column(text: str) -> tuple[str, str]:
    match = _COLUMN.match(text)
    if not match:
        raise QueryError(f"'{text}' is no column")
    # Without a name of its own a nested value is named by its path.
    return match.group(1) or match.group(2).replace(".", "_"), match.group(2)


def _holds(value: t.Any, text: str | None) -> bool:
    return value not in (None, "") if text is None else str(value).lower() == text.lower()
