# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The peer pyinfra: what the subsystems set on a node, as its operations. Run by pyinfra, with the data that converge.py writes."""

from __future__ import annotations

import io
import json
import pathlib

from pyinfra import host
from pyinfra.facts.iptables import IptablesRules
from pyinfra.operations import apt, files, iptables, server, systemd

SETTINGS = json.loads(pathlib.Path(host.data.bench_settings).read_text(encoding="utf-8"))

apt.packages(name="Packages", packages=list(SETTINGS["bench_packages"]))
for item in SETTINGS["bench_folders"]:
    files.directory(name=f"Folder {item['path']}", path=item["path"], mode=item["mode"].lstrip("0"))
for item in SETTINGS["bench_files"][host.name]:
    files.put(name=f"File {item['path']}", src=io.StringIO(item["content"]), dest=item["path"], mode=item["mode"].lstrip("0"))
program = SETTINGS["bench_program"]
files.put(name="Program", src=program["source"], dest=program["path"], mode=program["mode"].lstrip("0"))
for item in SETTINGS["bench_links"]:
    files.link(name=f"Link {item['path']}", path=item["path"], target=item["target"])
for key, value in SETTINGS["bench_sysctls"].items():
    server.sysctl(name=f"Kernel parameter {key}", key=key, value=value)
for item in SETTINGS["bench_rules"]:
    iptables.chain(name=f"Chain {item['chain']}", chain=item["chain"], table="mangle")
    iptables.rule(name=f"Jump {item['chain']}", chain=item["hook"], jump=item["chain"], table="mangle")
    # iptables.rule takes no rule without a target, so these are looked for in the fact that it reads, too.
    match = f"! -s {item['source'][1:]}" if "source" in item else f"! -d {item['destination'][1:]}"
    if not any(rule["chain"] == item["chain"] for rule in host.get_fact(IptablesRules, table="mangle")):
        server.shell(
            name=f"Rule {item['chain']}",
            commands=[f"iptables -t mangle -A {item['chain']} {match} -m comment --comment '{item['comment']}'"],
        )
for unit in SETTINGS["bench_units"]:
    systemd.service(name=f"Unit {unit}", service=unit, running=None, enabled=True)
