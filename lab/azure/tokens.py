# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Access tokens: random, for one audience, with an end. They are never logged."""

from __future__ import annotations

import dataclasses
import secrets
import time
import typing as t

LIFETIME_SECONDS = 3600


@dataclasses.dataclass(frozen=True, kw_only=True)
class Token:
    value: str
    audience: str
    expires: float
    principal: str = ""


class Tokens:
    """The tokens that were given out. ``clock`` gives seconds since the epoch."""

    def __init__(self, clock: t.Callable[[], float] = time.time) -> None:
        self.clock = clock
        self._given: dict[str, Token] = {}

    def issue(self, audience: str, principal: str = "") -> Token:
        token = Token(
            value=secrets.token_urlsafe(48), audience=audience.rstrip("/"), expires=self.clock() + LIFETIME_SECONDS, principal=principal
        )
        self._given[token.value] = token
        return token

    def find(self, value: str) -> Token | None:
        return self._given.get(value)
