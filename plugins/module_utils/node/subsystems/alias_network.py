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

from .. import alias_pool, alias_rules, networkd, sysctl_files
from ..alias_spec import ARTICLE_NODES, SPEC
from ..cni import conflist, installed_file
from ..desired import UNIT_DIRECTORY, Desired, DesiredFile, DesiredSysctl, DesiredUnit
from ..distributions import BY_ID, distribution
from ..facts.model import Facts, Reads, Unit
from ..spec import NodeError
from ..subsystem import Parameters, Subsystem, Texts

PLUGIN = "gpufleet-alias"
UNIT = "gpufleet-alias-network.service"
SYSCTL_FILE = "/etc/sysctl.d/99-zz-gpufleet-alias-network.conf"
MODULES_FILE = "/etc/modules-load.d/gpufleet-alias-network.conf"
NETWORKD_FILE = "/etc/systemd/networkd.conf.d/90-gpufleet-alias-network.conf"
# Before 10-, 50- and 80-, by which cloud-init, netplan and systemd's own container files start: the first match decides.
PODS_FILE = "/etc/systemd/network/05-gpufleet-alias-pods.network"
CLOUD_INIT_FILE = "/etc/cloud/cloud.cfg.d/90-gpufleet-alias-network.cfg"
TMPFILES_FILE = "/etc/tmpfiles.d/gpufleet-alias-network.conf"
READY = "/run/gpufleet/ready/alias_network"
# On tmpfs: leases of pods that a reboot ended would fail every later ADD.
LEASES = "/run/gpufleet/cni"
WRITTEN = "# Written by gpufleet.vmss, subsystem alias_network. Changes here are undone by the next converge.\n"
# The published cluster of ARTICLE_NODES set these sizes of the neighbour table; below the floor no node is safe that sees
# peers by ARP in a large subnet (the kernel's own 128, 512, 1,024 overflow at a thousand peers).
ARTICLE_THRESHOLDS = (80000, 90000, 100000)
FLOOR_THRESHOLDS = (16384, 28672, 32768)
# The hash table has a quarter of the entries (kernel documentation, nf_conntrack-sysctl: max is by default 4 times the buckets
# on small machines; with fewer buckets the lists get longer).
CONNTRACK_PER_BUCKET = 4
_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")
_POD_SYSCTL = re.compile(r"^net(\.[a-z0-9_]+)+$")
_SYSCTL_VALUE = re.compile(r"^[0-9A-Za-z_. \t-]+$")


def _reads(parameters: Parameters) -> Reads:
    plugin = posixpath.join(parameters["alias_network_cni_directory"], PLUGIN)
    files = frozenset(
        {
            conflist.PATH,
            plugin,
            SYSCTL_FILE,
            MODULES_FILE,
            NETWORKD_FILE,
            PODS_FILE,
            CLOUD_INIT_FILE,
            TMPFILES_FILE,
            READY,
            UNIT_DIRECTORY + UNIT,
        }
    )
    always = Reads(
        files=files,
        tables=frozenset({"nat", "filter"}),
        units=frozenset({UNIT, networkd.UNIT}),
        contents=networkd.PATTERNS | {f"{alias_pool.RECORDS}/*.json"},
    )
    if parameters["alias_network_state"] == "absent":
        return always
    return always | Reads(
        directories=frozenset({posixpath.join(LEASES, parameters["alias_network_name"]), parameters["alias_network_cni_directory"]}),
        contents=conflist.PATTERNS | sysctl_files.PATTERNS,
        sysctls=frozenset(item.key for item in _sysctls(parameters)),
        packages=frozenset(name for item in BY_ID.values() for name in (item.cni_package, item.iptables_package)),
        modules=frozenset({"nf_conntrack"}),
        sources=frozenset({"instance", "addresses", *(("wireserver",) if parameters["alias_network_wireserver"] else ())}),
    )


def _desired(parameters: Parameters, texts: Texts, facts: Facts) -> Desired:
    if parameters["alias_network_state"] == "absent":
        return _absent(parameters, facts)
    _check(parameters)
    name, own = parameters["alias_network_name"], parameters["alias_network_cni"] == "gpufleet"
    written = facts.files.get(conflist.PATH)
    pool = alias_pool.pool(
        facts,
        prefixes=parameters["alias_network_prefixes"],
        configured=conflist.configured(written.text if written else None),
        leased=_leased(facts, name),
    )
    _check_name(facts, name)
    directory = parameters["alias_network_cni_directory"]
    packages = distribution(facts.distribution)
    sysctls = _sysctls(parameters)
    direct = dict.fromkeys([*_ranges(parameters), pool.subnet])
    return Desired(
        packages=(packages.iptables_package, *((packages.cni_package,) if own and directory == packages.cni_directory else ())),
        files=(
            *_system_files(parameters, sysctls, facts),
            DesiredFile(path=UNIT_DIRECTORY + UNIT, text=texts[UNIT], variables=("alias_network_templates",)),
            *_plugin(facts, directory, wanted=own),
            DesiredFile(
                path=conflist.PATH,
                text=_conflist(parameters, pool) if own else None,
                variables=("alias_network_name", "the NIC's addresses in IMDS", "alias_network_prefixes", "alias_network_pod_sysctls"),
            ),
        ),
        modules=("nf_conntrack",),
        sysctls=sysctls,
        no_addresses={pool.interface: pool.every},
        tables={
            "nat": alias_rules.masquerade(pool.primary, pool.interface, direct) if own else alias_rules.none(),
            "filter": alias_rules.closed() if parameters["alias_network_pod_imds"] == "deny" else alias_rules.none(),
        },
        # Enabled only: it is for the next boot, and this run has just done what it would do.
        units=(DesiredUnit(name=UNIT, enabled=True),),
        ready=DesiredFile(path=READY, text=f"{len(pool.every)} addresses for pods\n"),
        notes=(*pool.notes, *_running(facts, wanted=own), *_notes(facts, sysctls, own=own, directory=directory)),
    )


def _absent(parameters: Parameters, facts: Facts) -> Desired:
    """Everything of ours goes but the running kernel values; pods that run keep their network until they end."""
    paths = (READY, conflist.PATH, SYSCTL_FILE, MODULES_FILE, NETWORKD_FILE, PODS_FILE, CLOUD_INIT_FILE, TMPFILES_FILE)
    left = [path for path in facts.files if path.endswith(f".network.d/{networkd.DROP_IN}")]
    return Desired(
        files=(
            *(DesiredFile(path=path, variables=("alias_network_state",)) for path in (*paths, *left, UNIT_DIRECTORY + UNIT)),
            *_plugin(facts, parameters["alias_network_cni_directory"], wanted=False),
        ),
        tables={"nat": alias_rules.none(), "filter": alias_rules.none()},
        units=(DesiredUnit(name=UNIT, enabled=False, active=False),),
        notes=_running(facts, wanted=False),
    )


def _plugin(facts: Facts, directory: str, *, wanted: bool) -> t.Iterator[DesiredFile]:
    """The runtime needs the plugin to take the network of a pod down, so it stays as long as there is one."""
    if wanted or not alias_pool.holders(facts):
        text = installed_file.text() if wanted else None
        yield DesiredFile(
            path=posixpath.join(directory, PLUGIN), text=text, mode=0o755, variables=("alias_network_cni", "alias_network_state")
        )


def _running(facts: Facts, *, wanted: bool) -> tuple[str, ...]:
    pods = [item.name for item in alias_pool.holders(facts)]
    if wanted or not pods:
        return ()
    return (
        f"pods still have addresses of ours, so the plugin {PLUGIN} stays: {', '.join(sorted(pods))}; drain the node, then run this again",
    )


def _check(parameters: Parameters) -> None:
    name, directory = parameters["alias_network_name"], parameters["alias_network_cni_directory"]
    if not _NAME.match(name):
        raise NodeError(f"alias_network_name is {name!r}; use 1 to 63 letters, digits, dots, dashes or underscores")
    if not directory.startswith("/") or posixpath.normpath(directory) != directory:
        raise NodeError(f"alias_network_cni_directory is {directory!r}; give an absolute path, for example /opt/cni/bin")
    given = parameters["alias_network_neighbour_thresholds"]
    if given and (len(given) != 3 or sorted(given) != given or given[0] < 1):
        raise NodeError(
            f"alias_network_neighbour_thresholds is {given}; give three positive numbers, each at least the one before, "
            "for example [80000, 90000, 100000], or none"
        )
    for key, value in parameters["alias_network_pod_sysctls"].items():
        if not _POD_SYSCTL.match(key) or isinstance(value, bool) or not _SYSCTL_VALUE.match(str(value)):
            raise NodeError(
                f"alias_network_pod_sysctls sets {key!r} to {value!r}; a pod's network namespace has parameters as net.core.somaxconn, "
                "with a number or a word for value"
            )


def _check_name(facts: Facts, name: str) -> None:
    """Under another name host-local knows nothing of the addresses that are given out."""
    others = sorted(f"{item.address} {item.name}" for item in alias_pool.holders(facts) if item.network != name)
    if others:
        raise NodeError(
            f"alias_network_name is {name!r}, but pods hold addresses under another name, which would be given out twice: {', '.join(others)}; "
            "keep the name, or drain the node first"
        )


def _ranges(parameters: Parameters) -> list[str]:
    ranges = []
    for text in parameters["alias_network_non_masquerade"]:
        try:
            network = ipaddress.IPv4Network(text)
        except ValueError as error:
            raise NodeError(
                f"alias_network_non_masquerade holds {text!r}, which is no IPv4 network ({error}); write it as 10.0.0.0/8"
            ) from error
        if network.prefixlen == 0:
            raise NodeError(f"alias_network_non_masquerade holds {text}, so pods would reach no internet; name the networks of your own")
        ranges.append(str(network))
    if not ranges:
        raise NodeError(
            "alias_network_non_masquerade is empty, so pods would lose their addresses towards each other; name at least one network"
        )
    return ranges


def _leased(facts: Facts, name: str) -> set[str]:
    """What host-local has given out, and what a running pod was recorded with."""
    entries = facts.directories.get(posixpath.join(LEASES, name), ())
    return {entry for entry in entries if entry[:1].isdigit()} | {item.address for item in alias_pool.holders(facts)}


def _conflist(parameters: Parameters, pool: alias_pool.Pool) -> str:
    document = conflist.build(
        parameters["alias_network_name"],
        master=pool.interface,
        gateway=pool.primary,
        subnet=pool.subnet,
        addresses=(*pool.addresses, *pool.held),
        prefixes=pool.prefixes,
        leases=LEASES,
        sysctls={key: str(value) for key, value in parameters["alias_network_pod_sysctls"].items()},
    )
    return json.dumps(document, indent=1) + "\n"


def _sysctls(parameters: Parameters) -> tuple[DesiredSysctl, ...]:
    thresholds = parameters["alias_network_neighbour_thresholds"]
    variable = "alias_network_neighbour_thresholds" if thresholds else "alias_network_fleet_nodes"
    nodes = parameters["alias_network_fleet_nodes"]
    sizes = thresholds or [
        max(floor, -(-size * nodes // ARTICLE_NODES)) for floor, size in zip(FLOOR_THRESHOLDS, ARTICLE_THRESHOLDS, strict=True)
    ]
    conntrack, reverse = parameters["alias_network_conntrack_max"], parameters["alias_network_rp_filter"]
    return (
        DesiredSysctl(key="net.ipv4.ip_forward", value="1"),
        # Else the kernel removes the primary address, too, when the secondary one that came first is removed.
        DesiredSysctl(key="net.ipv4.conf.all.promote_secondaries", value="1"),
        *(
            DesiredSysctl(key=f"net.{family}.neigh.default.gc_thresh{number}", value=str(size), variable=variable)
            for number, size in enumerate(sizes, start=1)
            for family in ("ipv4", "ipv6")
        ),
        *(
            DesiredSysctl(
                key=f"net.netfilter.nf_conntrack_{key}", value=str(value), variable="alias_network_conntrack_max", module="nf_conntrack"
            )
            for key, value in (("buckets", conntrack // CONNTRACK_PER_BUCKET), ("max", conntrack))
        ),
        *(
            (DesiredSysctl(key="net.ipv4.conf.all.rp_filter", value=str(reverse), variable="alias_network_rp_filter"),)
            if reverse is not None
            else ()
        ),
    )


def _system_files(parameters: Parameters, sysctls: tuple[DesiredSysctl, ...], facts: Facts) -> tuple[DesiredFile, ...]:
    """What keeps the rest of the system from undoing this; networkd is restarted where it runs, and takes up what it finds."""
    running = facts.units.get(networkd.UNIT, Unit()).active
    restarts = (networkd.UNIT,) if running else ()
    pods = "[Match]\nName=gfa*\n\n[Link]\nUnmanaged=yes\n"
    return (
        # The name sorts after the images' own files, which set smaller neighbour tables.
        DesiredFile(
            path=SYSCTL_FILE, text=WRITTEN + "".join(f"{item.key} = {item.value}\n" for item in sysctls), variables=_variables(sysctls)
        ),
        DesiredFile(path=MODULES_FILE, text=f"{WRITTEN}nf_conntrack\n"),
        DesiredFile(
            path=NETWORKD_FILE,
            text=f"{WRITTEN}[Network]\nManageForeignRoutes=no\nManageForeignRoutingPolicyRules=no\n",
            restarts=restarts,
        ),
        DesiredFile(path=PODS_FILE, text=WRITTEN + pods, restarts=restarts),
        *_drop_ins(parameters, facts, restarts),
        DesiredFile(
            path=CLOUD_INIT_FILE,
            text=f"{WRITTEN}# Else it puts every address that IMDS lists on the NIC.\ndatasource:\n  Azure:\n    apply_network_config: false\n",
        ),
        # The runtime keeps results of pods that a reboot ended.
        DesiredFile(
            path=TMPFILES_FILE,
            text=f"{WRITTEN}r! /var/lib/cni/results/{parameters['alias_network_name']}-*\n",
            variables=("alias_network_name",),
        ),
    )


def _variables(sysctls: t.Iterable[DesiredSysctl]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.variable for item in sysctls if item.variable))


def _drop_ins(parameters: Parameters, facts: Facts, restarts: tuple[str, ...]) -> t.Iterator[DesiredFile]:
    """Drop-ins for files that would put a pod's address on the NIC."""
    pool = alias_pool.pool(facts, prefixes=parameters["alias_network_prefixes"], configured=frozenset(), leased=())
    for path, text in networkd.drop_ins(facts, pool.every).items():
        yield DesiredFile(path=path, text=text, restarts=restarts)


def _notes(facts: Facts, sysctls: tuple[DesiredSysctl, ...], *, own: bool, directory: str) -> tuple[str, ...]:
    found = {path: file for pattern in conflist.PATTERNS for path, file in facts.matching(pattern).items()}
    said = [*conflist.notes(found, own=own), *sysctl_files.winners(facts, SYSCTL_FILE, {item.key: item.value for item in sysctls})]
    if not own and not set(found) - {conflist.PATH}:
        said.append(f"{conflist.DIRECTORY} holds no CNI configuration; alias_network_cni is external, so somebody else must put one there")
    packages = distribution(facts.distribution)
    missing = [name for name in ("host-local", "portmap", "tuning") if name not in facts.directories.get(directory, ())]
    if own and missing and directory != packages.cni_directory:
        said.append(
            f"{directory} lacks {', '.join(missing)}, which the CNI configuration calls; put them there (containernetworking plugins)"
        )
    return tuple(said)


SUBSYSTEM = Subsystem(
    name="alias_network",
    summary="Give pods the NIC's secondary addresses by CNI, without encapsulation.",
    spec=SPEC,
    templates=(f"{UNIT}.j2",),
    reads=_reads,
    desired=_desired,
    after={"node_program": "the lease directory and the state of the node lie under its folders"},
)
