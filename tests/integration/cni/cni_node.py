# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node and its pods as bare network namespaces, and calls of a CNI plugin as a runtime makes them."""

from __future__ import annotations

import copy
import json
import os
import pathlib
import subprocess
import typing as t

PLUGINS = "/usr/lib/cni"
POOL = [f"10.1.0.{number}" for number in range(10, 37)]
# A call takes 30 ms, of 27 at once on a loaded machine some seconds.
LIMIT_SECONDS = 60


class Namespace:
    """A network namespace that lives as long as this process does; ``path`` is what CNI_NETNS names."""

    def __init__(self) -> None:
        self.holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo there; exec sleep infinity"], stdout=subprocess.PIPE, text=True
        )
        assert self.holder.stdout is not None
        self.holder.stdout.readline()
        self.path = f"/proc/{self.holder.pid}/ns/net"

    def run(self, *argv: str, **options: t.Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["nsenter", f"--net={self.path}", "--", *argv],
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            **{"check": True} | options,
        )

    def ip(self, *argv: str) -> list[dict[str, t.Any]]:
        said = self.run("ip", "-json", *argv).stdout
        found: list[dict[str, t.Any]] = json.loads(said or "[]")
        return found

    def reaches(self, address: str) -> bool:
        """Whether a packet goes there and back: a port that nobody listens on refuses."""
        asked = "import socket, sys; sys.exit(socket.socket().connect_ex((sys.argv[1], 9)) != 111)"
        return self.run("timeout", "5", "python3", "-IS", "-c", asked, address, check=False).returncode == 0

    def close(self) -> None:
        self.holder.kill()
        self.holder.wait()


class Refused(Exception):
    """A plugin's error document."""

    def __init__(self, document: dict[str, t.Any]) -> None:
        super().__init__(document["msg"])
        self.document = document


class CniNode:
    """One node: NIC eth0 with 10.1.0.4, pool of 27, the plugin as it is installed."""

    def __init__(self, folder: pathlib.Path, plugin: pathlib.Path) -> None:
        self.folder, self.plugin = folder, plugin
        self.records, self.leases = folder / "pods", folder / "leases"
        self.network, self.fabric = Namespace(), Namespace()
        self.pods: list[Namespace] = []
        cable = f"link add eth0 type veth peer name port netns {self.fabric.holder.pid}"
        lines = ["link set lo up", cable, "link set eth0 mtu 1500 up", "address add 10.1.0.4/24 dev eth0"]
        self.network.run("ip", "-batch", "-", input="\n".join(lines) + "\n")
        self.fabric.run("ip", "link", "set", "port", "mtu", "9000", "up")

    def close(self) -> None:
        for namespace in (*self.pods, self.network, self.fabric):
            namespace.close()

    def pod(self) -> Namespace:
        self.pods.append(Namespace())
        return self.pods[-1]

    def config(self, version: str = "1.0.0", addresses: t.Sequence[str] = tuple(POOL)) -> dict[str, t.Any]:
        ranges = [{"subnet": "10.1.0.0/24", "rangeStart": address, "rangeEnd": address, "gateway": "10.1.0.4"} for address in addresses]
        return {
            "cniVersion": version,
            "name": "alias",
            "type": "gpufleet-alias",
            "master": "eth0",
            "records": str(self.records),
            "ipam": {"type": "host-local", "dataDir": str(self.leases), "ranges": [ranges], "routes": [{"dst": "0.0.0.0/0"}]},
        }

    def start(
        self,
        command: str,
        config: dict[str, t.Any] | str,
        container: str = "",
        namespace: str = "",
        *,
        plugin: str = "",
        **environment: str,
    ) -> subprocess.Popen[str]:
        """A call under way. Environment: what a runtime sets, ``environment`` on top of it."""
        process = subprocess.Popen(
            ["nsenter", f"--net={self.network.path}", "--", plugin or str(self.plugin)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={
                "PATH": os.environ["PATH"],
                "CNI_COMMAND": command,
                "CNI_CONTAINERID": container,
                "CNI_NETNS": namespace,
                "CNI_IFNAME": "eth0",
                "CNI_PATH": f"{self.plugin.parent}:{PLUGINS}",
                **environment,
            },
        )
        assert process.stdin is not None
        process.stdin.write(config if isinstance(config, str) else json.dumps(config))
        process.stdin.close()
        process.stdin = None
        return process

    @staticmethod
    def finish(process: subprocess.Popen[str]) -> t.Any:
        """What the plugin answered. Raises Refused for an error, and for a traceback fails."""
        said, complained = process.communicate(timeout=LIMIT_SECONDS)
        assert "Traceback" not in complained, complained
        document = json.loads(said) if said.strip() else None
        if process.returncode:
            assert document is not None, f"status {process.returncode} without an error document: {complained}"
            raise Refused(document)
        return document

    def call(self, command: str, config: dict[str, t.Any] | str, container: str = "", namespace: str = "", **more: str) -> t.Any:
        return self.finish(self.start(command, config, container, namespace, **more))

    def chain(self, command: str, conflist: dict[str, t.Any], container: str, namespace: str, previous: t.Any = None) -> t.Any:
        """A whole conflist, as libcni goes through it."""
        plugins = conflist["plugins"] if command in ("ADD", "CHECK") else conflist["plugins"][::-1]
        for item in plugins:
            given = {**copy.deepcopy(item), "name": conflist["name"], "cniVersion": conflist["cniVersion"]}
            given.setdefault("runtimeConfig", {"portMappings": []} if item.get("capabilities") else {})
            if previous is not None:
                given["prevResult"] = previous
            own = item["type"] == "gpufleet-alias"
            said = self.call(command, given, container, namespace, plugin="" if own else f"{PLUGINS}/{item['type']}")
            if command == "ADD":
                previous = said
        return previous

    def left(self) -> dict[str, list[str]]:
        """All that an attachment leaves on a node: empty lists when nothing is there."""
        leases = [path.name for path in (self.leases / "alias").glob("10.*")] if self.leases.exists() else []
        return {
            "interfaces": [item["ifname"] for item in self.network.ip("link") if item["ifname"] not in ("lo", "eth0")],
            "routes": [item["dst"] for item in self.network.ip("route") if item["dst"] != "10.1.0.0/24"],
            "neighbours": [item["dst"] for item in self.network.ip("neigh")],
            "leases": leases,
            "records": [path.name for path in self.records.iterdir()] if self.records.exists() else [],
        }


NOTHING: dict[str, list[str]] = {"interfaces": [], "routes": [], "neighbours": [], "leases": [], "records": []}
