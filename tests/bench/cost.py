# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a command costs the controller and the nodes of a lab: CPU on both sides, connections, sessions, bytes."""

from __future__ import annotations

import copy
import ctypes
import dataclasses
import os
import pathlib
import resource
import signal
import statistics
import subprocess
import sys
import time
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from lab import container, namespace  # noqa: E402
from lab.paths import Paths  # noqa: E402

PR_SET_CHILD_SUBREAPER = 36
LIMIT_SECONDS = 600


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cost:
    """Per node, but for ``wall``. CPU in seconds, ``kilobytes`` of 1,000 bytes on the node's NIC, both ways."""

    wall: float
    controller_cpu: float
    node_cpu: float
    connections: float
    sessions: float
    kilobytes: float


def median(costs: t.Sequence[Cost]) -> Cost:
    """Of each figure for itself."""
    return Cost(**{field.name: statistics.median(getattr(cost, field.name) for cost in costs) for field in dataclasses.fields(Cost)})


class Nodes:
    """The nodes of a lab, seen from the machine."""

    def __init__(self, paths: Paths, names: t.Sequence[str]) -> None:
        self.paths = paths
        self.names = list(names)
        self._cgroups = {name: self._cgroup(name) for name in self.names}
        # The sessions of a connection are logged from this level on.
        for name in self.names:
            self._inside(name, "sh", "-c", "echo LogLevel VERBOSE > /etc/ssh/sshd_config.d/bench.conf && systemctl reload ssh")

    def first(self, count: int) -> Nodes:
        """Some of them, for what is too slow for all."""
        some = copy.copy(self)
        some.names = self.names[:count]
        some._cgroups = {name: self._cgroups[name] for name in some.names}
        return some

    def _inside(self, name: str, *argv: str) -> str:
        return namespace.inside(self.paths, container.podman(self.paths, "exec", name, *argv)).stdout

    def _cgroup(self, name: str) -> str:
        pid = namespace.inside(self.paths, container.podman(self.paths, "inspect", "--format", "{{.State.Pid}}", name)).stdout.strip()
        lines = pathlib.Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii").splitlines()
        parts = next(line for line in lines if line.startswith("0::")).removeprefix("0::").split("/")
        last = max(number for number, part in enumerate(parts) if part.startswith("libpod-"))
        return "/".join(parts[: last + 1])

    def cpu(self) -> float:
        """Seconds that all nodes have used, sshd included."""
        total = 0
        for group in self._cgroups.values():
            text = namespace.inside(self.paths, ["cat", f"/sys/fs/cgroup{group}/cpu.stat"]).stdout
            total += int(dict(line.split() for line in text.splitlines())["usage_usec"])
        return total / 1e6

    def bytes(self) -> int:
        """What has passed the NICs of all nodes, both ways."""
        total = 0
        for name in self.names:
            text = namespace.inside(self.paths, ["sh", "-c", "cat /sys/class/net/eth0/statistics/[rt]x_bytes"], network=name).stdout
            total += sum(int(word) for word in text.split())
        return total

    def logged(self, since: float, text: str) -> int:
        """Lines of sshd's journal with a text, over all nodes."""
        found = 0
        for name in self.names:
            lines = self._inside(name, "journalctl", "--quiet", "--output=cat", "--unit=ssh", f"--since=@{since:.3f}")
            found += lines.count(text)
        return found


def measure(nodes: Nodes, argv: t.Sequence[str], environment: t.Mapping[str, str], cwd: pathlib.Path) -> tuple[Cost, str]:
    """Run one command to its end, its background connections included; returns its cost and what it printed, both outputs.

    Raises RuntimeError when it fails.
    """
    count = len(nodes.names)
    since, node_cpu, size = time.time(), nodes.cpu(), nodes.bytes()
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, __file__, *argv],
        cwd=cwd,
        # make forbids Python to keep what it compiled; a user's commands do not compile themselves anew each time.
        env={**{key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    wall = time.monotonic() - started
    if done.returncode != 0:
        raise RuntimeError(f"`{' '.join(argv)}` ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    cost = Cost(
        wall=wall,
        controller_cpu=float(done.stderr.splitlines()[-1]) / count,
        node_cpu=(nodes.cpu() - node_cpu) / count,
        kilobytes=(nodes.bytes() - size) / 1000 / count,
        connections=nodes.logged(since, "Accepted publickey") / count,
        sessions=nodes.logged(since, "Starting session: command") / count,
    )
    return cost, done.stdout + done.stderr


def _alone(argv: t.Sequence[str]) -> int:
    """Run a command, end what it leaves in the background, and print as the last line of stderr what CPU it all took.

    A subreaper gets ssh's background connections as its children, so that their CPU is counted too.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    status = subprocess.run(argv, check=False).returncode
    children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children")
    while left := children.read_text(encoding="ascii").split():
        for child in left:
            os.kill(int(child), signal.SIGTERM)
        os.waitpid(-1, 0)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(used.ru_utime + used.ru_stime, file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(_alone(sys.argv[1:]))
