# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods of a real container runtime on the lab's nodes: containerd wires them by the CNI configuration that it finds."""

from __future__ import annotations

import json
import time
import typing as t

from gpufleet.lab_access import Node

# A bind of the node's own root is the pods' file system: they have what the node has.
ROOT = "/srv/pod"
LIMIT_SECONDS = 60
POLL_SECONDS = 0.1
# ctr would ask for a CPU controller, which containers on this machine may not have.
OPTIONS = ("--rootfs", "--cni", "--cpu-shares", "0", "--env", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")


# Ends when it is told to, which the first process of a pid namespace does only with a handler.
PROCESS = "sh -c 'trap exit TERM; sleep infinity & wait'"


def start_line(name: str) -> str:
    """The shell command that starts a pod, with ctr beside it."""
    return f"systemd-run --quiet --collect --unit=pod-{name} ctr run --rm {' '.join(OPTIONS)} {ROOT} {name} {PROCESS}"


class Pods:
    """The pods of one node. ctr stays beside each, and takes its network down when it ends."""

    def __init__(self, node: Node) -> None:
        self.node = node
        node.run(["sh", "-c", f"mkdir -p {ROOT}; mountpoint -q {ROOT} || mount --bind / {ROOT}"])
        # Where the newer ctr looks for plugins, whatever containerd's own configuration says.
        node.run(["sh", "-c", "mkdir -p /opt/cni; ln -sfn /usr/lib/cni /opt/cni/bin"])

    def start(self, *names: str) -> None:
        """Start pods, all at once, and wait until all of them run."""
        self.try_to_start(*names)
        failed = [self.said(name) for name in names if not self.running(name)]
        assert not failed, "\n".join(failed)

    def try_to_start(self, *names: str) -> None:
        """Start pods, and wait until each runs or has failed; ``said`` tells why."""
        lines = [start_line(name) for name in names]
        self.node.run(["sh", "-c", "; ".join(lines)])
        self._until(lambda: all(self.running(name) or not self._active(name) for name in names))

    def start_detached(self, *names: str) -> None:
        """Start pods whose network nobody takes down."""
        for name in names:
            self.node.run(["sh", "-c", f"ctr run --detach {' '.join(OPTIONS)} {ROOT} {name} {PROCESS} </dev/null"])

    def stop(self, *names: str) -> None:
        lines = [f"ctr task kill -s SIGKILL {name}" for name in names]
        self.node.run(["sh", "-c", "; ".join(lines)])
        self._until(lambda: not any(self._active(name) for name in names))

    def running(self, name: str) -> bool:
        return any(line.split()[0] == name and line.split()[-1] == "RUNNING" for line in self.node.run(["ctr", "task", "ls"]).splitlines())

    def said(self, name: str) -> str:
        """What ctr said of a pod."""
        return self.node.run(["journalctl", "--no-pager", "--output=cat", f"--unit=pod-{name}"])

    def addresses(self) -> dict[str, str]:
        """Each pod's address, by its name, as the CNI plugin recorded it."""
        text = self.node.run(["sh", "-c", "cat /run/gpufleet/pods/*.json 2>/dev/null || true"])
        records = [json.loads(line) for line in text.splitlines()]
        return {record["container_id"].removeprefix("default-"): record["address"] for record in records}

    def run(self, name: str, *argv: str) -> str:
        """A command in a pod. Raises RuntimeError when it fails."""
        return self.node.run(["ctr", "task", "exec", "--exec-id", f"e{time.monotonic_ns()}", name, *argv])

    def succeeds(self, name: str, *argv: str) -> bool:
        try:
            self.run(name, *argv)
        except RuntimeError:
            return False
        return True

    def left(self) -> dict[str, list[str]]:
        """What pods leave on a node: nothing, once they are gone."""
        interfaces = json.loads(self.node.run(["ip", "-json", "link"]))
        routes = json.loads(self.node.run(["ip", "-json", "route"]))
        return {
            "interfaces": [item["ifname"] for item in interfaces if item["ifname"] not in ("lo", "eth0")],
            "routes": [item["dst"] for item in routes if item["dev"] != "eth0"],
            "leases": self.node.run(["sh", "-c", "cd /run/gpufleet/cni/alias 2>/dev/null && ls -d 10.* 2>/dev/null || true"]).split(),
            "records": self.node.run(["sh", "-c", "ls /run/gpufleet/pods 2>/dev/null || true"]).split(),
        }

    def remove(self, name: str) -> None:
        """Remove what a pod that could not be started left with the runtime."""
        self.node.run(["sh", "-c", f"ctr task rm --force {name}; ctr container rm {name}"])

    def network_down(self, name: str) -> None:
        """What a runtime does for a pod that it knows only from its own records: DEL, without a namespace."""
        script = (
            "import json, os, subprocess, sys\n"
            "conflist = json.load(open('/etc/cni/net.d/10-gpufleet-alias.conflist'))\n"
            "for plugin in reversed(conflist['plugins']):\n"
            "    given = dict(plugin, name=conflist['name'], cniVersion=conflist['cniVersion'])\n"
            "    environment = dict(os.environ, CNI_COMMAND='DEL', CNI_CONTAINERID=sys.argv[1], CNI_NETNS='', CNI_IFNAME='eth0', CNI_PATH='/usr/lib/cni')\n"
            "    subprocess.run(['/usr/lib/cni/' + plugin['type']], input=json.dumps(given), env=environment, text=True, check=True)\n"
        )
        self.node.run(["python3", "-", f"default-{name}"], stdin=script)

    def clear(self) -> None:
        tasks = [line.split() for line in self.node.run(["ctr", "task", "ls"]).splitlines()[1:]]
        running = [words[0] for words in tasks if words[-1] == "RUNNING"]
        if running:
            self.stop(*running)
        for name in self.node.run(["ctr", "container", "ls", "--quiet"]).split():
            self.remove(name)
        for name in self.addresses():
            self.network_down(name)

    def _active(self, name: str) -> bool:
        done = self.node.run(["sh", "-c", f"systemctl is-active pod-{name} || true"]).strip()
        return done in ("active", "activating", "deactivating")

    @staticmethod
    def _until(is_true: t.Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT_SECONDS
        while not is_true():
            assert time.monotonic() < deadline, "not within the limit"
            time.sleep(POLL_SECONDS)


NOTHING: dict[str, list[str]] = {"interfaces": [], "routes": [], "leases": [], "records": []}
