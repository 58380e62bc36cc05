# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's Azure as a server that costs next to nothing: a process of its own, that keeps what it once rendered and compressed.

``python kept_azure.py --description FILE --directory DIR --latency SECONDS`` serves until its standard input ends. Every request
waits as long as ``--latency`` says; none is throttled. What is kept is given without another look at the token.
``started()`` runs it for a benchmark.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import gzip
import json
import pathlib
import socket
import ssl
import subprocess
import sys
import typing as t
import urllib.request

from aiohttp import web

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from lab import description, fleet  # noqa: E402
from lab.azure.service import Service  # noqa: E402
from lab.current import Current  # noqa: E402

# Batches ask their own server for each read. Those are no calls of a client.
INNER = "aiohttp/"
KEPT = ("/virtualmachines", "/networkinterfaces", "/virtualmachinescalesets", "/resources")


class Kept:
    """Answers by what was asked, and how many calls there were."""

    def __init__(self, latency: float) -> None:
        self.calls = 0
        self._latency = latency
        self._answers: dict[tuple[str, str, bytes], tuple[bytes, str]] = {}

    @web.middleware
    async def middleware(self, request: web.Request, handler: t.Any) -> web.StreamResponse:
        if request.path == "/calls":
            return web.json_response(self.calls)
        inner = INNER in request.headers.get("User-Agent", "")
        self.calls += not inner
        await asyncio.sleep(self._latency)
        if inner or not request.path.lower().endswith(KEPT):
            answer: web.StreamResponse = await handler(request)
            if answer.status == 202:
                # What Azure says here is not known, so clients take their own interval.
                answer.headers.popall("Retry-After", None)
            return answer
        key = (request.method, request.path_qs, await request.read())
        if key not in self._answers:
            made = await handler(request)
            if not isinstance(made, web.Response) or made.status != 200 or not isinstance(made.body, bytes):
                return made if isinstance(made, web.StreamResponse) else web.Response(status=500)
            self._answers[key] = (gzip.compress(made.body, 6), made.content_type)
        body, content_type = self._answers[key]
        return web.Response(body=body, headers={"Content-Encoding": "gzip", "Content-Type": content_type})


async def serve(file: pathlib.Path, directory: pathlib.Path, latency: float) -> None:
    built = fleet.build(description.load(file), prefix="bench", public_key="")
    sock = socket.create_server(("127.0.0.1", 0), backlog=1024)
    url = f"https://127.0.0.1:{sock.getsockname()[1]}"
    service = Service.create(Current(built), base_url=url, directory=directory, throttled=False)
    service.arm.middlewares.insert(0, Kept(latency).middleware)
    runner = web.AppRunner(service.arm, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.SockSite(runner, sock, ssl_context=service.ssl_context).start()
    print(json.dumps(service.environment), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await runner.cleanup()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Served:
    """A running one. ``environment`` is what its clients need."""

    environment: dict[str, str]

    def calls(self) -> int:
        """All requests so far, logging in too."""
        known = ssl.create_default_context(cafile=self.environment["GPUFLEET_CA_FILE"])
        with urllib.request.urlopen(f"{self.environment['GPUFLEET_ARM_ENDPOINT']}/calls", context=known, timeout=60) as answer:
            return int(json.load(answer))


@contextlib.contextmanager
def started(directory: pathlib.Path, file: pathlib.Path, latency: float) -> t.Iterator[Served]:
    """Serve the fleet that ``file`` describes, from ``directory``, which is made."""
    directory.mkdir(mode=0o700)
    argv = [sys.executable, __file__, "--description", str(file), "--directory", str(directory), "--latency", str(latency)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        line = process.stdout.readline()
        if not line:
            raise RuntimeError("the served Azure did not start; what it said is above")
        yield Served(environment=json.loads(line))
        process.stdin.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--description", type=pathlib.Path, required=True)
    parser.add_argument("--directory", type=pathlib.Path, required=True)
    parser.add_argument("--latency", type=float, required=True)
    options = parser.parse_args()
    asyncio.run(serve(options.description, options.directory, options.latency))
