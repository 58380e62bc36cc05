# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults on demand: which requests go wrong, how, and how often.

A fault is a small document, for example ``{"path": "virtualMachines$", "status": 429, "retry_after": 2, "times": 3}``.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import typing as t

Document = dict[str, t.Any]
# Of ARM's lists: an item or the list is null, the next page is this one again, or there is none. Of IMDS: addresses are
# missing. Of both: the connection ends in the middle.
ANSWERS = ("null_item", "null_list", "repeat_page", "no_next_link", "fewer_addresses", "no_secondaries", "cut")
OUTCOMES = ("failed", "never")
# What Azure calls the statuses that it fails with.
CODES = {
    400: "InvalidParameter",
    401: "ExpiredAuthenticationToken",
    403: "AuthorizationFailed",
    404: "ResourceNotFound",
    409: "OperationNotAllowed",
    412: "PreconditionFailed",
    429: "TooManyRequests",
    500: "InternalServerError",
    502: "BadGateway",
    503: "ServiceUnavailable",
    504: "GatewayTimeout",
}


class FaultError(ValueError):
    """A fault that cannot be understood; the message says what is wrong and what would be right."""


@dataclasses.dataclass(kw_only=True)
class Fault:
    """``path`` is a pattern that is searched in the request's path and query; ``method`` a pattern for all of the method.

    The first ``after`` matching requests pass, the next ``times`` do not, then all pass again. ``latency`` (seconds) comes
    before anything else. ``status`` (with ``code`` and ``retry_after``) is answered in place of the right answer,
    ``answer`` bends the right one, ``operation`` decides how a long-running operation ends.
    """

    path: str = ""
    method: str = ".*"
    after: int = 0
    times: int = 1
    latency: float = 0.0
    status: int = 0
    code: str = ""
    retry_after: int | None = None
    answer: str = ""
    operation: str = ""
    seen: int = 0

    def matches(self, method: str, path: str) -> bool:
        return bool(re.fullmatch(self.method, method, re.IGNORECASE) and re.search(self.path, path, re.IGNORECASE))


def parse(document: object) -> Fault:
    """A fault from data. Raises FaultError."""
    if not isinstance(document, dict):
        raise FaultError(f"a fault is a mapping, not {type(document).__name__}")
    known = [field.name for field in dataclasses.fields(Fault) if field.name != "seen"]
    for key in document:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            raise FaultError(f"a fault has no {key}" + (f"; did you mean {near[0]}?" if near else f"; known: {', '.join(known)}"))
    fault = Fault(**document)
    _check(fault)
    return fault


def _check(fault: Fault) -> None:
    for name in ("path", "method"):
        try:
            re.compile(getattr(fault, name))
        except (re.error, TypeError) as error:
            raise FaultError(f"{name} {getattr(fault, name)!r} is no regular expression: {error}") from error
    choices: tuple[tuple[str, tuple[t.Any, ...]], ...] = (("answer", ANSWERS), ("operation", OUTCOMES), ("status", tuple(CODES)))
    for name, allowed in choices:
        value = getattr(fault, name)
        if value and value not in allowed:
            raise FaultError(f"{name} is {value!r}, but must be one of: {', '.join(map(str, allowed))}")
    for name in ("after", "times", "latency"):
        value = getattr(fault, name)
        if not isinstance(value, (int, float)) or isinstance(value, bool) or value < 0:
            raise FaultError(f"{name} is {value!r}, but must be a number that is not negative")
    if not (fault.latency or fault.status or fault.answer or fault.operation):
        raise FaultError("a fault needs one of latency, status, answer, operation")


class Faults:
    """The faults that are on."""

    def __init__(self) -> None:
        self.active: list[Fault] = []

    def add(self, document: object) -> None:
        self.active.append(parse(document))

    def clear(self) -> None:
        self.active = []

    def take(self, method: str, path: str) -> list[Fault]:
        """The faults that this request meets; each counts it."""
        met = []
        for fault in self.active:
            if fault.matches(method, path):
                fault.seen += 1
                if fault.after < fault.seen <= fault.after + fault.times:
                    met.append(fault)
        return met


def bend(document: Document, answer: str, page_url: str) -> Document:
    """An answer gone wrong: ``page_url`` is the address that was asked, which ``repeat_page`` names as the next."""
    # Resource Graph has names of its own for items and for the next page.
    items = "data" if "data" in document else "value"
    if answer == "null_list":
        return {**document, items: None}
    if answer == "null_item" and document.get(items):
        return {**document, items: [None, *document[items][1:]]}
    if answer == "repeat_page":
        return {**document, "nextLink": page_url}
    if answer == "no_next_link":
        return {key: value for key, value in document.items() if key not in ("nextLink", "$skipToken")}
    return document
