# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two nodes at a router as network namespaces, each with a pod on an alias address and one in an overlay of VXLAN.

The alias pods are wired by the CNI plugin, under the rules of the subsystems. The overlay is what flannel makes: a bridge with a
network of 256 addresses on each node, and a VXLAN device with fixed entries for the other node.
"""

from __future__ import annotations

import pathlib
import typing as t

from ansible_collections.gpufleet.vmss.plugins.module_utils.node import alias_rules, rules
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.cni import installed_file, launcher
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.facts.model import Rules
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.subsystems.traffic_accounting import desired_rules
from cni_node import CniNode, Namespace

# VXLAN takes 50 bytes of every packet.
VXLAN_MTU = 1450


class Node(CniNode):
    """Node 0 or 1: 10.1.NUMBER.4 on its NIC, its pods from 10.1.NUMBER.10 on, its overlay 10.244.NUMBER.0/24."""

    def __init__(self, folder: pathlib.Path, number: int, router: Namespace) -> None:
        self.folder, self.number = folder, number
        self.plugin = folder / "bin" / "gpufleet-alias"
        self.plugin.parent.mkdir(parents=True)
        self.plugin.write_text(installed_file.text().replace(launcher.CACHE, str(folder / "cache")), encoding="utf-8")
        self.plugin.chmod(0o755)
        self.records, self.leases = folder / "pods", folder / "leases"
        self.network, self.fabric, self.pods = Namespace(), router, []
        self.address = f"10.1.{number}.4"
        batch(
            self.network,
            "link set lo up",
            f"link add eth0 type veth peer name node{number} netns {router.holder.pid}",
            "link set eth0 up",
            f"address add {self.address}/24 dev eth0",
        )
        batch(router, f"link set node{number} up", f"address add 10.1.{number}.1/24 dev node{number}")
        # Azure's fabric brings an alias address to the NIC that owns it.
        batch(router, *(f"route add {address}/32 via {self.address}" for address in self.pool))
        batch(self.network, f"route add default via 10.1.{number}.1")
        for namespace in (router, self.network):
            namespace.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
        self._rules()

    @property
    def pool(self) -> list[str]:
        return [f"10.1.{self.number}.{number}" for number in range(10, 37)]

    def alias_pod(self) -> tuple[Namespace, str]:
        pod = self.pod()
        config = self.config(addresses=self.pool)
        for item in config["ipam"]["ranges"][0]:
            item.update(subnet=f"10.1.{self.number}.0/24", gateway=self.address)
        result = self.call("ADD", config, f"c{len(self.pods)}", pod.path)
        return pod, result["ips"][0]["address"].partition("/")[0]

    def overlay_pod(self, other: str) -> tuple[Namespace, str]:
        """A pod behind a bridge, its packets for the other node in VXLAN to the address ``other``."""
        pod, mine, theirs = self.pod(), self.number, 1 - self.number
        batch(
            self.network,
            f"link add flannel.1 address 02:00:00:00:00:0{mine} type vxlan id 1 local {self.address} dev eth0 dstport 8472 nolearning",
            f"link set flannel.1 mtu {VXLAN_MTU} up",
            f"address add 10.244.{mine}.0/32 dev flannel.1",
            f"neigh add 10.244.{theirs}.0 lladdr 02:00:00:00:00:0{theirs} dev flannel.1 nud permanent",
            f"route add 10.244.{theirs}.0/24 via 10.244.{theirs}.0 dev flannel.1 onlink",
            "link add cni0 type bridge",
            f"link set cni0 mtu {VXLAN_MTU} up",
            f"address add 10.244.{mine}.1/24 dev cni0",
            f"link add pod mtu {VXLAN_MTU} type veth peer name eth0 mtu {VXLAN_MTU} netns {pod.holder.pid}",
            "link set pod master cni0 up",
        )
        self.network.run("bridge", "fdb", "append", f"02:00:00:00:00:0{theirs}", "dev", "flannel.1", "dst", other)
        batch(
            pod, "link set lo up", "link set eth0 up", f"address add 10.244.{mine}.2/24 dev eth0", f"route add default via 10.244.{mine}.1"
        )
        return pod, f"10.244.{mine}.2"

    def _rules(self) -> None:
        wanted = {
            "nat": alias_rules.masquerade(self.address, "eth0", ("10.0.0.0/8",)),
            "filter": alias_rules.closed(),
            "mangle": desired_rules("openai", ("10.0.0.0/8",), strict=False),
        }
        for table, item in wanted.items():
            self.network.run("iptables-restore", "--noflush", input=rules.restore_input(table, rules.plan_lines(Rules(), item)))


def batch(namespace: Namespace, *lines: str) -> None:
    namespace.run("ip", "-batch", "-", input="\n".join(lines) + "\n")


class Pair:
    """Both nodes, and the three ways between them as (client, server, server's address)."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.router = Namespace()
        self.nodes = [Node(folder / f"node{number}", number, self.router) for number in (0, 1)]
        first, second = self.nodes
        alias = [node.alias_pod() for node in self.nodes]
        overlay = [first.overlay_pod(second.address), second.overlay_pod(first.address)]
        self.ways: dict[str, tuple[Namespace, Namespace, str]] = {
            "host": (first.network, second.network, second.address),
            "alias": (alias[0][0], *alias[1]),
            "vxlan": (overlay[0][0], *overlay[1]),
        }

    def close(self) -> None:
        for node in self.nodes:
            node.close()
        self.router.close()

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()
