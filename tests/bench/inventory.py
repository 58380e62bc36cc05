# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``make bench-inventory``: listing a fleet from a Resource Manager at 75 ms a call, from the cache, and what ansible-core itself costs.

Beside it azure_rm as it comes, where ``make test-peers`` has made its environment. The Resource Manager is a process of its own
that keeps its answers and never throttles, so that the clients are what is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "bench"), str(ROOT / "tests" / "peers")]

import report  # noqa: E402
import yaml  # noqa: E402
from azure_rm_settings import CONFIGURATION, plain, variables  # noqa: E402
from kept_azure import Served, started  # noqa: E402

BIN = pathlib.Path(sys.executable).parent
PEER = ROOT / "build" / "peers" / "azure-rm" / "bin" / "ansible-inventory"
LATENCY_SECONDS, UNDER_WAY = 0.075, 16
ADDRESSES, SET_SIZE = 27, 100
LIMIT_SECONDS = 3600
FETCH = """
import os, time
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.credentials import Login
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.account import Account
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.listing import Listing
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.query import Access
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.scope import Scope
given = os.environ
login = Login(source="environment", tenant_id=given["AZURE_TENANT_ID"], client_id=given["AZURE_CLIENT_ID"], client_secret=given["AZURE_CLIENT_SECRET"])
subscriptions = (given["AZURE_SUBSCRIPTION_ID"],)
access = Access(subscription_ids=subscriptions, login=login, cloud="AzureCloud", arm_endpoint=given["GPUFLEET_ARM_ENDPOINT"], authority=given["AZURE_AUTHORITY_HOST"], ca_file=given["GPUFLEET_CA_FILE"])
with access.open(parallel=16) as client:
    started = time.monotonic()
    found = Listing([Account(reader=client, subscription_ids=subscriptions)], Scope()).read()
    print(len(found), time.monotonic() - started)
"""
# A child's peak memory starts at its parent's; this parent is small.
ALONE = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr)
sys.exit(status)
"""
GOALS = {
    "wall_vs_azure_rm": ">= 60",
    "cpu_vs_azure_rm": ">= 10",
    "peak_mb": "<= 350",
    "http_calls": "<= 155",
    "fetch_vs_ideal": "<= 1.6",
    "warm_vs_floor": "<= 1.3",
    "warm_graph_cpu": "< 3",
    "warm_one_host_cpu": "< 3",
    "warm_list_hosts_cpu": "< 3",
    "list_mb": "<= 15",
}


class Run(t.NamedTuple):
    wall: float
    cpu: float
    peak_mb: float
    output: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=75, help="of 100 instances each")
    parser.add_argument("--rounds", type=int, default=3, help="of which medians are shown; azure_rm has one")
    parser.add_argument("--quick", action="store_true", help="azure_rm beside ten sets alone")
    parser.add_argument("--alone", action="store_true", help="without azure_rm")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with started(folder / "azure", description(folder, options.sets), LATENCY_SECONDS) as azure:
            figures, runs = ours(folder, azure, options.rounds)
            with_peer = not options.alone and PEER.exists()
            if with_peer and not options.quick:
                add(figures, runs, beside(folder, azure))
        if with_peer and options.quick:
            with started(folder / "quick", description(folder, 10), LATENCY_SECONDS) as azure:
                add(figures, runs, beside(folder, azure))
    if not with_peer:
        print("azure_rm is not measured" + ("" if options.alone else ": make test-peers makes its environment"))
    report.write("inventory", figures, runs, GOALS)
    return 0


def add(figures: dict[str, float], runs: dict[str, t.Any], more: tuple[dict[str, float], dict[str, t.Any]]) -> None:
    figures.update(more[0])
    runs.update(more[1])


def description(folder: pathlib.Path, sets: int) -> pathlib.Path:
    asked = {"kind": "stub", "sku": "Standard_ND96isr_H100_v5", "vnet": "cluster", "subnet": "nodes"}
    size = {"instances": SET_SIZE, "ip_configurations": ADDRESSES}
    document = {
        "vnets": [{"name": "cluster", "address_space": "10.64.0.0/10", "subnets": [{"name": "nodes", "prefix": "10.64.0.0/10"}]}],
        "scale_sets": [{"name": f"gpu{number:03d}", **asked, **size} for number in range(sets)],
    }
    path = folder / f"fleet-{sets}.yml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


class Bench:
    """Runs by name; a name's median is that of its rounds, by CPU."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self.all: dict[str, list[Run]] = {}

    def __call__(self, name: str, argv: list[str], given: dict[str, str], before: t.Callable[[], None] = lambda: None) -> Run:
        made = []
        for _ in range(self._rounds):
            before()
            made.append(run(argv, given))
        self.all[name] = made
        middle = sorted(made, key=lambda one: one.cpu)[len(made) // 2]
        return middle._replace(wall=statistics.median(one.wall for one in made), peak_mb=max(one.peak_mb for one in made))

    def document(self) -> dict[str, t.Any]:
        return {name: [{"wall": one.wall, "cpu": one.cpu, "peak_mb": one.peak_mb} for one in made] for name, made in self.all.items()}


def ours(folder: pathlib.Path, azure: Served, rounds: int) -> tuple[dict[str, float], dict[str, t.Any]]:
    """Cold, the fetch alone, Resource Graph, from the cache, and the floor."""
    measure, given = Bench(rounds), variables(azure.environment)
    cached, graph, cache = folder / "bench.azure_vmss.yml", folder / "graph.azure_vmss.yml", folder / "cache"
    settings = f"cache: true\ncache_plugin: jsonfile\ncache_connection: {cache}\ncache_timeout: 3600\n"
    cached.write_text("plugin: gpufleet.vmss.azure_vmss\n" + settings, encoding="utf-8")
    graph.write_text("plugin: gpufleet.vmss.azure_vmss\nsource: graph\n", encoding="utf-8")
    command = [str(BIN / "ansible-inventory"), "-i", str(cached)]
    # Once for the served Azure, which then knows its answers.
    run([*command, "--list"], given)
    before = azure.calls()
    cold = measure("cold", [*command, "--list"], given, lambda: shutil.rmtree(cache))
    calls = (azure.calls() - before) / rounds
    before = azure.calls()
    warm = measure("warm", [*command, "--list"], given)
    listed = json.loads(cold.output)
    host = min(listed["_meta"]["hostvars"])
    drawn = measure("graph_output", [*command, "--graph"], given)
    one = measure("one_host", [*command, "--host", host], given)
    names = measure("list_hosts", [str(BIN / "ansible"), "-i", str(cached), "all", "--list-hosts"], given)
    warm_calls = azure.calls() - before
    fetch = measure("fetch", [sys.executable, "-c", FETCH], given)
    fetch_walls = [float(made.output.split()[1]) for made in measure.all["fetch"]]
    run([*command[:2], str(graph), "--list"], given)
    before = azure.calls()
    from_graph = measure("source_graph", [*command[:2], str(graph), "--list"], given)
    graph_calls = (azure.calls() - before) / rounds
    floor_source = folder / "bench_floor.yml"
    floor_source.write_text("plugin: bench_floor\n", encoding="utf-8")
    groups = {name: group["hosts"] for name, group in listed.items() if name not in ("_meta", "all") and "hosts" in group}
    hosts = {name: plain(held) for name, held in listed["_meta"]["hostvars"].items()}
    (folder / "bench_floor.yml.json").write_text(json.dumps({"groups": groups, "hosts": hosts}), encoding="utf-8")
    floor_variables = {"ANSIBLE_INVENTORY_PLUGINS": str(ROOT / "tests" / "bench" / "plugins"), "ANSIBLE_INVENTORY_ENABLED": "bench_floor"}
    floor = measure("floor", [str(BIN / "ansible-inventory"), "-i", str(floor_source), "--list"], floor_variables)
    fetch_seconds = statistics.median(fetch_walls)
    figures = {
        "instances": float(fetch.output.split()[0]),
        "wall": cold.wall,
        "cpu": cold.cpu,
        "peak_mb": cold.peak_mb,
        "http_calls": calls,
        "fetch_seconds": fetch_seconds,
        "fetch_cpu": fetch.cpu,
        "fetch_vs_ideal": fetch_seconds / (calls * LATENCY_SECONDS / UNDER_WAY),
        "warm_calls": float(warm_calls),
        "warm_cpu": warm.cpu,
        "floor_cpu": floor.cpu,
        "warm_vs_floor": warm.cpu / floor.cpu,
        "warm_graph_cpu": drawn.cpu,
        "warm_one_host_cpu": one.cpu,
        "warm_list_hosts_cpu": names.cpu,
        "list_mb": len(cold.output) / 1e6,
        "source_graph_wall": from_graph.wall,
        "source_graph_cpu": from_graph.cpu,
        "source_graph_calls": graph_calls,
    }
    return figures, measure.document()


def beside(folder: pathlib.Path, azure: Served) -> tuple[dict[str, float], dict[str, t.Any]]:
    """azure_rm and ours over the same fleet."""
    theirs, source = folder / "bench.azure_rm.yml", folder / "plain.azure_vmss.yml"
    source.write_text("plugin: gpufleet.vmss.azure_vmss\n", encoding="utf-8")
    theirs.write_text(CONFIGURATION + f"cloud_environment: {azure.environment['GPUFLEET_ARM_ENDPOINT']}/\n", encoding="utf-8")
    given = variables(azure.environment)
    command = [str(BIN / "ansible-inventory"), "-i", str(source), "--list"]
    run(command, given)
    mine = run(command, given)
    before = azure.calls()
    peer = run([str(PEER), "-i", str(theirs), "--list"], {**given, "AZURE_CONFIG_DIR": str(folder / "azure_rm")})
    calls = azure.calls() - before
    hosts = [set(json.loads(one.output)["_meta"]["hostvars"]) for one in (peer, mine)]
    figures = {
        "wall_vs_azure_rm": peer.wall / mine.wall,
        "cpu_vs_azure_rm": peer.cpu / mine.cpu,
        "azure_rm_instances": float(len(hosts[0])),
    }
    note = {
        "command": "ansible-inventory --list with azure.azcollection.azure_rm, batch_fetch as by default",
        "calls": calls,
        "same_hosts": hosts[0] == hosts[1],
        "list_mb": len(peer.output) / 1e6,
    }
    return figures, {"azure_rm": {"wall": peer.wall, "cpu": peer.cpu, "peak_mb": peer.peak_mb, **note}, "ours_beside_it": mine[:3]}


def run(argv: list[str], given: dict[str, str]) -> Run:
    """One command to its end. Raises RuntimeError with its own words when it fails."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ["HOME"],
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(ROOT / "collections"),
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections") if str(PEER) not in argv else "",
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
        **given,
    }
    if str(PEER) in argv:
        del environment["PYTHONPATH"], environment["ANSIBLE_COLLECTIONS_PATH"]
    elif "ANSIBLE_INVENTORY_ENABLED" not in environment:
        environment["ANSIBLE_INVENTORY_ENABLED"] = "gpufleet.vmss.azure_vmss"
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", ALONE, *argv],
        cwd=tempfile.gettempdir(),
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    wall = time.monotonic() - started
    if done.returncode:
        raise RuntimeError(f"`{argv[0]}` ended with status {done.returncode}: {done.stderr}")
    cpu, peak = done.stderr.splitlines()[-1].split()
    return Run(wall=wall, cpu=float(cpu), peak_mb=int(peak) * 1024 / 1e6, output=done.stdout)


if __name__ == "__main__":
    sys.exit(main())
