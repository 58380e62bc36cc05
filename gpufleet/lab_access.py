# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reaching the nodes of a running lab, as a person would: ssh through the hub, host keys checked."""

from __future__ import annotations

import json
import pathlib
import shlex
import subprocess
import typing as t

ROOT = pathlib.Path(__file__).resolve().parent.parent
POD_SCRIPT = ROOT / "lab" / "pod.py"
COMMAND_LIMIT_SECONDS = 60


class Node:
    """One node of a lab, by its primary address."""

    def __init__(self, lab: pathlib.Path, address: str) -> None:
        self.address = address
        self._ssh = ["ssh", "-F", str(lab / "ssh_config"), address]

    def run(self, argv: t.Sequence[str], *, stdin: str = "") -> str:
        """Run a command as root and return what it prints. Raises RuntimeError with its own words when it fails."""
        done = subprocess.run(
            [*self._ssh, shlex.join(["sudo", *argv])],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=COMMAND_LIMIT_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{self.address}: `{shlex.join(argv)}` failed: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def start(self, argv: t.Sequence[str]) -> subprocess.Popen[str]:
        """Start a command as root; the caller reads its output and waits for it."""
        return subprocess.Popen(
            [*self._ssh, shlex.join(["sudo", *argv])], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def add_pod(self, name: str) -> str:
        """Wire a pod-like namespace by the node's own CNI configuration; returns its address."""
        result = json.loads(self.run(["python3", "-", "add", name], stdin=POD_SCRIPT.read_text(encoding="utf-8")))
        return str(result["ips"][0]["address"]).partition("/")[0]

    def delete_pod(self, name: str) -> None:
        self.run(["python3", "-", "del", name], stdin=POD_SCRIPT.read_text(encoding="utf-8"))

    def counters(self) -> dict[tuple[str, str], int]:
        """Bytes by chain and comment of every accounting rule in the mangle table, as ``iptables-save -c`` has them."""
        found = {}
        for line in self.run(["iptables-save", "-c", "-t", "mangle"]).splitlines():
            if "iptables-exporter" in line:
                words = shlex.split(line)
                count = int(words[0].strip("[]").split(":")[1])
                found[words[2], words[words.index("--comment") + 1]] = count
        return found
