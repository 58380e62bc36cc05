# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one process of a lab: ARM on the machine's loopback, IMDS and the internet host inside the lab's networks.

A socket belongs to the network namespace in which it was made, so the daemon makes each where it is needed
and serves them all from one loop. It runs inside the lab's mount namespace, where the networks have their names.
"""

from __future__ import annotations

import argparse
import asyncio
import concurrent.futures
import ctypes
import functools
import json
import os
import pathlib
import signal
import socket
import sys

from aiohttp import web

from . import description, effects, fabric, fleet, node
from .access import private
from .azure import service
from .control import Control, socket_path
from .current import Current
from .internet import internet_application
from .paths import Paths

CLONE_NEWNET = 0x40000000


def main() -> int:
    parser = argparse.ArgumentParser(prog="lab.daemon", description=__doc__)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--description", required=True, type=pathlib.Path)
    options = parser.parse_args()
    paths = Paths(options.prefix, inside=True)
    public_key = (paths.access / "id_ed25519.pub").read_text(encoding="ascii").strip()
    built = fleet.build(description.load(options.description), prefix=options.prefix, public_key=public_key)
    asyncio.run(serve(paths, built))
    return 0


async def serve(paths: Paths, built: fleet.Fleet) -> None:
    """Serve until SIGTERM; the ready file says where."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    arm = socket.create_server(("127.0.0.1", 0))
    imds = socket_in(fabric.ROUTER, (fabric.METADATA_ADDRESS, 80))
    wireserver = socket_in(fabric.ROUTER, (fabric.WIRESERVER_ADDRESS, 80))
    internet = socket_in(fabric.INTERNET[0], (fabric.INTERNET[1].partition("/")[0], 80))
    base_url = f"https://127.0.0.1:{arm.getsockname()[1]}"
    current = Current(built, functools.partial(effects.perform, paths))
    azure = service.Service.create(
        current,
        base_url=base_url,
        directory=paths.access,
        ssh_config=paths.access / "ssh_config",
        run_script=functools.partial(node.run_script, paths),
    )
    runners = [
        await _site(azure.arm, arm, ssl_context=azure.ssl_context),
        await _site(azure.imds, imds),
        await _site(azure.wireserver, wireserver),
        await _site(internet_application(), internet),
    ]
    control = web.AppRunner(Control(current, azure).application(), access_log=None, shutdown_timeout=1.0)
    await control.setup()
    await web.UnixSite(control, str(socket_path(paths))).start()
    runners.append(control)
    private(paths.access / "azure.env", "".join(f"{key}={value}\n" for key, value in azure.environment.items()))
    private(paths.run / "daemon.json", json.dumps({"arm": base_url, "pid": os.getpid()}) + "\n")
    await stop.wait()
    for runner in runners:
        await runner.cleanup()


async def _site(app: web.Application, sock: socket.socket, **options: object) -> web.AppRunner:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    await web.SockSite(runner, sock, **options).start()  # type: ignore[arg-type]
    return runner


def socket_in(network: str, address: tuple[str, int]) -> socket.socket:
    """A listening socket in one of the lab's network namespaces, made by a thread that goes there and ends there."""

    def make() -> socket.socket:
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/run/netns/{network}", "rb") as file:
            if libc.setns(file.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"cannot enter network namespace {network}")
        return socket.create_server(address)

    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(make).result()


if __name__ == "__main__":
    sys.exit(main())
