# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``make bench-inventory``: listing a fleet from a Resource Manager at 75 ms a call, from the cache, and what ansible-core itself costs.

Beside it azure_rm, where ``make test-peers`` has made its environment: it asks for every instance by itself (its undocumented
batch calls are not served), of a tenth of the fleet unless ``--whole``, and from a Resource Manager that does not throttle.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "bench"), str(ROOT / "tests" / "unit" / "lab" / "azure"), str(ROOT / "tests" / "peers")]

import report  # noqa: E402
import yaml  # noqa: E402
from azure_rm_settings import CONFIGURATION, plain, variables  # noqa: E402
from served_azure import Azure, running  # noqa: E402

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
    parser.add_argument("--alone", action="store_true", help="without azure_rm")
    parser.add_argument("--whole", action="store_true", help="azure_rm too lists the whole fleet")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        figures, runs = ours(folder, options.sets)
        if options.alone:
            print("azure_rm is not measured")
        elif PEER.exists():
            sets = options.sets if options.whole else max(1, options.sets // 10)
            more, peer_runs = beside(folder, sets)
            figures, runs = {**more, **figures}, {**runs, **peer_runs}
        else:
            print("azure_rm is not measured: make test-peers makes its environment")
    report.write("inventory", figures, runs, GOALS)
    return 0


def description(folder: pathlib.Path, sets: int) -> pathlib.Path:
    asked = {"kind": "stub", "sku": "Standard_ND96isr_H100_v5", "vnet": "cluster", "subnet": "nodes"}
    size = {"instances": SET_SIZE, "ip_configurations": ADDRESSES}
    document = {
        "vnets": [{"name": "cluster", "address_space": "10.64.0.0/10", "subnets": [{"name": "nodes", "prefix": "10.64.0.0/14"}]}],
        "scale_sets": [{"name": f"gpu{number:03d}", **asked, **size} for number in range(sets)],
    }
    path = folder / f"fleet-{sets}.yml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def ours(folder: pathlib.Path, sets: int) -> tuple[dict[str, float], dict[str, t.Any]]:
    """Cold, the fetch alone, from the cache, and the floor."""
    source = folder / "bench.azure_vmss.yml"
    cache = f"cache: true\ncache_plugin: jsonfile\ncache_connection: {folder / 'cache'}\ncache_timeout: 3600\n"
    source.write_text("plugin: gpufleet.vmss.azure_vmss\n" + cache, encoding="utf-8")
    fleet = description(folder, sets)
    with served(folder / "cold", fleet) as azure:
        cold = run([str(BIN / "ansible-inventory"), "-i", str(source), "--list"], variables(azure))
        calls = azure.service.faults.active[0].seen
        warm = run([str(BIN / "ansible-inventory"), "-i", str(source), "--list"], variables(azure))
        warm_calls = azure.service.faults.active[0].seen - calls
    with served(folder / "fetch", fleet) as azure:
        fetch = run([sys.executable, "-c", FETCH], variables(azure))
    count, fetch_wall = fetch.output.split()
    floor_source = folder / "bench_floor.yml"
    floor_source.write_text("plugin: bench_floor\n", encoding="utf-8")
    listed = json.loads(cold.output)
    groups = {name: group["hosts"] for name, group in listed.items() if name not in ("_meta", "all") and "hosts" in group}
    hosts = {name: plain(held) for name, held in listed["_meta"]["hostvars"].items()}
    (folder / "bench_floor.yml.json").write_text(json.dumps({"groups": groups, "hosts": hosts}), encoding="utf-8")
    floor_variables = {"ANSIBLE_INVENTORY_PLUGINS": str(ROOT / "tests" / "bench" / "plugins"), "ANSIBLE_INVENTORY_ENABLED": "bench_floor"}
    floor = run([str(BIN / "ansible-inventory"), "-i", str(floor_source), "--list"], floor_variables)
    figures = {
        "instances": float(count),
        "wall": cold.wall,
        "cpu": cold.cpu,
        "peak_mb": cold.peak_mb,
        "http_calls": float(calls),
        "fetch_seconds": float(fetch_wall),
        "fetch_vs_ideal": float(fetch_wall) / (calls * LATENCY_SECONDS / UNDER_WAY),
        "warm_calls": float(warm_calls),
        "warm_cpu": warm.cpu,
        "floor_cpu": floor.cpu,
        "warm_vs_floor": warm.cpu / floor.cpu,
        "list_mb": len(cold.output) / 1e6,
    }
    runs = {
        name: {"wall": one.wall, "cpu": one.cpu, "peak_mb": one.peak_mb} for name, one in (("cold", cold), ("warm", warm), ("floor", floor))
    }
    return figures, runs


def beside(folder: pathlib.Path, sets: int) -> tuple[dict[str, float], dict[str, t.Any]]:
    """azure_rm and ours over the same fleet."""
    theirs, source = folder / "bench.azure_rm.yml", folder / "plain.azure_vmss.yml"
    source.write_text("plugin: gpufleet.vmss.azure_vmss\n", encoding="utf-8")
    with served(folder / "peer", description(folder, sets), throttled=False) as azure:
        theirs.write_text(CONFIGURATION + f"cloud_environment: {azure.url}/\n", encoding="utf-8")
        mine = run([str(BIN / "ansible-inventory"), "-i", str(source), "--list"], variables(azure))
        before = azure.service.faults.active[0].seen
        peer = run([str(PEER), "-i", str(theirs), "--list"], {**variables(azure), "AZURE_CONFIG_DIR": str(folder / "azure")})
        calls = azure.service.faults.active[0].seen - before
    hosts = [set(json.loads(one.output)["_meta"]["hostvars"]) for one in (peer, mine)]
    figures = {"wall_vs_azure_rm": peer.wall / mine.wall, "cpu_vs_azure_rm": peer.cpu / mine.cpu, "peer_instances": float(sets * SET_SIZE)}
    note = {
        "command": "ansible-inventory --list with azure.azcollection.azure_rm, batch_fetch: false",
        "calls": calls,
        "same_hosts": hosts[0] == hosts[1],
    }
    return figures, {"azure_rm": {"wall": peer.wall, "cpu": peer.cpu, "peak_mb": peer.peak_mb, **note}, "ours_beside_it": mine[:3]}


def served(directory: pathlib.Path, fleet: pathlib.Path, *, throttled: bool = True) -> t.Any:
    """A Resource Manager of this fleet that takes its time."""
    directory.mkdir()
    return _Slow(running(directory, fleet, throttled=throttled))


class _Slow:
    def __init__(self, manager: t.Any) -> None:
        self._manager = manager

    def __enter__(self) -> Azure:
        azure: Azure = self._manager.__enter__()
        azure.service.faults.add({"latency": LATENCY_SECONDS, "times": 10**9})
        return azure

    def __exit__(self, *error: t.Any) -> None:
        self._manager.__exit__(*error)


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
