# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many reads in one request. Microsoft does not document it and azure_rm lives by it; the shapes are those that its users report.

Each read is asked of this Resource Manager itself, with the caller's token, so it is throttled and meets faults like any other.
"""

from __future__ import annotations

import asyncio
import pathlib
import ssl
import typing as t
import urllib.parse

import aiohttp
from aiohttp import web

from .context import Answer, Context, Document, Route
from .errors import ArmError

MOST, MOST_AT_ONCE = 500, 20
UNDER_WAY = 16


class Batch:
    """``authority`` is the file of the certificate authority by which this Resource Manager is known."""

    def __init__(self, context: Context, authority: pathlib.Path) -> None:
        self._context = context
        self._authority = authority

    def routes(self) -> tuple[Route, ...]:
        return (Route(method="POST", path="/batch", handler=self.ask),)

    def ask(self, request: web.Request, body: Document) -> Answer | t.Awaitable[Answer]:
        """Up to 20 reads are answered at once, more of them later. Raises ArmError."""
        wanted = body.get("requests")
        if not isinstance(wanted, list) or not wanted or not all(isinstance(item, dict) for item in wanted):
            raise ArmError(400, "InvalidRequestContent", "The request content was invalid: 'requests' is a list of objects.")
        if len(wanted) > MOST:
            raise ArmError(400, "InvalidRequestContent", f"At most {MOST} requests may be in a batch, not {len(wanted)}.")
        if any(str(item.get("httpMethod", "GET")).upper() != "GET" for item in wanted):
            raise ArmError(400, "InvalidRequestContent", "This lab takes reads alone in a batch.")
        if len(wanted) > MOST_AT_ONCE and not all(item.get("name") for item in wanted):
            raise ArmError(400, "InvalidRequestContent", f"With more than {MOST_AT_ONCE} requests each needs a name.")
        token = request.headers["Authorization"]
        if len(wanted) <= MOST_AT_ONCE:
            return self._now(token, wanted)
        answers: Document = {}

        async def work() -> None:
            answers.update(await self._answers(token, wanted))

        begun = self._context.operations.begin("batch", work(), result=lambda: answers, outcome=self._context.outcome.get())
        # No Azure-AsyncOperation: what is at Location is the answer itself.
        headers = self._context.operations.headers(begun, "2022-12-01", "Microsoft.Resources")
        return Answer(status=202, headers={name: headers[name] for name in ("Location", "Retry-After")})

    async def _now(self, token: str, wanted: list[Document]) -> Answer:
        return Answer(status=200, body=await self._answers(token, wanted))

    async def _answers(self, token: str, wanted: list[Document]) -> Document:
        known = ssl.create_default_context(cafile=str(self._authority))
        connector = aiohttp.TCPConnector(ssl=known, limit=UNDER_WAY)
        headers = {"Authorization": token, "Accept-Encoding": "identity"}
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            return {"responses": await asyncio.gather(*(self._answer(session, item) for item in wanted))}

    async def _answer(self, session: aiohttp.ClientSession, item: Document) -> Document:
        # The host of a full address is not asked: a batch reads this Resource Manager alone.
        parts = urllib.parse.urlsplit(str(item.get("relativeUrl") or item.get("url") or ""))
        address = f"{self._context.base_url}{parts.path or '/'}" + (f"?{parts.query}" if parts.query else "")
        async with session.get(address) as response:
            return {
                **({"name": item["name"]} if item.get("name") else {}),
                "httpStatusCode": response.status,
                "headers": dict(response.headers),
                "content": await response.json(content_type=None),
            }
