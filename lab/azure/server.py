# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ARM alone on loopback, without nodes: ``python -m lab.azure.server --directory DIR``. Needs no root."""

from __future__ import annotations

import argparse
import asyncio
import os
import pathlib
import signal
import socket
import sys

from aiohttp import web

from .. import description, fleet
from ..current import Current
from .service import Service


def main() -> int:
    parser = argparse.ArgumentParser(prog="lab.azure.server", description=__doc__)
    parser.add_argument("--description", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1] / "fleets" / "demo.yml")
    parser.add_argument("--directory", type=pathlib.Path, required=True, help="gets ca.pem and azure.env")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    built = fleet.build(description.load(options.description), prefix="server", public_key="")
    asyncio.run(serve(built, options.directory, options.port))
    return 0


async def serve(built: fleet.Fleet, directory: pathlib.Path, port: int = 0) -> None:
    """Serve until SIGTERM or SIGINT; ``azure.env`` appears when it is ready."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    sock = socket.create_server(("127.0.0.1", port))
    base_url = f"https://127.0.0.1:{sock.getsockname()[1]}"
    service = Service.create(Current(built), base_url=base_url, directory=directory)
    runner = web.AppRunner(service.arm, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.SockSite(runner, sock, ssl_context=service.ssl_context).start()
    temporary = directory / "azure.env.part"
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write("".join(f"{key}={value}\n" for key, value in service.environment.items()))
    temporary.rename(directory / "azure.env")
    print(f"ARM at {base_url}; variables in {directory / 'azure.env'}", flush=True)
    await stop.wait()
    await runner.cleanup()


if __name__ == "__main__":
    sys.exit(main())
