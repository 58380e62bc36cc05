# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs on a node: a network namespace wired as a pod's by the node's own CNI configuration tries what pods must not reach.

Prints {"reached": [...]}, or {"problem": "..."} when no pod could be wired. Takes one free address for some seconds.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys

NAME = "gpufleet-verify"
PLACES = (("169.254.169.254", 80), ("168.63.129.16", 80), ("168.63.129.16", 32526))
LIMIT_SECONDS = 2
CONFLIST = sorted(pathlib.Path("/etc/cni/net.d").glob("*.conflist"))[0]
FOLDERS = "/usr/lib/cni:/opt/cni/bin"


def cni(command):
    """One command for the whole conflist."""
    conflist = json.loads(CONFLIST.read_text())
    result = None
    for plugin in conflist["plugins"] if command == "ADD" else conflist["plugins"][::-1]:
        given = dict(plugin, name=conflist["name"], cniVersion=conflist["cniVersion"])
        if result:
            given["prevResult"] = result
        program = next(path for folder in FOLDERS.split(":") if (path := pathlib.Path(folder, plugin["type"])).exists())
        environment = dict(
            os.environ, CNI_COMMAND=command, CNI_CONTAINERID=NAME, CNI_NETNS=f"/run/netns/{NAME}", CNI_IFNAME="eth0", CNI_PATH=FOLDERS
        )
        done = subprocess.run(
            [str(program)], input=json.dumps(given), env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode and command == "ADD":
            return f"{plugin['type']}: {done.stdout.strip() or done.stderr.strip()}"
        result = json.loads(done.stdout) if done.stdout.strip() else result
    return ""


def connects(address, port):
    with socket.socket() as attempt:
        attempt.settimeout(LIMIT_SECONDS)
        # A refusal comes from there, too.
        return attempt.connect_ex((address, port)) in (0, 111)


if sys.argv[1:] == ["inside"]:
    print(json.dumps([f"{address}:{port}" for address, port in PLACES if connects(address, port)]))
    sys.exit()
subprocess.run(["ip", "netns", "add", NAME], check=True)
try:
    problem = cni("ADD")
    if problem:
        print(json.dumps({"problem": problem}))
    else:
        source = pathlib.Path("/proc/self/cmdline").read_bytes().split(b"\0")[2].decode()
        inside = subprocess.run(
            ["ip", "netns", "exec", NAME, sys.executable, "-c", source, "inside"], capture_output=True, text=True, check=True, timeout=60
        )
        print(json.dumps({"reached": json.loads(inside.stdout)}))
finally:
    cni("DEL")
    subprocess.run(["ip", "netns", "delete", NAME], check=True)
