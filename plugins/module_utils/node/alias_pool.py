# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which addresses pods may have: those that Azure lists, and those that a pod still holds."""

from __future__ import annotations

import dataclasses
import ipaddress
import json
import typing as t

from .facts import imds
from .facts.model import Facts, Interface, Nic
from .spec import NodeError

# One file an attachment, written by the CNI plugin.
RECORDS = "/run/gpufleet/pods"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pool:
    """``interface`` is the NIC's name on this node. ``held`` are addresses that pods use although nobody lists them any more."""

    interface: str
    primary: str
    subnet: str
    addresses: tuple[str, ...]
    prefixes: tuple[str, ...]
    held: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def every(self) -> frozenset[str]:
        """Each address on its own."""
        blocks = (str(address) for prefix in self.prefixes for address in ipaddress.IPv4Network(prefix))
        return frozenset((*self.addresses, *self.held, *blocks))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Holder:
    """A pod with an address, as the CNI plugin wrote it down."""

    address: str
    network: str
    name: str


def pool(facts: Facts, *, prefixes: t.Sequence[str], configured: frozenset[str], leased: t.Collection[str]) -> Pool:
    """The pool of this node.

    ``prefixes`` are blocks of the NIC that are known beforehand; ``configured`` is what pods could get until now, and
    ``leased`` what of it is given out: one stale answer frees nothing. Raises NodeError when there is no address for pods.
    """
    nics, source = _nics(facts)
    name, nic = _with_secondaries(nics, facts, source, prefixes)
    blocks = tuple(dict.fromkeys([*nic.prefixes, *prefixes]))
    network = _subnet(nic, source)
    for block in blocks:
        if not (_network(block).subnet_of(network) and ipaddress.IPv4Address(nic.primary) not in _network(block)):
            raise NodeError(
                f"the block {block} is not inside the NIC's subnet {network}, or holds its primary address {nic.primary}; correct alias_network_prefixes"
            )
    covered = [_network(block) for block in blocks]
    single = tuple(address for address in nic.secondary if not any(ipaddress.IPv4Address(address) in block for block in covered))
    found = Pool(interface=name, primary=nic.primary, subnet=str(network), addresses=single, prefixes=blocks)
    held = tuple(sorted((configured & frozenset(leased)) - found.every, key=ipaddress.IPv4Address))
    notes = (
        [f"{source} was asked, since IMDS gave no secondary address ({facts.instance_problem or 'it lists none'})"]
        if source != "IMDS"
        else []
    )
    if held:
        names = {item.address: item.name for item in holders(facts)}
        said = ", ".join(f"{address} ({names[address]})" if address in names else address for address in held)
        notes.append(f"kept in the pod range although {source} does not list them, since pods use them: {said}")
    return dataclasses.replace(found, held=held, notes=tuple(notes))


def holders(facts: Facts) -> tuple[Holder, ...]:
    """Who has which address; a record that cannot be read is nobody's."""
    found = []
    for file in facts.matching(f"{RECORDS}/*.json").values():
        try:
            item = json.loads(file.text or "")
            pod = f"{item['namespace'] or '-'}/{item['pod'] or item['container_id'][:12]}"
            found.append(Holder(address=str(item["address"]), network=str(item["network"]), name=pod))
        except (ValueError, KeyError, TypeError):
            continue
    return tuple(found)


def _nics(facts: Facts) -> tuple[tuple[Nic, ...], str]:
    """What Azure says, and which service said it."""
    if facts.wireserver is not None:
        return facts.wireserver, "the wireserver"
    if facts.instance is None:
        also = f"; {facts.wireserver_problem}" if facts.wireserver_problem else ""
        raise NodeError(
            f"the node's addresses are not known: {facts.instance_problem or 'IMDS was not read'}{also}; "
            "check that this is an Azure instance and that nothing blocks IMDS"
        )
    return imds.nics(facts.instance), "IMDS"


def _with_secondaries(nics: tuple[Nic, ...], facts: Facts, source: str, prefixes: t.Sequence[str]) -> tuple[str, Nic]:
    """The interface with addresses for pods; eth0 is asked first."""
    seen = []
    for name in _by_preference(facts.interfaces):
        nic = next((nic for nic in nics if nic.mac == facts.interfaces[name].mac and nic.primary), None)
        if nic is None:
            continue
        if nic.secondary or nic.prefixes or (prefixes and any(_holds(subnet, prefixes[0]) for subnet in nic.subnets)):
            return name, nic
        seen.append(f"{name} has only {nic.primary}")
    detail = "; ".join(seen) or f"{source} lists none of the interfaces {', '.join(sorted(facts.interfaces))}"
    raise NodeError(
        f"no NIC of this node has secondary addresses ({detail}); "
        "give the scale set's NIC more ipConfigurations, or set alias_network_state to absent"
    )


def _by_preference(interfaces: t.Mapping[str, Interface]) -> list[str]:
    return sorted(interfaces, key=lambda name: (name != "eth0", name))


def _holds(subnet: str, prefix: str) -> bool:
    try:
        return _network(prefix).subnet_of(ipaddress.IPv4Network(subnet, strict=False))
    except ValueError:
        return False


def _subnet(nic: Nic, source: str) -> ipaddress.IPv4Network:
    for text in nic.subnets:
        try:
            network = ipaddress.IPv4Network(text, strict=False)
        except ValueError:
            continue
        if ipaddress.IPv4Address(nic.primary) in network:
            return network
    raise NodeError(
        f"{source} names no usable subnet for the NIC {nic.mac} ({', '.join(nic.subnets) or 'none'}); run again, and report it if it stays so"
    )


def _network(prefix: str) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(prefix)
    except ValueError as error:
        raise NodeError(
            f"alias_network_prefixes holds {prefix!r}, which is no block of IPv4 addresses ({error}); write it as 10.1.0.16/28"
        ) from error
