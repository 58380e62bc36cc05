# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a network plan says no."""

from __future__ import annotations

import typing as t

from .errors import AzureError
from .network_limits import Limit, Rule


class RefusedError(AzureError):
    """The fleet does not fit. The message says where, what, and what to do; ``limit`` is what it breaks.

    ``needed`` is what the fleet would take of it, None for a rule without a number.
    """

    def __init__(self, limit: Rule, *, where: str, what: str, advice: str, needed: int | None = None) -> None:
        super().__init__(f"{where}: {what}; {advice}")
        self.limit = limit
        self.where = where
        self.what = what
        self.advice = advice
        self.needed = needed

    def but(self, *, what: str = "", advice: str = "") -> RefusedError:
        """The same limit, said otherwise."""
        return RefusedError(self.limit, where=self.where, what=what or self.what, advice=advice or self.advice, needed=self.needed)

    def to_document(self) -> dict[str, t.Any]:
        """The same for machines."""
        return {
            "limit": self.limit.name,
            "unit": self.limit.unit,
            "value": self.limit.value if isinstance(self.limit, Limit) else None,
            "needed": self.needed,
            "where": self.where,
            "source": self.limit.source,
        }


def counted(number: int, noun: str, nouns: str = "") -> str:
    """``1 node``, ``7,500 nodes``."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"
