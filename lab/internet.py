# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host on the lab's internet: sends as many bytes as asked, and says who asked."""

from __future__ import annotations

from aiohttp import web

# More than enough to see counters move; a lab is no load test.
BYTES_LIMIT = 100_000_000
BLOCK = bytes(65536)


def internet_application() -> web.Application:
    app = web.Application()
    app.router.add_get("/bytes/{count:\\d+}", _bytes)
    app.router.add_get("/source", _source)
    return app


async def _bytes(request: web.Request) -> web.StreamResponse:
    count = int(request.match_info["count"])
    if count > BYTES_LIMIT:
        raise web.HTTPBadRequest(text=f"at most {BYTES_LIMIT} bytes\n")
    response = web.StreamResponse(headers={"Content-Length": str(count), "Content-Type": "application/octet-stream"})
    await response.prepare(request)
    while count:
        block = BLOCK[: min(count, len(BLOCK))]
        await response.write(block)
        count -= len(block)
    return response


async def _source(request: web.Request) -> web.Response:
    return web.Response(text=f"{request.remote}\n")
