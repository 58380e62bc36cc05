# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CNI configuration that a container runtime reads: built, read back, and looked through for those that hide traffic."""

from __future__ import annotations

import ipaddress
import json
import posixpath
import typing as t

from ..facts.model import File

DIRECTORY = "/etc/cni/net.d"
PATH = f"{DIRECTORY}/10-gpufleet-alias.conflist"
PATTERNS = frozenset(f"{DIRECTORY}/*.{ending}" for ending in ("conflist", "conf", "json"))
# The newest that portmap and tuning 1.1 of Debian 12 speak.
VERSION = "1.0.0"
# Traffic of such pods never passes the node's FORWARD chain, where it is counted: macvlan and ipvlan send it out below it, a
# bridge switches it.
HIDING = {
    "macvlan": "sends pod traffic past the node's netfilter",
    "ipvlan": "sends pod traffic past the node's netfilter",
    "bridge": "switches pod traffic below the node's netfilter unless br_netfilter is on",
}


def build(
    name: str,
    *,
    master: str,
    gateway: str,
    subnet: str,
    addresses: t.Iterable[str],
    prefixes: t.Iterable[str],
    leases: str,
    sysctls: t.Mapping[str, str],
) -> dict[str, t.Any]:
    """One range set of one-address ranges and blocks: several sets would give every pod one address of each."""
    ranges = [(address, address) for address in addresses]
    for prefix in prefixes:
        block = ipaddress.IPv4Network(prefix)
        ranges.append((str(block[0]), str(block[-1])))
    pool = [{"subnet": subnet, "rangeStart": first, "rangeEnd": last, "gateway": gateway} for first, last in ranges]
    ipam = {"type": "host-local", "dataDir": leases, "ranges": [pool], "routes": [{"dst": "0.0.0.0/0"}]}
    return {
        "cniVersion": VERSION,
        "name": name,
        "plugins": [
            {"type": "gpufleet-alias", "master": master, "ipam": ipam},
            {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True},
            {"type": "tuning", "sysctl": dict(sorted(sysctls.items()))},
        ],
    }


def configured(text: str | None) -> frozenset[str]:
    """Every address of the ranges of a configuration that we wrote; none of what is no such file any more."""
    found: set[str] = set()
    for plugin in _plugins(text):
        for pool in (plugin.get("ipam") or {}).get("ranges") or ():
            for item in pool:
                try:
                    first, last = (ipaddress.IPv4Address(item[key]) for key in ("rangeStart", "rangeEnd"))
                except (KeyError, TypeError, ValueError):
                    continue
                found.update(str(ipaddress.IPv4Address(number)) for number in range(int(first), min(int(last), int(first) + 256) + 1))
    return frozenset(found)


def notes(files: t.Mapping[str, File], *, own: bool) -> tuple[str, ...]:
    """What is to be said of the configurations of a directory: those that hide traffic, and one that a runtime takes before ours.

    ``own`` tells whether ours is among them.
    """
    others = {path: _plugins(file.text) for path, file in sorted(files.items()) if path != PATH}
    said = [
        f"{path} uses {kind}, which {HIDING[kind]}: pods of it are not counted; remove it, or accept that"
        for path, plugins in others.items()
        for kind in dict.fromkeys(str(plugin.get("type")) for plugin in plugins)
        if kind in HIDING
    ]
    first = [path for path in others if own and posixpath.basename(path) < posixpath.basename(PATH)]
    if first:
        said.append(f"container runtimes take {first[0]} instead of {PATH}, since they take the first by name; remove it, or rename it")
    return tuple(said)


def _plugins(text: str | None) -> list[dict[str, t.Any]]:
    """The plugins of a conflist, or the one of a plain configuration; none of what cannot be read."""
    try:
        document = json.loads(text or "{}")
    except ValueError:
        return []
    if not isinstance(document, dict):
        return []
    found = document.get("plugins", [document])
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
