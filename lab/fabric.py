# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VNet: network namespaces and veth pairs around a router that does what Azure's fabric does.

Every NIC reaches only the router. It answers all ARP, delivers a secondary address to the NIC that owns it,
and drops what Azure drops: a source that is no ipConfiguration of that NIC, a foreign MAC, one cluster's
traffic to another, and traffic to the internet from a secondary address.
The functions that end in ``_lines`` and ``ruleset`` are pure.
"""

from __future__ import annotations

import ipaddress
import typing as t

from . import namespace
from .fleet import Fleet, Instance, IpConfiguration
from .paths import Paths

ROUTER = "fabric"
# The MAC that Azure's fabric answers ARP with, as every Azure VM's neighbour table shows.
ROUTER_MAC = "12:34:56:78:9a:bc"
MTU = 1500
METADATA_ADDRESS = "169.254.169.254"
METADATA_LINK = "imds"
WIRESERVER_ADDRESS = "168.63.129.16"
# Stands in sets that would be empty, which nft does not take: no packet comes from it.
NOBODY = "192.0.2.1"
# Places beside the nodes: namespace, address with prefix, router's address there.
HUB = ("hub", "10.0.0.4/24", "10.0.0.1")
STORAGE = ("storage", "10.0.1.4/24", "10.0.1.1")
INTERNET = ("internet", "203.0.113.10/24", "203.0.113.1")
# Addresses that nodes are seen by on the internet: documentation range TEST-NET-2 (RFC 5737).
OUTBOUND = ipaddress.IPv4Network("198.51.100.0/24")


def nodes(fleet: Fleet) -> list[Instance]:
    """The instances that are there as systems; stubs live in ARM alone."""
    return [item for item in fleet.instances if item.kind != "stub"]


def port(instance: Instance) -> str:
    """The router's end of a node's cable; interface names have 15 characters at most."""
    return "nic" + instance.mac.replace(":", "")


def place_links() -> list[str]:
    """``ip -batch`` lines for the router's namespace: cables to every place beside the nodes, and the way out."""
    lines = [
        "link set lo up",
        f"link add {METADATA_LINK} type veth peer name {METADATA_LINK}p",
        f"address add {METADATA_ADDRESS}/32 dev {METADATA_LINK}",
        f"address add {WIRESERVER_ADDRESS}/32 dev {METADATA_LINK}",
        f"link set {METADATA_LINK} up",
    ]
    for name, address, router in (HUB, STORAGE, INTERNET):
        lines += _cable(name, name)
        lines += [f"address add {router}/{address.partition('/')[2]} dev {name}"]
    # Whatever is asked for by ARP has a route and so is answered by the router itself.
    return [*lines, f"route add default via {INTERNET[1].partition('/')[0]}"]


def node_links(instance: Instance) -> list[str]:
    """``ip -batch`` lines for the router's namespace: the cable to one node, and its addresses."""
    return [
        *_cable(port(instance), instance.computer_name, mac=instance.mac),
        f"neigh replace {instance.primary_address} lladdr {instance.mac} dev {port(instance)} nud permanent",
        f"route add {instance.primary_address}/32 dev {port(instance)}",
        *(_route("add", instance, item) for item in instance.configurations[1:]),
    ]


def rewire_lines(before: Instance, after: Instance) -> list[str]:
    """``ip -batch`` lines for the router's namespace when a NIC's secondary addresses change; others are left alone."""
    old, new = before.configurations[1:], after.configurations[1:]
    return [
        *(_route("delete", before, item) for item in old if item not in new),
        *(_route("add", after, item) for item in new if item not in old),
    ]


def _route(verb: str, instance: Instance, item: IpConfiguration) -> str:
    # The fabric delivers by NIC and never asks the VM for a secondary address.
    return f"route {verb} {item.address}/{item.prefix_length} via {instance.primary_address} dev {port(instance)} onlink"


def _cable(end: str, network: str, *, mac: str = "") -> list[str]:
    own = f" address {mac}" if mac else ""
    return [
        f"link add {end} address {ROUTER_MAC} mtu {MTU} type veth peer name eth0{own} mtu {MTU} netns {network}",
        f"link set {end} up",
    ]


def place_lines(address: str, router: str) -> list[str]:
    """``ip -batch`` lines inside a node or place, as DHCP would set it up."""
    return ["link set lo up", "link set eth0 up", f"address add {address} dev eth0", f"route add default via {router} dev eth0"]


def node_lines(fleet: Fleet, instance: Instance) -> list[str]:
    prefix = fleet.subnet_of(fleet.scale_set(instance.scale_set)).prefix
    return place_lines(f"{instance.primary_address}/{prefix.prefixlen}", str(prefix.network_address + 1))


def sysctls(ports: t.Iterable[str]) -> dict[str, str]:
    """Kernel settings of the router's namespace."""
    settings = {"net.ipv4.ip_forward": "1", "net.ipv4.conf.all.rp_filter": "0", "net.ipv4.conf.default.rp_filter": "0"}
    for name in ports:
        settings |= {
            f"net.ipv4.conf.{name}.rp_filter": "0",
            f"net.ipv4.conf.{name}.proxy_arp": "1",
            # Answers for addresses that lie behind the very port that asks, too.
            f"net.ipv4.conf.{name}.proxy_arp_pvlan": "1",
            f"net.ipv4.conf.{name}.send_redirects": "0",
            # Else the first packet to a new address waits most of a second.
            f"net.ipv4.neigh.{name}.proxy_delay": "0",
        }
    return settings


def ruleset(fleet: Fleet) -> str:
    """The nft ruleset of the router."""
    cabled = nodes(fleet)
    allowed = [f'"{port(item)}" . {item.mac} . {address}' for item in cabled for address in item.addresses]
    ports = [f'"{port(item)}"' for item in cabled]
    outbound = [f"{item.primary_address} : {outbound_address(item)}" for item in cabled]
    primaries = [item.primary_address for item in cabled]
    clusters = [str(vnet.address_space) for vnet in fleet.description.vnets]
    same = [f"{space} . {space}" for space in clusters]
    # Declared, deleted, defined: loaded in one transaction this replaces what is there, whether or not anything is.
    return f"""
table ip fabric
delete table ip fabric
table ip fabric {{
  set ports {{ type ifname; elements = {{ {_elements(ports, '"none"')} }} }}
  set configurations {{ type ifname . ether_addr . ipv4_addr; elements = {{ {_elements(allowed, '"none" . 00:00:00:00:00:00 . 192.0.2.1')} }} }}
  set primaries {{ type ipv4_addr; elements = {{ {_elements(primaries, NOBODY)} }} }}
  set clusters {{ type ipv4_addr; flags interval; elements = {{ {_elements(clusters, NOBODY)} }} }}
  set same_vnet {{ type ipv4_addr . ipv4_addr; flags interval; elements = {{ {_elements(same, f"{NOBODY} . {NOBODY}")} }} }}
  map outbound {{ type ipv4_addr : ipv4_addr; elements = {{ {_elements(outbound, f"{NOBODY} : {NOBODY}")} }} }}

  chain source {{
    type filter hook prerouting priority raw; policy accept;
    iifname @ports iifname . ether saddr . ip saddr != @configurations counter drop
  }}
  chain local {{
    type filter hook input priority filter; policy drop;
    ip daddr {METADATA_ADDRESS} tcp dport 80 ip saddr @primaries accept
    ip daddr {WIRESERVER_ADDRESS} tcp dport 80 iifname @ports accept
    ip protocol icmp accept
    counter drop
  }}
  chain forward {{
    type filter hook forward priority filter; policy drop;
    ct state established,related accept
    ip saddr . ip daddr @same_vnet accept
    iifname "{HUB[0]}" ip daddr @clusters accept
    ip saddr @clusters oifname "{HUB[0]}" accept
    oifname "{STORAGE[0]}" accept
    ip saddr @primaries oifname "{INTERNET[0]}" ip daddr != {{ 10.0.0.0/8, 169.254.0.0/16 }} accept
    iifname {{ "{HUB[0]}", "{STORAGE[0]}" }} oifname "{INTERNET[0]}" accept
    counter drop
  }}
  chain outbound_address {{
    type nat hook postrouting priority srcnat; policy accept;
    oifname "{INTERNET[0]}" snat to ip saddr map @outbound
  }}
}}
"""


def _elements(values: list[str], otherwise: str) -> str:
    return ", ".join(values or [otherwise])


def outbound_address(instance: Instance) -> str:
    """The address that the internet sees; some nodes share one, as behind Azure's own."""
    return str(OUTBOUND.network_address + 1 + int(ipaddress.IPv4Address(instance.primary_address)) % (OUTBOUND.num_addresses - 2))


def build(paths: Paths, fleet: Fleet) -> None:
    """Make the namespaces and wire them."""
    places = [HUB, STORAGE, INTERNET]
    for network in (ROUTER, *(name for name, _, _ in places)):
        namespace.inside(paths, ["ip", "netns", "add", network])
    _batch(paths, ROUTER, place_links())
    for name, address, router in places:
        _batch(paths, name, place_lines(address, router))
    _set(paths, sysctls(name for name, _, _ in places))
    # Answers to the nodes' outbound addresses find their way back.
    _batch(paths, INTERNET[0], [f"route add {OUTBOUND} via {INTERNET[2]} dev eth0"])
    for instance in nodes(fleet):
        attach(paths, fleet, instance)
    load_rules(paths, fleet)


def attach(paths: Paths, fleet: Fleet, instance: Instance) -> None:
    """Make one node's namespace and wire it to the router; ``load_rules`` then lets it speak."""
    namespace.inside(paths, ["ip", "netns", "add", instance.computer_name])
    _batch(paths, ROUTER, node_links(instance))
    _batch(paths, instance.computer_name, node_lines(fleet, instance))
    _set(paths, sysctls([port(instance)]))


def detach(paths: Paths, instance: Instance) -> None:
    """Remove one node's namespace, and with it its cable and all routes over that."""
    namespace.inside(paths, ["ip", "netns", "delete", instance.computer_name])
    # A process that is still leaving the namespace would keep the cable for a moment, and the name with it.
    namespace.inside(paths, ["ip", "link", "delete", port(instance)], network=ROUTER, check=False)


def rewire(paths: Paths, before: Instance, after: Instance) -> None:
    _batch(paths, ROUTER, rewire_lines(before, after))


def load_rules(paths: Paths, fleet: Fleet) -> None:
    """Put the router's rules in place, all at once; connections that are established stay."""
    namespace.inside(paths, ["nft", "-f", "-"], network=ROUTER, stdin=ruleset(fleet))


def _set(paths: Paths, settings: dict[str, str]) -> None:
    namespace.inside(paths, ["sysctl", "-q", "-w", *(f"{key}={value}" for key, value in settings.items())], network=ROUTER)


def _batch(paths: Paths, network: str, lines: list[str]) -> None:
    namespace.inside(paths, ["ip", "-batch", "-"], network=network, stdin="\n".join(lines) + "\n")
