# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What planning 7,500 nodes with 27 pod addresses costs, in processes of their own.

``figures`` is for the network benchmark; run alone, this prints the same. ``plan_*`` is the module as Ansible starts it, for a fleet
that is wished for. ``replan_*`` is the planner on the VNet of that fleet when it is there, whose document names 22,500 ipConfigurations
as blocks, and 210,000 as single addresses in four VNets (``replan_single_*``).
"""

from __future__ import annotations

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUNDS = 5
LIMIT_SECONDS = 120
NODES, SETS, PODS = 100, 75, 27
GOALS = {"plan_seconds": "<= 2", "plan_mb": "<= 300"}

# A child's peak memory starts at its parent's; this parent is small.
ALONE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.stderr.write(done.stdout + done.stderr if done.returncode else "")
sys.exit(done.returncode)
"""
MODULE = ["-m", "ansible_collections.gpufleet.vmss.plugins.modules.alias_plan"]
# The documents as pages of Azure's answer, and the wish as the module has it.
REPLAN = """
import json, sys
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import network_document, network_plan, network_table, network_wish
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.client import parse
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.virtual_networks import virtual_network
with open(sys.argv[1], encoding="utf-8") as file:
    wish = network_wish.wish(json.load(file))
networks = []
for name in sys.argv[2:]:
    with open(name, "rb") as page:
        networks += [virtual_network(document) for document in parse(page.read())["value"]]
plan = network_plan.plan(wish, networks)
assert not any(item.new for cluster in plan.clusters for item in cluster.sets)
json.dumps(network_document.to_document(plan)), network_table.table(plan)
"""
Document = dict[str, t.Any]


def figures(rounds: int = ROUNDS) -> tuple[dict[str, float], dict[str, t.Any]]:
    """Medians of seconds and MB, and every round of them."""
    found: dict[str, float] = {}
    runs: dict[str, t.Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        commands = {
            "plan": [*MODULE, _write(folder / "wish.json", {"ANSIBLE_MODULE_ARGS": _wish(1) | {"virtual_networks": _networks(1, None)}})],
            "replan": _replan(folder / "blocks", 1, 1 + 2),
            "replan_single": _replan(folder / "single", 4, 1 + PODS),
        }
        for key, command in commands.items():
            rows = [_run(command) for _ in range(rounds)]
            runs[key] = [{"seconds": seconds, "mb": megabytes} for seconds, megabytes in rows]
            found[f"{key}_seconds"] = statistics.median(seconds for seconds, _megabytes in rows)
            found[f"{key}_mb"] = max(megabytes for _seconds, megabytes in rows)
    return found, runs


def _run(command: list[str]) -> tuple[float, float]:
    """Seconds and peak MB of one Python, its start included."""
    environment = {"PYTHONPATH": str(ROOT / "collections")}
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", ALONE, sys.executable, *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"the plan failed:\n{done.stderr}")
    return time.monotonic() - started, int(done.stdout) / 1024


def _wish(clusters: int) -> Document:
    """The fleet in some clusters, two at a hub, with as many scale sets in each."""
    entries = []
    for number in range(clusters):
        sets = len(range(number, SETS, clusters))
        entry = {"name": f"gpu{number}", "count": sets, "size": "Standard_ND96isr_H100_v5", "nodes": NODES, "pods_per_node": PODS}
        entries.append({"name": f"c{number}", "virtual_network": f"c{number}", "hub": f"hub{number // 2}", "scale_sets": [entry]})
    return {"fleet": {"clusters": entries}, "on_premises": ["192.168.0.0/16"], "largest_job_nodes": NODES}


def _networks(clusters: int, configurations: int | None) -> list[Document]:
    """The VNets of ``_wish``; with ``configurations`` a node, those of a fleet that is there."""
    hubs = [_network(f"hub{number}", f"10.0.{number}.0/24", []) for number in range((clusters + 1) // 2)]
    spokes = []
    for number in range(clusters):
        sets = len(range(number, SETS, clusters)) if configurations else 0
        subnets = [_subnet(f"gpu{number}-{one + 1:02d}", number, one, configurations or 0) for one in range(sets)]
        spokes.append(_network(f"c{number}", f"10.{16 * (number + 1)}.0.0/12", subnets))
    return hubs + spokes


def _network(name: str, space: str, subnets: list[Document]) -> Document:
    return {"name": name, "properties": {"addressSpace": {"addressPrefixes": [space]}, "subnets": subnets, "virtualNetworkPeerings": []}}


def _subnet(scale_set: str, vnet: int, place: int, configurations: int) -> Document:
    path = f"/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/fleet/providers/Microsoft.Compute/virtualMachineScaleSets/{scale_set}"
    used = [
        {"id": f"{path}/virtualMachines/{node}/networkInterfaces/nic/ipConfigurations/alias{number:03d}"}
        for node in range(NODES)
        for number in range(configurations)
    ]
    prefix = f"10.{16 * (vnet + 1) + place // 16}.{place % 16 * 16}.0/20"
    return {"name": scale_set, "properties": {"addressPrefix": prefix, "ipConfigurations": used}}


def _replan(folder: pathlib.Path, clusters: int, configurations: int) -> list[str]:
    folder.mkdir()
    wish = _wish(clusters)
    alike = {
        "growth": 0,
        "infiniband": None,
        "orchestration": "Uniform",
        "fault_domains": 1,
        "subnet": None,
        "application_security_group": None,
    }
    for cluster in wish["fleet"]["clusters"]:
        cluster["scale_sets"] = [{**alike, **entry} for entry in cluster["scale_sets"]]
    wish |= {"infiniband_domain_nodes": NODES, "address_form": "auto", "unlisted_addresses": None}
    pages = [
        _write(folder / f"page{number}.json", {"value": [network]}) for number, network in enumerate(_networks(clusters, configurations))
    ]
    return ["-c", REPLAN, _write(folder / "wish.json", wish), *pages]


def _write(path: pathlib.Path, document: Document) -> str:
    path.write_text(json.dumps(document), encoding="utf-8")
    return str(path)


if __name__ == "__main__":
    for name, value in figures()[0].items():
        print(f"{name}  {value:.2f}  {GOALS.get(name, '')}")
