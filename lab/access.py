# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user gets: a key, checked host keys, and an ssh configuration whose connections start in the hub."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess

from . import description, fabric, node
from .fleet import ADMIN_USER, Fleet
from .paths import Paths


def key_pair(paths: Paths) -> str:
    """Make the lab's key if there is none; returns the public half."""
    paths.access.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = paths.access / "id_ed25519"
    if not key.exists():
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"gpufleet-lab-{paths.prefix}", "-f", str(key)],
            check=True,
            stdin=subprocess.DEVNULL,
            timeout=30,
        )
    return key.with_suffix(".pub").read_text(encoding="ascii").strip()


def ssh_config(paths: Paths) -> str:
    """The machine's own network has no route to the lab: every connection enters the hub's namespace first."""
    return f"""Host *
  User {ADMIN_USER}
  IdentityFile {paths.access / "id_ed25519"}
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {paths.access / "known_hosts"}
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  KexAlgorithms curve25519-sha256
  ConnectTimeout 10
  ServerAliveInterval 5
  ProxyCommand nsenter --mount={paths.mount_namespace} nsenter --net=/run/netns/{fabric.HUB[0]} nc -N %h %p
"""


def known_hosts(paths: Paths, fleet: Fleet) -> str:
    """One line for each node: its address and its name, with its own key."""
    lines = []
    for instance in fabric.nodes(fleet):
        kind, key = node.host_key(paths, instance).split()[:2]
        lines.append(f"{instance.primary_address},{instance.computer_name} {kind} {key}\n")
    return "".join(lines)


def write(paths: Paths, fleet: Fleet) -> None:
    """Write the user's files, anew whenever the fleet changes; ARM's are written by the daemon."""
    private(paths.access / "known_hosts", known_hosts(paths, fleet))
    private(paths.access / "ssh_config", ssh_config(paths))
    private(paths.access / "fleet.json", json.dumps(document(fleet), indent=1) + "\n")


def private(path: pathlib.Path, text: str) -> None:
    """Write a file that only its owner can read; whoever reads it at the same time sees the old text or the new one."""
    temporary = path.with_name(f".{path.name}.part")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(text)
    temporary.rename(path)


def document(fleet: Fleet) -> dict[str, object]:
    """The fleet for other programs: what was described, and every instance."""
    instances = [
        {
            "scale_set": item.scale_set,
            "name": item.name,
            "computer_name": item.computer_name,
            "vm_id": item.vm_id,
            "vnet": fleet.vnet_of(fleet.scale_set(item.scale_set)).name,
            "kind": item.kind,
            "power": item.power,
            "addresses": list(item.addresses),
        }
        for item in fleet.instances
    ]
    return {
        "prefix": fleet.prefix,
        "resource_group": fleet.description.resource_group,
        "hub": str(description.HUB_VNET),
        "instances": instances,
    }
