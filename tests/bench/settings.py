# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of the converge benchmark: a user's own as variables, and all that is then on the nodes as data for the peers.

What the peers set is read from converged nodes and not written down a second time, so that all forms agree to the byte.
"""

from __future__ import annotations

import base64
import json
import pathlib
import typing as t

from gpufleet.lab_access import Node

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
FILES = (
    "/etc/cni/net.d/10-gpufleet-alias.conflist",
    "/etc/sysctl.d/99-zz-gpufleet-alias-network.conf",
    "/etc/sysctl.d/98-gpufleet-custom.conf",
    "/etc/systemd/system/gpufleet-accounting.service",
    *(f"/etc/gpufleet/state.d/{name}.json" for name in ("alias_network", "custom", "node_program", "traffic_accounting")),
    "/etc/systemd/system/example.service",
    *(item["path"] for item in CUSTOM["custom_files"]),
)
FOLDERS = ("/etc/gpufleet", "/etc/gpufleet/state.d", "/usr/local/lib/gpufleet", "/etc/cni/net.d", "/etc/example")
LINKS = ("/usr/local/lib/gpufleet/current", "/usr/local/bin/gpufleet-node")
PROGRAM = "/usr/local/lib/gpufleet/current"
PACKAGES = ("containernetworking-plugins", "iptables")
UNITS = ("gpufleet-accounting.service", "example.service")
# The neighbour table's sizes are the machine's alone: in a container's network namespace no such keys exist, for any form.
SYSCTLS = {"net.ipv4.ip_forward": 1, **CUSTOM["custom_sysctls"]}
READ = """
import base64, json, os, sys
asked = json.loads(sys.stdin.read())
mode = lambda path: "0%o" % (os.stat(path).st_mode & 0o7777)
print(json.dumps({
    "files": [{"path": path, "mode": mode(path), "content": open(path).read()} for path in asked["files"]],
    "folders": [{"path": path, "mode": mode(path)} for path in asked["folders"]],
    "links": [{"path": path, "target": os.readlink(path)} for path in asked["links"]],
    "program": {"path": os.path.realpath(asked["program"]), "mode": mode(asked["program"])},
    "bytes": base64.b64encode(open(asked["program"], "rb").read()).decode(),
}))
"""


def of_nodes(nodes: t.Mapping[str, Node], folder: pathlib.Path) -> dict[str, t.Any]:
    """The peers' variables, files by node. The node program, which is no text, is put into ``folder``."""
    asked = json.dumps({"files": FILES, "folders": FOLDERS, "links": LINKS, "program": PROGRAM})
    found = {name: json.loads(node.run(["python3", "-c", READ], stdin=asked)) for name, node in nodes.items()}
    one = next(iter(found.values()))
    source = folder / "node.pyz"
    source.write_bytes(base64.b64decode(one["bytes"]))
    return {
        "bench_packages": PACKAGES,
        "bench_files": {name: item["files"] for name, item in found.items()},
        "bench_folders": one["folders"],
        "bench_program": {**one["program"], "source": str(source)},
        "bench_links": one["links"],
        "bench_sysctls": SYSCTLS,
        "bench_rules": RULES,
        "bench_units": UNITS,
    }


def count() -> int:
    """How many settings each form has: every rule is a chain, a rule and a jump."""
    return len(PACKAGES) + len(FOLDERS) + len(FILES) + 1 + len(LINKS) + len(SYSCTLS) + 3 * len(RULES) + len(UNITS)
