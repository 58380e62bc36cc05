# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``make bench-converge``: a run that changes nothing, as fleet.yml, as site.yml, and as builtin tasks with the same settings.

The builtin tasks get the contents that are on the nodes after a converge, so both forms agree about every node; that each then
changes nothing is looked at and noted in the file.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import re
import sys
import tempfile
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "bench")]

import cost  # noqa: E402
import report  # noqa: E402

from gpufleet.lab_access import Node  # noqa: E402
from lab import lifecycle  # noqa: E402
from lab.paths import Paths  # noqa: E402

PREFIX = "bench"
BIN = pathlib.Path(sys.executable).parent
COMMENT = "iptables-exporter openai traffic=internet-"
RULES = [
    {"hook": hook, "chain": f"GPUFLEET-ACCT-{hook}-{way.upper()}", field: "!10.0.0.0/8", "comment": f"{COMMENT}{way}"}
    for hook, way, field in (
        ("INPUT", "in", "source"),
        ("FORWARD", "in", "source"),
        ("OUTPUT", "out", "destination"),
        ("FORWARD", "out", "destination"),
    )
]
# A user's own settings, so that there are some forty.
CUSTOM: dict[str, t.Any] = {
    "custom_files": [{"path": f"/etc/example/{number:02d}.conf", "content": f"number = {number}\n" * 20} for number in range(12)],
    "custom_sysctls": {"net.ipv4.tcp_keepalive_time": 600, "net.ipv4.tcp_syncookies": 1, "net.ipv4.conf.all.log_martians": 0},
    "custom_units": [
        {"name": "example.service", "content": "[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n", "enabled": True}
    ],
}
GOALS = {
    "cpu_vs_builtin": ">= 40",
    "node_cpu_vs_builtin": ">= 40",
    "node_tasks": "<= 3",
    "ssh_sessions": "<= 2",
    "kb_per_node": "<= 25 (scale)",
    "module_cpu_per_node": "<= 0.10",
    "node_cpu_cpu_profile": "<= 0.25",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    lifecycle.down(PREFIX)
    try:
        built = lifecycle.up(PREFIX, ROOT / "tests" / "bench" / "fleet.yml", print)
        bench(Paths(PREFIX), [item.computer_name for item in built.instances], [item.primary_address for item in built.instances], rounds)
    finally:
        lifecycle.down(PREFIX)
    return 0


def bench(paths: Paths, names: list[str], addresses: list[str], rounds: int) -> None:
    nodes = cost.Nodes(paths, names)
    with tempfile.TemporaryDirectory() as folder:
        own = pathlib.Path(folder) / "custom.json"
        own.write_text(json.dumps(CUSTOM), encoding="utf-8")
        first, _ = play(nodes, "playbooks/fleet.yml", own)
        peer = pathlib.Path(folder) / "builtin.json"
        peer.write_text(
            json.dumps(settings({name: Node(paths.access, address) for name, address in zip(names, addresses, strict=True)})),
            encoding="utf-8",
        )
        play(nodes, "tests/bench/builtin.yml", peer)
        forms = {
            "fleet": ("playbooks/fleet.yml", own),
            "site": ("playbooks/site.yml", own),
            "builtin": ("tests/bench/builtin.yml", peer),
            "empty": ("tests/bench/empty.yml", own),
        }
        taken: dict[str, list[cost.Cost]] = {name: [] for name in forms}
        changed: dict[str, int] = dict.fromkeys(forms, 0)
        # In turns, so that a machine that gets busier does not favour one of them.
        for _round in range(rounds):
            for name, (playbook, variables) in forms.items():
                found, output = play(nodes, playbook, variables)
                taken[name].append(found)
                changed[name] += sum(int(count) for count in re.findall(r"changed=(\d+)", output))
                print(f"  {name}: {found.controller_cpu:.3f} s of controller and {found.node_cpu:.3f} s of each node")
    medians = {name: cost.median(found) for name, found in taken.items()}
    runs = {name: [dataclasses.asdict(item) for item in found] for name, found in taken.items()}
    peer_note = {
        "command": "ansible-playbook tests/bench/builtin.yml",
        "tasks_changed_in_all_rounds": changed,
        "nodes": len(names),
        "rounds": rounds,
    }
    report.write("converge", figures(medians, first, changed), {**runs, "peer": peer_note}, GOALS)


def play(nodes: cost.Nodes, playbook: str, variables: pathlib.Path) -> tuple[cost.Cost, str]:
    command = [str(BIN / "ansible-playbook"), playbook, "-e", f"@{variables}", "--forks", "10"]
    environment = {"GPUFLEET_LAB": PREFIX, "ANSIBLE_NOCOLOR": "1", "PATH": f"{BIN}:/usr/sbin:/usr/bin:/sbin:/bin"}
    return cost.measure(nodes, command, environment, ROOT)


def settings(nodes: dict[str, Node]) -> dict[str, t.Any]:
    """The peer's variables: what is on the nodes now, as data."""
    paths = [
        "/etc/cni/net.d/10-gpufleet-alias.conflist",
        "/etc/sysctl.d/99-zz-gpufleet-alias-network.conf",
        "/etc/sysctl.d/98-gpufleet-custom.conf",
        "/etc/systemd/system/gpufleet-accounting.service",
        *(f"/etc/gpufleet/state.d/{name}.json" for name in ("alias_network", "custom", "node_program", "traffic_accounting")),
        "/etc/systemd/system/example.service",
        *(item["path"] for item in CUSTOM["custom_files"]),
    ]
    files = {}
    for name, node in nodes.items():
        modes = dict(line.split() for line in node.run(["stat", "-c", "%n %a", *paths]).splitlines())
        files[name] = [{"path": path, "mode": f"0{modes[path]}", "content": node.run(["cat", path])} for path in paths]
    one = next(iter(nodes.values()))
    links = ("/usr/local/lib/gpufleet/current", "/usr/local/bin/gpufleet-node")
    folders = ("/etc/gpufleet", "/etc/gpufleet/state.d", "/usr/local/lib/gpufleet", "/etc/cni/net.d", "/etc/example")
    modes = dict(line.split() for line in one.run(["stat", "-c", "%n %a", *folders]).splitlines())
    return {
        "bench_files": files,
        "bench_folders": [{"path": path, "mode": f"0{modes[path]}"} for path in folders],
        "bench_links": [{"path": path, "target": one.run(["readlink", path]).strip()} for path in links],
        "bench_sysctls": {"net.ipv4.ip_forward": 1, **CUSTOM["custom_sysctls"]},
        "bench_rules": RULES,
        "bench_units": ["gpufleet-accounting.service", "example.service"],
    }


def figures(medians: dict[str, cost.Cost], first: cost.Cost, changed: dict[str, int]) -> dict[str, float]:
    fleet, site, builtin, empty = (medians[name] for name in ("fleet", "site", "builtin", "empty"))
    return {
        "cpu_vs_builtin": builtin.controller_cpu / fleet.controller_cpu,
        "cpu_above_floor_vs_builtin": (builtin.controller_cpu - empty.controller_cpu) / (fleet.controller_cpu - empty.controller_cpu),
        "node_cpu_vs_builtin": builtin.node_cpu / fleet.node_cpu,
        "wall_vs_builtin": builtin.wall / fleet.wall,
        "node_tasks": 1,
        "ssh_sessions": fleet.sessions,
        "ssh_connections": fleet.connections,
        "kb_per_node": fleet.kilobytes,
        "kb_first_visit": first.kilobytes,
        "module_cpu_per_node": fleet.controller_cpu - empty.controller_cpu,
        "controller_cpu_per_node": fleet.controller_cpu,
        "floor_cpu_per_node": empty.controller_cpu,
        "node_cpu_cpu_profile": fleet.node_cpu,
        "site_cpu_vs_builtin": builtin.controller_cpu / site.controller_cpu,
        "site_node_cpu_vs_builtin": builtin.node_cpu / site.node_cpu,
        "site_ssh_sessions": site.sessions,
        "site_kb_per_node": site.kilobytes,
        "builtin_ssh_sessions": builtin.sessions,
        "builtin_kb_per_node": builtin.kilobytes,
        "tasks_changed": sum(changed.values()),
    }


if __name__ == "__main__":
    sys.exit(main())
