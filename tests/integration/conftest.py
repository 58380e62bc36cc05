# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labs for tests: each suite has one of its own prefix, brought up when it is first asked for, gone at the end."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time
import typing as t

import pytest
from azure.identity import ClientSecretCredential
from azure.mgmt.compute import ComputeManagementClient

from gpufleet import playbook
from gpufleet.lab_access import Node
from lab import lifecycle, namespace
from lab.paths import ROOT, Paths

FLEETS = pathlib.Path(__file__).resolve().parent / "fleets"
COMMAND_LIMIT_SECONDS = 300
EVENTUALLY_SECONDS = 60
POLL_SECONDS = 0.2


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.geteuid() != 0:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="the lab needs root; run: sudo make integration"))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lab:
    """A lab that is up. ``instances`` are those of its fleet.json."""

    prefix: str
    instances: tuple[dict[str, t.Any], ...]

    @property
    def paths(self) -> Paths:
        return Paths(self.prefix)

    @property
    def environment(self) -> dict[str, str]:
        """The variables by which azure-identity, the SDK and the inventory reach this lab."""
        lines = (self.paths.access / "azure.env").read_text(encoding="utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)  # type: ignore[misc]

    def compute(self) -> ComputeManagementClient:
        """Azure's own client for this lab's Resource Manager."""
        given = self.environment
        url, authority = given["GPUFLEET_ARM_ENDPOINT"], given["GPUFLEET_CA_FILE"]
        credential = ClientSecretCredential(
            given["AZURE_TENANT_ID"],
            given["AZURE_CLIENT_ID"],
            given["AZURE_CLIENT_SECRET"],
            authority=url,
            disable_instance_discovery=True,
            connection_verify=authority,
        )
        return ComputeManagementClient(
            credential, given["AZURE_SUBSCRIPTION_ID"], base_url=url, credential_scopes=[f"{url}/.default"], connection_verify=authority
        )

    def node(self, computer_name: str) -> Node:
        """A node by its computer name, reached as a person would: ssh through the hub."""
        found = next(item for item in self.instances if item["computer_name"] == computer_name)
        return Node(self.paths.access, found["addresses"][0])

    def inside(self, *argv: str, network: str = "", stdin: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        """A command in one of the lab's network namespaces: "hub", "storage", "internet", "fabric", or a node's computer name."""
        return namespace.inside(self.paths, argv, network=network, stdin=stdin, check=check)

    def play(self, name: str, directory: pathlib.Path, arguments: str = "", **environment: str) -> playbook.Run:
        """A playbook of the collection on this lab, with what it answered for every host."""
        return playbook.run(
            name, directory=directory, environment={"GPUFLEET_LAB": self.prefix, **environment}, arguments=arguments, quiet=True
        )

    def command(self, *argv: str, cwd: pathlib.Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
        """A command beside this interpreter (ansible-playbook, ansible-inventory, gpufleet) as a user would start it on this lab."""
        program = pathlib.Path(sys.executable).parent / argv[0]
        return subprocess.run(
            [str(program), *argv[1:]],
            cwd=cwd,
            env={
                **os.environ,
                "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
                "GPUFLEET_LAB": self.prefix,
                "ANSIBLE_NOCOLOR": "1",
                **environment,
            },
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=COMMAND_LIMIT_SECONDS,
            check=False,
        )


@pytest.fixture(scope="session")
def start_lab() -> t.Iterator[t.Callable[..., Lab]]:
    """Brings up a lab of a description in ``fleets/``; all are taken down at the end of the session."""
    prefixes: list[str] = []

    def start(prefix: str, fleet: str) -> Lab:
        lifecycle.down(prefix)
        prefixes.append(prefix)
        lifecycle.up(prefix, FLEETS / f"{fleet}.yml", lambda _line: None)
        document = json.loads((Paths(prefix).access / "fleet.json").read_text(encoding="utf-8"))
        return Lab(prefix=prefix, instances=tuple(document["instances"]))

    yield start
    for prefix in prefixes:
        lifecycle.down(prefix)


@pytest.fixture
def eventually() -> t.Callable[[t.Callable[[], bool]], None]:
    """Waits until something is true; what cannot be asked yet (a node that boots) is not true yet."""

    def wait(is_true: t.Callable[[], bool]) -> None:
        deadline = time.monotonic() + EVENTUALLY_SECONDS
        while True:
            try:
                if is_true():
                    return
            except (RuntimeError, subprocess.TimeoutExpired):
                pass
            assert time.monotonic() < deadline, "not within the limit"
            time.sleep(POLL_SECONDS)

    return wait
