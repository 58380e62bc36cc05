# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pod-like network namespace on a node, wired by the node's own CNI configuration.

It does what a container runtime does with a conflist: each plugin in turn, the result of one handed to the
next. Runs on the node, from standard input: ``ssh NODE sudo python3 - add NAME < lab/pod.py``.
Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import typing as t

CONFIGURATIONS = pathlib.Path("/etc/cni/net.d")
PLUGINS = "/usr/lib/cni:/opt/cni/bin"
INTERFACE = "eth0"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("add", "del"))
    parser.add_argument("name")
    options = parser.parse_args()
    if options.command == "add":
        print(json.dumps(add(options.name)))
    else:
        delete(options.name)
    return 0


def add(name: str) -> dict[str, t.Any]:
    """Make the namespace and wire it; returns the CNI result of the last plugin."""
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        result = None
        configuration = load()
        for plugin in configuration["plugins"]:
            result = call("ADD", name, configuration, plugin, result)
        if result is None:
            sys.exit(f"{CONFIGURATIONS}: the conflist holds no plugin")
        return result
    except BaseException:
        delete(name)
        raise


def delete(name: str) -> None:
    """Undo ``add``: plugins in reverse order, then the namespace."""
    configuration = load()
    for plugin in reversed(configuration["plugins"]):
        call("DEL", name, configuration, plugin, None)
    subprocess.run(["ip", "netns", "delete", name], check=True)


def load() -> dict[str, t.Any]:
    """The configuration that a container runtime takes: the first by name."""
    found = sorted(CONFIGURATIONS.glob("*.conflist"))
    if not found:
        sys.exit(f"{CONFIGURATIONS} holds no conflist; converge this node first")
    return t.cast("dict[str, t.Any]", json.loads(found[0].read_text(encoding="utf-8")))


def call(
    command: str, name: str, configuration: dict[str, t.Any], plugin: dict[str, t.Any], previous: dict[str, t.Any] | None
) -> dict[str, t.Any] | None:
    """Run one plugin as the CNI specification says."""
    given = {**plugin, "name": configuration["name"], "cniVersion": configuration["cniVersion"]}
    if previous is not None:
        given["prevResult"] = previous
    environment = {
        **os.environ,
        "CNI_COMMAND": command,
        "CNI_CONTAINERID": name,
        "CNI_NETNS": f"/run/netns/{name}",
        "CNI_IFNAME": INTERFACE,
        "CNI_PATH": PLUGINS,
        # As a kubelet would name the pod.
        "CNI_ARGS": f"IgnoreUnknown=1;K8S_POD_NAMESPACE=lab;K8S_POD_NAME={name};K8S_POD_UID={name}",
    }
    program = next((path for path in (pathlib.Path(folder, plugin["type"]) for folder in PLUGINS.split(":")) if path.exists()), None)
    if program is None:
        sys.exit(f"CNI plugin {plugin['type']} is in neither of {PLUGINS}")
    done = subprocess.run([str(program)], input=json.dumps(given), env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{plugin['type']} {command} failed: {done.stdout.strip() or done.stderr.strip()}")
    return t.cast("dict[str, t.Any]", json.loads(done.stdout)) if done.stdout.strip() else None


if __name__ == "__main__":
    sys.exit(main())
