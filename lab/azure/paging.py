# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages: a list, a place in it, and the link to the next."""

from __future__ import annotations

import base64
import binascii
import typing as t

from .errors import ArmError

Document = dict[str, t.Any]
# Sizes of Azure's pages. Scale sets: 50 a page, seen by users of its command line. Virtual machines: about 200, seen by
# users of its SDK. Instances and NICs of a set are documented nowhere; 100 is what the lab assumes.
SCALE_SETS = 50
VIRTUAL_MACHINES = 200
INSTANCES = 100
INTERFACES = 100
SMALL = 1000


def page(
    items: t.Sequence[t.Any], render: t.Callable[[t.Any], Document], *, size: int, token: str | None, url: t.Callable[[str], str]
) -> Document:
    """One page of ``items``, rendered only now; ``url`` makes the link from a skip token.

    Raises ArmError for a token that was never given out.
    """
    start = _start(token, len(items))
    document: Document = {"value": [render(item) for item in items[start : start + size]]}
    if start + size < len(items):
        document["nextLink"] = url(_token(start + size))
    return document


def _token(start: int) -> str:
    return base64.urlsafe_b64encode(f"start={start}".encode()).decode().rstrip("=")


def _start(token: str | None, count: int) -> int:
    if not token:
        return 0
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode("ascii")
        start = int(text.removeprefix("start="))
    except (binascii.Error, ValueError) as error:
        raise _stale(token) from error
    if not text.startswith("start=") or not 0 < start < count:
        raise _stale(token)
    return start


def _stale(token: str) -> ArmError:
    return ArmError(400, "InvalidParameter", f"The $skiptoken '{token}' is invalid or no longer valid.")
