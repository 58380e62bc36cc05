# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pods on alias addresses: the NIC's secondary addresses, handed out by CNI without encapsulation."""

from __future__ import annotations

import ipaddress
import json
import posixpath
import re
import typing as t

from ..desired import Desired, DesiredFile, DesiredSysctl
from ..distributions import BY_ID, distribution
from ..facts import imds
from ..facts.model import Facts, Interface, Reads
from ..spec import NodeError, Parameter
from ..subsystem import Parameters, Subsystem, Texts

CONFLIST = "/etc/cni/net.d/10-gpufleet-alias.conflist"
SYSCTL_FILE = "/etc/sysctl.d/99-zz-gpufleet-alias-network.conf"
# On tmpfs: leases of pods that a reboot ended would fail every later ADD.
LEASES = "/run/gpufleet/cni"
CNI_VERSION = "1.0.0"
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")

SPEC = (
    Parameter(
        name="alias_network_state",
        type="str",
        default="present",
        choices=("present", "absent"),
        description="Whether pods shall get alias addresses on this node.",
    ),
    Parameter(
        name="alias_network_name",
        type="str",
        default="alias",
        description="The name of the CNI network, under which its leases are kept.",
    ),
    Parameter(
        name="alias_network_neighbour_thresholds",
        type="list",
        elements="int",
        default=[80000, 90000, 100000],
        description=(
            "The sizes of the neighbour table at which the kernel starts to clean up, does so at once, and takes no more entries. "
            "The defaults are those that a published 2,500-node cluster found necessary; lower ones suit small clusters."
        ),
    ),
)


def _reads(parameters: Parameters) -> Reads:
    files = frozenset({CONFLIST, SYSCTL_FILE})
    if parameters["alias_network_state"] == "absent":
        return Reads(files=files)
    return Reads(
        files=files,
        directories=frozenset({posixpath.join(LEASES, parameters["alias_network_name"])}),
        sysctls=frozenset(_sysctls(parameters)),
        packages=frozenset(item.cni_package for item in BY_ID.values()),
        sources=frozenset({"instance"}),
    )


def _desired(parameters: Parameters, texts: Texts, facts: Facts) -> Desired:
    if parameters["alias_network_state"] == "absent":
        return Desired(
            files=(
                DesiredFile(path=CONFLIST, variables=("alias_network_state",)),
                DesiredFile(path=SYSCTL_FILE, variables=("alias_network_state",)),
            )
        )
    name = parameters["alias_network_name"]
    if not _NAME.match(name):
        raise NodeError(f"alias_network_name is {name!r}; use 1 to 63 letters, digits, dots, dashes or underscores")
    _check_thresholds(parameters)
    if facts.instance is None:
        raise NodeError(
            f"the node's addresses are not known: {facts.instance_problem or 'IMDS was not read'}; "
            "check that this is an Azure instance and that nothing blocks IMDS"
        )
    interface, primary, secondary = _nic(facts.instance, facts.interfaces)
    held, notes = _held(facts, name, secondary)
    packages = distribution(facts.distribution)
    sysctls = _sysctls(parameters)
    conflist = _conflist(
        name, facts.interfaces[interface].mtu, _subnet(facts.instance, facts.interfaces[interface]), primary, (*secondary, *held)
    )
    return Desired(
        packages=(packages.cni_package,),
        files=(
            DesiredFile(path=SYSCTL_FILE, text=_sysctl_text(sysctls), variables=("alias_network_neighbour_thresholds",)),
            DesiredFile(
                path=CONFLIST, text=json.dumps(conflist, indent=1) + "\n", variables=("alias_network_name", "the NIC's addresses in IMDS")
            ),
        ),
        sysctls=tuple(DesiredSysctl(key=key, value=value, variable=variable) for key, (value, variable) in sysctls.items()),
        notes=notes,
    )


def _check_thresholds(parameters: Parameters) -> None:
    given = parameters["alias_network_neighbour_thresholds"]
    if len(given) != 3 or sorted(given) != given or given[0] < 1:
        raise NodeError(
            f"alias_network_neighbour_thresholds is {given}; give three positive numbers, each at least the one before, "
            "for example [80000, 90000, 100000]"
        )


def _nic(instance: t.Mapping[str, t.Any], interfaces: t.Mapping[str, Interface]) -> tuple[str, str, tuple[str, ...]]:
    """The interface with secondary addresses, its primary address, and these; eth0 is asked first."""
    seen = []
    for name in sorted(interfaces, key=lambda name: (name != "eth0", name)):
        found = imds.private_addresses(instance, interfaces[name].mac)
        if len(found) > 1:
            return name, found[0], found[1:]
        if found:
            seen.append(f"{name} has only {found[0]}")
    detail = "; ".join(seen) or f"IMDS lists none of the interfaces {', '.join(sorted(interfaces))}"
    raise NodeError(
        f"no NIC of this node has secondary addresses ({detail}); "
        "give the scale set's NIC more ipConfigurations, or set alias_network_state to absent"
    )


def _subnet(instance: t.Mapping[str, t.Any], interface: Interface) -> str:
    found = imds.subnet(instance, interface.mac)
    try:
        return str(ipaddress.IPv4Network(found or "", strict=False))
    except ValueError as error:
        raise NodeError(
            f"IMDS names no usable subnet for the NIC {interface.mac} ({found or 'none'}); run again, and report it if it stays so"
        ) from error


def _held(facts: Facts, name: str, listed: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Addresses that a pod still uses although IMDS no longer lists them: one stale answer frees nothing."""
    leased = {entry for entry in facts.directories.get(posixpath.join(LEASES, name), ()) if _is_address(entry)}
    found = facts.files.get(CONFLIST)
    configured = _configured(found.text if found else None)
    held = tuple(address for address in configured if address in leased and address not in listed)
    if not held:
        return (), ()
    return held, (f"kept in the pod range although IMDS does not list them, since pods use them: {', '.join(held)}",)


def _configured(text: str | None) -> tuple[str, ...]:
    try:
        plugins = json.loads(text or "{}").get("plugins", [])
        return tuple(single["rangeStart"] for plugin in plugins for ranges in plugin.get("ipam", {}).get("ranges", []) for single in ranges)
    except (ValueError, AttributeError, KeyError, TypeError):
        # Not a file of ours any more; it is written anew.
        return ()


def _is_address(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def _conflist(name: str, mtu: int, subnet: str, primary: str, addresses: tuple[str, ...]) -> dict[str, t.Any]:
    """One range set of one-address ranges: several sets would give every pod one address of each."""
    ranges = [{"subnet": subnet, "rangeStart": address, "rangeEnd": address, "gateway": primary} for address in addresses]
    return {
        "cniVersion": CNI_VERSION,
        "name": name,
        "plugins": [
            {
                # ptp puts the gateway on the node's end of each cable. The subnet's own gateway there would become a local
                # address of the node; its own primary address is one already.
                "type": "ptp",
                "mtu": mtu,
                "ipam": {"type": "host-local", "dataDir": LEASES, "ranges": [ranges], "routes": [{"dst": "0.0.0.0/0"}]},
            },
            {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True},
        ],
    }


def _sysctls(parameters: Parameters) -> dict[str, tuple[str, str]]:
    """Each key with its value and the variable that decides it."""
    # rp_filter stays what it is: pods pass with strict, loose and no filtering, and the kernel takes the stricter of "all"
    # and the interface's own, so a value here could only tighten what an administrator had loosened.
    values = {"net.ipv4.ip_forward": ("1", "")}
    for number, size in enumerate(parameters["alias_network_neighbour_thresholds"], start=1):
        for family in ("ipv4", "ipv6"):
            values[f"net.{family}.neigh.default.gc_thresh{number}"] = (str(size), "alias_network_neighbour_thresholds")
    return values


def _sysctl_text(values: t.Mapping[str, tuple[str, str]]) -> str:
    lines = "".join(f"{key} = {value}\n" for key, (value, _variable) in values.items())
    # The name sorts after the images' own files, which set smaller neighbour tables.
    return "# Written by gpufleet.vmss, subsystem alias_network. Changes here are undone by the next converge.\n" + lines


SUBSYSTEM = Subsystem(
    name="alias_network",
    summary="Give pods the NIC's secondary addresses by CNI, without encapsulation.",
    spec=SPEC,
    reads=_reads,
    desired=_desired,
    after={"node_program": "the lease directory and the state of the node lie under its folders"},
)
