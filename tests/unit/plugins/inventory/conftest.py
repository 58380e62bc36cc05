# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An Azure on this machine's loopback, and the command ansible-inventory asking it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import typing as t

import pytest
from aiohttp import web

from lab import description, fleet
from lab.azure.service import Service
from lab.current import Current

ROOT = pathlib.Path(__file__).parents[4]
COMMANDS = pathlib.Path(__file__).with_name("commands.py")
FLEET = ROOT / "tests" / "integration" / "fleets" / "two_clusters.yml"
LIMIT_SECONDS = 60


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """How a call of ansible-inventory ended."""

    status: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, t.Any]:
        assert self.status == 0, self.stderr
        return dict(json.loads(self.stdout))

    @property
    def hosts(self) -> dict[str, dict[str, t.Any]]:
        return dict(self.document["_meta"]["hostvars"])


class Inventory:
    """ansible-inventory with a configuration file of a test's own, in an environment that holds no other Azure."""

    def __init__(self, azure: Service, commands: subprocess.Popen[str], folder: pathlib.Path) -> None:
        self.azure = azure
        self.folder = folder
        self._commands = commands
        # Nothing of these may be in any output.
        self.secrets = {azure.principal.secret, azure.principal.expired_secret}

    def __call__(
        self, *arguments: str, variables: t.Mapping[str, str] | None = None, shell: t.Mapping[str, str] | None = None, **options: t.Any
    ) -> Answer:
        """``variables`` are those of env_file, by default the right ones, and ``shell`` of the environment; ``options`` go into
        the configuration file."""
        known = self.azure.environment if variables is None else variables
        (self.folder / "azure.env").write_text("".join(f"{key}={value}\n" for key, value in known.items()), encoding="utf-8")
        file = self.folder / "azure_vmss.yml"
        file.write_text(json.dumps({"plugin": "gpufleet.vmss.azure_vmss", "env_file": "azure.env", **options}), encoding="utf-8")
        return self._ask("ansible-inventory", shell or {}, "-i", str(file), *(arguments or ["--list"]))

    def hosts_of_play(self, limit: str) -> list[str]:
        """The hosts that ansible-playbook takes under this --limit, with the configuration file of the last call."""
        play = self.folder / "play.yml"
        play.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": []}]), encoding="utf-8")
        answer = self._ask("ansible-playbook", {}, "-i", str(self.folder / "azure_vmss.yml"), "--list-hosts", "--limit", limit, str(play))
        assert answer.status == 0, answer.stderr
        return answer.stdout.partition("hosts (")[2].split()[1:]

    def _ask(self, program: str, shell: t.Mapping[str, str], *arguments: str) -> Answer:
        assert self._commands.stdin and self._commands.stdout
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "ANSIBLE_NOCOLOR": "1", "COLUMNS": "4000", **shell}
        self._commands.stdin.write(json.dumps({"program": program, "arguments": arguments, "environment": environment}) + "\n")
        self._commands.stdin.flush()
        answer = Answer(**json.loads(self._commands.stdout.readline()))
        for secret in (*self.secrets, *self.azure.tokens._given):
            assert secret not in answer.stdout + answer.stderr
        return answer


@pytest.fixture(scope="session")
def current() -> Current:
    return Current(fleet.build(description.load(FLEET), prefix="inventory", public_key=""))


@pytest.fixture(scope="session")
def azure(current: Current, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Service]:
    """ARM and the login service, served by a thread."""
    folder = tmp_path_factory.mktemp("azure")
    sock = socket.create_server(("127.0.0.1", 0))
    service = Service.create(current, base_url=f"https://127.0.0.1:{sock.getsockname()[1]}", directory=folder)
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(service.arm, access_log=None, handle_signals=False, shutdown_timeout=1.0)

    async def start() -> None:
        await runner.setup()
        await web.SockSite(runner, sock, ssl_context=service.ssl_context).start()

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(start(), loop).result(LIMIT_SECONDS)
    yield service
    asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(LIMIT_SECONDS)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(LIMIT_SECONDS)
    loop.close()


@pytest.fixture(scope="session")
def commands() -> t.Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_NOCOLOR": "1"}
    with subprocess.Popen(
        [sys.executable, str(COMMANDS)], cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin
        process.stdin.close()


@pytest.fixture
def fault(azure: Service) -> t.Iterator[t.Callable[..., t.Any]]:
    """Turns a fault of Azure on, and gives it back to see how often it was met."""

    def add(**document: t.Any) -> t.Any:
        azure.faults.add(document)
        return azure.faults.active[-1]

    yield add
    azure.faults.clear()


@pytest.fixture
def inventory(azure: Service, commands: subprocess.Popen[str], tmp_path: pathlib.Path) -> Inventory:
    return Inventory(azure, commands, tmp_path)
