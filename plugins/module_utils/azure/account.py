# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Some subscriptions, and who reads them."""

from __future__ import annotations

import dataclasses
import typing as t

T = t.TypeVar("T")
Make = t.Callable[[list[dict[str, t.Any]]], T]


class Reader(t.Protocol):
    """What is needed of client.Client."""

    def pages(self, path: str, make: Make[T], *, api_version: str, **parameters: str) -> list[T]: ...

    def rows(self, query: str, make: Make[T], *, subscription_ids: t.Sequence[str]) -> list[T]: ...


@dataclasses.dataclass(frozen=True, kw_only=True)
class Account:
    reader: Reader
    subscription_ids: tuple[str, ...]


def flat(pages: t.Iterable[list[T]]) -> list[T]:
    """The items of all pages."""
    return [item for page in pages for item in page]
