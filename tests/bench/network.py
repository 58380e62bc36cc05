# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``make bench-network``: pods on alias addresses beside their hosts and beside VXLAN, ADD beside ptp, and the network plan.

Everything runs in network namespaces of its own; the ways between the nodes take turns in every round.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "collections"), str(ROOT / "tests" / "bench"), str(ROOT / "tests" / "integration" / "cni")]

import network_plan  # noqa: E402
import report  # noqa: E402
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.cni import installed_file, launcher  # noqa: E402
from cni_node import CniNode, Namespace  # noqa: E402
from two_nodes import Pair  # noqa: E402

GOALS = {
    "throughput_vs_host": ">= 0.97",
    "throughput_vs_vxlan": "> 1",
    "latency_vs_host": "<= 1.05",
    "cni_add_vs_ptp": "<= 1.5",
    **network_plan.GOALS,
}
SECONDS = 2
REQUESTS = 5000
PORT = 7500
LIMIT_SECONDS = 120
# Client and server keep to a core each: where a scheduler moves them, runs differ by a third.
SERVER = f"""
import os, socket, sys
os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
server = socket.create_server(("", {PORT}))
print("listening", flush=True)
connection, _peer = server.accept()
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
buffer = bytearray(1 << 20)
if sys.argv[1] == "latency":
    while connection.recv_into(buffer):
        connection.send(b".")
else:
    while connection.recv_into(buffer):
        pass
"""
CLIENT = f"""
import os, socket, sys, time
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
connection = socket.create_connection((sys.argv[2], {PORT}))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
if sys.argv[1] == "latency":
    taken = []
    for _ in range({REQUESTS}):
        start = time.perf_counter()
        connection.send(b".")
        connection.recv(1)
        taken.append(time.perf_counter() - start)
    print(sorted(taken)[len(taken) // 2] * 1e6)
else:
    block, sent, start = bytes(1 << 20), 0, time.perf_counter()
    while time.perf_counter() - start < {SECONDS}:
        connection.sendall(block)
        sent += len(block)
    print(sent * 8 / (time.perf_counter() - start) / 1e9)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=11)
    rounds = parser.parse_args().rounds
    if os.geteuid() != 0:
        print("bench-network needs root for its network namespaces; run: sudo make bench-network", file=sys.stderr)
        return 77
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with Pair(folder / "pair") as pair:
            ways = {kind: between(pair, kind, rounds) for kind in ("throughput", "latency")}
        adds = {count: add_times(folder / f"add{count}", count) for count in (27, 254)}
    middle = {kind: {way: statistics.median(values) for way, values in found.items()} for kind, found in ways.items()}
    figures["throughput_vs_host"] = middle["throughput"]["alias"] / middle["throughput"]["host"]
    figures["throughput_vs_vxlan"] = middle["throughput"]["alias"] / middle["throughput"]["vxlan"]
    figures["latency_vs_host"] = middle["latency"]["alias"] / middle["latency"]["host"]
    figures["latency_vs_vxlan"] = middle["latency"]["alias"] / middle["latency"]["vxlan"]
    figures["cni_add_vs_ptp"] = statistics.median(adds[27]["gpufleet-alias"]) / statistics.median(adds[27]["ptp"])
    for way, value in middle["throughput"].items():
        figures[f"gbit_{way}"] = value
    for way, value in middle["latency"].items():
        figures[f"microseconds_{way}"] = value
    for count, found in adds.items():
        for program, times in found.items():
            short = program.removeprefix("gpufleet-")
            figures[f"add_ms_{short}_{count}_p50"] = statistics.median(times)
            figures[f"add_ms_{short}_{count}_p99"] = sorted(times)[int(len(times) * 0.99)]
    plan, plan_runs = network_plan.figures()
    figures |= plan
    runs = {"ways": ways, "add_ms": {str(count): found for count, found in adds.items()}, "plan": plan_runs, "peer": peer()}
    report.write("network", figures, runs, GOALS)
    return 0


def between(pair: Pair, kind: str, rounds: int) -> dict[str, list[float]]:
    """Gbit/s of one TCP connection, or the median microseconds of a request of one byte and its answer, of each way and round."""
    found: dict[str, list[float]] = {way: [] for way in pair.ways}
    for _ in range(rounds):
        for way, (client, server, address) in pair.ways.items():
            listening = subprocess.Popen(inside(server, SERVER, kind), stdout=subprocess.PIPE, text=True)
            assert listening.stdout is not None
            listening.stdout.readline()
            done = subprocess.run(inside(client, CLIENT, kind, address), capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS)
            listening.wait(timeout=LIMIT_SECONDS)
            found[way].append(float(done.stdout))
    return found


def inside(namespace: Namespace, program: str, *arguments: str) -> list[str]:
    return ["nsenter", f"--net={namespace.path}", "--", "/usr/bin/python3", "-IS", "-c", program, *arguments]


def add_times(folder: pathlib.Path, count: int) -> dict[str, list[float]]:
    """Milliseconds of every ADD until a node is full, of both programs in turns; beside them the start of Python alone."""
    plugin = folder / "bin" / "gpufleet-alias"
    plugin.parent.mkdir(parents=True)
    plugin.write_text(installed_file.text().replace(launcher.CACHE, str(folder / "cache")), encoding="utf-8")
    plugin.chmod(0o755)
    addresses = [f"10.1.{number // 250}.{number % 250 + 5}" for number in range(count)]
    found: dict[str, list[float]] = {"gpufleet-alias": [], "ptp": [], "python": []}
    for program in ("gpufleet-alias", "ptp"):
        node = CniNode(folder / program, plugin)
        try:
            config = node.config(addresses=addresses)
            config["type"] = program
            for item in config["ipam"]["ranges"][0]:
                item["subnet"] = "10.1.0.0/16"
            given = json.dumps(config)
            path = str(plugin) if program == "gpufleet-alias" else f"/usr/lib/cni/{program}"
            for number in range(count):
                pod = node.pod()
                start = time.perf_counter()
                node.finish(node.start("ADD", given, f"c{number}", pod.path, plugin=path))
                found[program].append((time.perf_counter() - start) * 1e3)
                start = time.perf_counter()
                subprocess.run(["nsenter", f"--net={node.network.path}", "--", "/usr/bin/python3", "-IS", "-c", ""], check=True)
                found["python"].append((time.perf_counter() - start) * 1e3)
        finally:
            node.close()
    return found


def peer() -> dict[str, str]:
    done = subprocess.run(
        ["dpkg-query", "-W", "-f", "${Version}", "containernetworking-plugins"], capture_output=True, text=True, check=False
    )
    return {"ptp": f"ptp and host-local of containernetworking-plugins {done.stdout}", "vxlan": "bridge and VXLAN with fixed entries"}


if __name__ == "__main__":
    sys.exit(main())
