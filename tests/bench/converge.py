# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``make bench-converge``: a run that changes nothing, as fleet.yml, as site.yml, as builtin tasks, and by pyinfra.

The peers get the contents that are on the nodes after a converge, so all forms agree about every node. That each then changes
nothing is looked at in every run and noted in the file.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import typing as t

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "bench")]

import cost  # noqa: E402
import peer_pyinfra  # noqa: E402
import report  # noqa: E402
import settings  # noqa: E402

from gpufleet.lab_access import Node  # noqa: E402
from lab import lifecycle  # noqa: E402
from lab.fleet import Instance  # noqa: E402
from lab.paths import Paths  # noqa: E402

PREFIX = "bench"
BIN = pathlib.Path(sys.executable).parent
# Builtin tasks take long, so their comparison is of few nodes; pyinfra's is of ten.
NODES, PYINFRA_NODES = 4, 10
# One round is a look whether all this works, in a minute: builtin tasks then set few files, and their figures mean nothing.
QUICK_NODES, QUICK_PYINFRA_NODES, QUICK_FILES = 1, 2, 3
PLAYBOOKS = {
    "fleet": "playbooks/fleet.yml",
    "site": "playbooks/site.yml",
    "builtin": "tests/bench/builtin.yml",
    "empty": "tests/bench/empty.yml",
}
GOALS = {
    "cpu_vs_builtin": ">= 40",
    "node_cpu_vs_builtin": ">= 40",
    "cpu_vs_pyinfra": "> 1",
    "wall_vs_pyinfra": ">= 5",
    "node_tasks": "<= 3",
    "ssh_sessions": "<= 2",
    "kb_per_node": "<= 25 (scale)",
    "module_cpu_per_node": "<= 0.10",
    "node_cpu_cpu_profile": "<= 0.25",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """One run: its cost, how many tasks or operations changed something over all nodes, and how many ran on nodes."""

    cost: cost.Cost
    changed: int
    node_tasks: int = 0

    def document(self) -> dict[str, t.Any]:
        return {**dataclasses.asdict(self.cost), "changed": self.changed, "node_tasks": self.node_tasks}


Runs = dict[str, list[Run]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="1 is a quick look, in a file of its own")
    rounds = parser.parse_args().rounds
    few, many = (QUICK_NODES, QUICK_PYINFRA_NODES) if rounds == 1 else (NODES, PYINFRA_NODES)
    lifecycle.down(PREFIX)
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            built = lifecycle.up(PREFIX, description(folder, many), print)
            bench(Paths(PREFIX), built.instances, folder, few, rounds)
    finally:
        lifecycle.down(PREFIX)
    return 0


def description(folder: pathlib.Path, instances: int) -> pathlib.Path:
    document = yaml.safe_load((ROOT / "tests" / "bench" / "fleet.yml").read_text(encoding="utf-8"))
    document["scale_sets"][0]["instances"] = instances
    path = folder / "fleet.yml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def bench(paths: Paths, instances: t.Sequence[Instance], folder: pathlib.Path, few: int, rounds: int) -> None:
    names = {item.computer_name: item.primary_address for item in instances}
    nodes = cost.Nodes(paths, list(names))
    own = written(folder / "custom.json", settings.CUSTOM)
    first = play(nodes, "fleet", own)
    wanted = settings.of_nodes({name: Node(paths.access, address) for name, address in names.items()}, folder)
    some = {name: files[:QUICK_FILES] if rounds == 1 else files for name, files in wanted["bench_files"].items()}
    peer = written(folder / "peer.json", {**wanted, "bench_files": some})
    by_address = {names[name]: files for name, files in wanted["bench_files"].items()}
    pyinfra_peer = written(folder / "pyinfra.json", {**wanted, "bench_files": by_address})
    try:
        argv = peer_pyinfra.command(list(names.values()), paths.access / "ssh_config", pyinfra_peer)
        pyinfra_note = f"{peer_pyinfra.VERSION}: pyinfra ADDRESSES tests/bench/pyinfra_deploy.py -y --sudo"
    except (RuntimeError, subprocess.TimeoutExpired) as error:
        argv = []
        pyinfra_note = f"not measured: pyinfra {peer_pyinfra.VERSION} cannot be installed: {error}"
    runs: Runs = {}
    # In turns, so that a machine that gets busier does not favour one of them.
    for _round in range(rounds):
        for form in PLAYBOOKS:
            note(runs, form, play(nodes.first(few), form, peer if form == "builtin" else own))
        if argv:
            note(runs, "fleet_beside_pyinfra", play(nodes, "fleet", own))
            note(runs, "pyinfra", pyinfra(nodes, argv))
    notes = {
        "nodes": few,
        "rounds": rounds,
        "settings": settings.count(),
        "builtin": f"{version()}: ansible-playbook {PLAYBOOKS['builtin']}, with the repository's ansible.cfg",
        "pyinfra": pyinfra_note,
        "pyinfra_nodes": len(names),
    }
    documents = {name: [run.document() for run in found] for name, found in runs.items()}
    # A look keeps a name of its own: it must not be taken for a measurement, nor overwrite one.
    report.write(
        "converge-quick" if rounds == 1 else "converge",
        figures(runs, first),
        {"first": [first.document()], **documents, "notes": notes},
        GOALS,
    )


def note(runs: Runs, name: str, run: Run) -> None:
    runs.setdefault(name, []).append(run)
    changed = f", {run.changed} CHANGED" if run.changed else ""
    print(
        f"  {name}: {run.cost.wall:.1f} s, {run.cost.controller_cpu:.3f} s of controller and {run.cost.node_cpu:.3f} s of each node{changed}"
    )


def written(path: pathlib.Path, variables: t.Mapping[str, t.Any]) -> pathlib.Path:
    path.write_text(json.dumps(variables), encoding="utf-8")
    return path


def play(nodes: cost.Nodes, form: str, variables: pathlib.Path) -> Run:
    """One playbook, as a user starts it, on these nodes."""
    limit = ",".join(["localhost", *nodes.names])
    command = [str(BIN / "ansible-playbook"), PLAYBOOKS[form], "-e", f"@{variables}", "--forks", "10", "--limit", limit]
    environment = {"GPUFLEET_LAB": PREFIX, "ANSIBLE_NOCOLOR": "1", "PATH": f"{BIN}:/usr/sbin:/usr/bin:/sbin:/bin"}
    found, output = cost.measure(nodes, command, environment, ROOT)
    recap = dict(re.findall(r"^(\S+) +: ok=\d+ +changed=(\d+) ", output, re.MULTILINE))
    if form != "empty" and not set(nodes.names) <= set(recap):
        raise RuntimeError(f"{PLAYBOOKS[form]} did not run on all of {', '.join(nodes.names)}:\n{output}")
    return Run(cost=found, changed=sum(int(recap.get(name, 0)) for name in nodes.names), node_tasks=node_tasks(output, nodes.names))


def node_tasks(output: str, names: t.Sequence[str]) -> int:
    """How many tasks and handlers answered from nodes; a skipped one does not, nor does one on the controller.

    A role's check of its arguments answers in a node's name, but runs on the controller.
    """
    answer = re.compile(r"^(ok|changed): \[(" + "|".join(map(re.escape, names)) + r")\]", re.MULTILINE)
    tasks = re.split(r"^(?:TASK|RUNNING HANDLER) \[", output, flags=re.MULTILINE)[1:]
    return sum(bool(answer.search(task)) for task in tasks if "Validating arguments against arg spec" not in task.splitlines()[0])


def pyinfra(nodes: cost.Nodes, argv: list[str]) -> Run:
    found, output = cost.measure(nodes, argv, {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}, ROOT)
    return Run(cost=found, changed=peer_pyinfra.changed(output, len(nodes.names)))


def version() -> str:
    done = subprocess.run([str(BIN / "ansible-playbook"), "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def figures(runs: Runs, first: Run) -> dict[str, float]:
    medians = {name: cost.median([run.cost for run in found]) for name, found in runs.items()}
    fleet, site, builtin, empty = (medians[name] for name in PLAYBOOKS)
    found: dict[str, float] = {
        "cpu_vs_builtin": builtin.controller_cpu / fleet.controller_cpu,
        "cpu_above_floor_vs_builtin": (builtin.controller_cpu - empty.controller_cpu) / (fleet.controller_cpu - empty.controller_cpu),
        "node_cpu_vs_builtin": builtin.node_cpu / fleet.node_cpu,
        "wall_vs_builtin": builtin.wall / fleet.wall,
        "node_tasks": max(run.node_tasks for run in runs["fleet"]),
        "ssh_sessions": fleet.sessions,
        "ssh_connections": fleet.connections,
        "kb_per_node": fleet.kilobytes,
        "kb_first_visit": first.cost.kilobytes,
        "module_cpu_per_node": fleet.controller_cpu - empty.controller_cpu,
        "node_cpu_cpu_profile": fleet.node_cpu,
        "wall": fleet.wall,
        "controller_cpu_per_node": fleet.controller_cpu,
        "floor_cpu_per_node": empty.controller_cpu,
        "site_cpu_vs_builtin": builtin.controller_cpu / site.controller_cpu,
        "site_cpu_above_floor_vs_builtin": (builtin.controller_cpu - empty.controller_cpu) / (site.controller_cpu - empty.controller_cpu),
        "site_node_cpu_vs_builtin": builtin.node_cpu / site.node_cpu,
        "site_wall_vs_builtin": builtin.wall / site.wall,
        "site_node_tasks": max(run.node_tasks for run in runs["site"]),
        "site_ssh_sessions": site.sessions,
        "site_kb_per_node": site.kilobytes,
        "site_controller_cpu_per_node": site.controller_cpu,
        "site_node_cpu": site.node_cpu,
        "builtin_node_tasks": max(run.node_tasks for run in runs["builtin"]),
        "builtin_ssh_sessions": builtin.sessions,
        "builtin_kb_per_node": builtin.kilobytes,
        "builtin_controller_cpu_per_node": builtin.controller_cpu,
        "builtin_node_cpu": builtin.node_cpu,
        "tasks_changed": sum(run.changed for name in runs for run in runs[name]),
    }
    if "pyinfra" in medians:
        ours, peer = medians["fleet_beside_pyinfra"], medians["pyinfra"]
        found |= {
            "cpu_vs_pyinfra": peer.controller_cpu / ours.controller_cpu,
            "wall_vs_pyinfra": peer.wall / ours.wall,
            "node_cpu_vs_pyinfra": peer.node_cpu / ours.node_cpu,
            "pyinfra_ssh_sessions": peer.sessions,
            "pyinfra_kb_per_node": peer.kilobytes,
        }
    return found


if __name__ == "__main__":
    sys.exit(main())
