# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's Azure on loopback, without nodes, and Azure's own clients for it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import pathlib
import socket
import threading
import typing as t

from aiohttp import web
from azure.identity import ClientSecretCredential
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.network import NetworkManagementClient

from lab import description, fleet
from lab.azure.run_command import Output
from lab.azure.service import Service
from lab.current import Current

TWO_CLUSTERS = pathlib.Path(__file__).resolve().parents[3] / "integration" / "fleets" / "two_clusters.yml"
GROUP = "gpufleet-lab"
START_LIMIT_SECONDS = 30


@dataclasses.dataclass(frozen=True, kw_only=True)
class Azure:
    """A running one. ``service`` and ``current`` are its insides, for what no client can arrange."""

    url: str
    authority_file: str
    subscription: str
    service: Service
    current: Current

    @property
    def machine(self) -> str:
        """The name of the first instance of a Flexible set."""
        fleet_now = self.current.fleet
        return next(item.name for item in fleet_now.instances if not fleet_now.scale_set(item.scale_set).uniform)

    def credential(self, **changed: str) -> ClientSecretCredential:
        """As a user of the lab logs in; ``changed`` are other values of tenant_id, client_id, client_secret."""
        principal = self.service.principal
        given = {"tenant_id": principal.tenant, "client_id": principal.client_id, "client_secret": principal.secret, **changed}
        return ClientSecretCredential(**given, authority=self.url, disable_instance_discovery=True, connection_verify=self.authority_file)

    def _arguments(self, **more: t.Any) -> dict[str, t.Any]:
        return {
            "credential": self.credential(),
            "subscription_id": self.subscription,
            "base_url": self.url,
            "credential_scopes": [f"{self.url}/.default"],
            "connection_verify": self.authority_file,
            **more,
        }

    def compute(self, **more: t.Any) -> ComputeManagementClient:
        return ComputeManagementClient(**self._arguments(**more))

    def network(self, **more: t.Any) -> NetworkManagementClient:
        return NetworkManagementClient(**self._arguments(**more))

    def token(self) -> str:
        return self.credential().get_token(f"{self.url}/.default").token


@contextlib.contextmanager
def running(
    directory: pathlib.Path, file: pathlib.Path = TWO_CLUSTERS, perform: t.Any = None, *, throttled: bool = True
) -> t.Iterator[Azure]:
    """Serve one from a thread of its own."""
    built = fleet.build(description.load(file), prefix="unit", public_key="ssh-ed25519 AAAA unit")
    started, stop = threading.Event(), asyncio.Event()
    found: dict[str, t.Any] = {}

    async def serve() -> None:
        current = Current(built, perform) if perform else Current(built)
        sock = socket.create_server(("127.0.0.1", 0))
        url = f"https://127.0.0.1:{sock.getsockname()[1]}"
        # Scripts are taken and say their own text: there is no node to run them.
        service = Service.create(
            current,
            base_url=url,
            directory=directory,
            run_script=lambda _item, script: Output(stdout=script, stderr=""),
            throttled=throttled,
        )
        runner = web.AppRunner(service.arm, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        await web.SockSite(runner, sock, ssl_context=service.ssl_context).start()
        found.update(loop=asyncio.get_running_loop(), url=url, service=service, current=current)
        started.set()
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(START_LIMIT_SECONDS)
    yield Azure(
        url=found["url"],
        authority_file=str(directory / "ca.pem"),
        subscription=built.description.subscription,
        service=found["service"],
        current=found["current"],
    )
    found["loop"].call_soon_threadsafe(stop.set)
    thread.join(START_LIMIT_SECONDS)
