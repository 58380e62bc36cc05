# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What hypothesis makes nodes, tables and variables from."""

from __future__ import annotations

import typing as t

from ansible_collections.gpufleet.vmss.plugins.module_utils.node import alias_rules
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.facts.model import (
    Facts,
    File,
    Interface,
    Nic,
    Reads,
    Rules,
    Sysctl,
    Unit,
    fits,
)
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.rules import words
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.subsystems.traffic_accounting import desired_rules
from hypothesis import strategies as st
from node_fakes import BUILT_IN, MAC, instance

FOREIGN = (
    "-i eth0 -j MARK --set-xmark 0x1/0x1",
    '-m comment --comment "don\'t touch" -j ACCEPT',
    '-m comment --comment "iptables-exporter other traffic=rdma-in"',
    "-p tcp -m tcp --dport 22 -j RETURN",
    "-j KUBE-FORWARD",
    '-s 192.0.2.0/24 -m comment --comment "say \\"no\\""',
    "",
)
_FORMS = [
    desired_rules(name, ranges, strict=strict)
    for name in ("openai", "old")
    for ranges, strict in ((("10.0.0.0/8",), True), (("10.0.0.0/8",), False), (("10.0.0.0/8", "172.16.0.0/12"), False))
]
OURS = sorted({rule for form in _FORMS for rules in form.hooks.values() for rule in rules} | {"-j GPUFLEET-ACCT-STALE"})
OWN_RULES = sorted({rule for form in _FORMS for rules in form.chains.values() for rule in rules})
OWN_CHAINS = sorted({chain for form in _FORMS for chain in form.chains} | {"GPUFLEET-ACCT-STALE"})


_ALIAS = (alias_rules.masquerade("10.1.0.4", "eth0", ("10.0.0.0/8",)), alias_rules.closed())
ALIAS_OURS = sorted({rule for form in _ALIAS for rules in form.hooks.values() for rule in rules} | {"-j GPUFLEET-ALIAS-STALE"})
ALIAS_RULES = sorted({rule for form in _ALIAS for rules in form.chains.values() for rule in rules})
ALIAS_CHAINS = (alias_rules.MASQUERADE, alias_rules.POD, "GPUFLEET-ALIAS-STALE")


@st.composite
def tables(draw: st.DrawFn, name: str = "mangle") -> Rules:
    """Built-in chains with our rules and those of others in any order and number, own chains of any content, right or stale."""
    counting = name == "mangle"
    ours, own_chains, own_rules = (OURS, OWN_CHAINS, OWN_RULES) if counting else (ALIAS_OURS, ALIAS_CHAINS, ALIAS_RULES)
    any_rules = st.lists(st.sampled_from((*ours, *FOREIGN)), max_size=6).map(tuple)
    chains = {chain: draw(any_rules) for chain in BUILT_IN[name]}
    jumped = {words(rule)[-1] for rules in chains.values() for rule in rules if "-j GPUFLEET-" in rule}
    own = draw(st.dictionaries(st.sampled_from(own_chains), st.lists(st.sampled_from(own_rules), max_size=4).map(tuple), max_size=4))
    # A jump without its chain cannot be in a kernel.
    return Rules(chains={**chains, "KUBE-FORWARD": draw(any_rules), **{chain: own.get(chain, ()) for chain in sorted(jumped | set(own))}})


TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
MODES = st.sampled_from(("0644", "0600", "0755", "0000"))
PATHS = st.sampled_from(("/etc/motd", "/etc/systemd/system/x.service.d/a.conf", "/opt/a/b", "/etc/cron.d/job"))
UNITS = st.sampled_from(("example.service", "example.timer", "ssh.service"))


def _files() -> st.SearchStrategy[list[dict[str, t.Any]]]:
    item = st.fixed_dictionaries(
        {
            "path": PATHS,
            "content": TEXT,
            "mode": MODES,
            "state": st.sampled_from(("present", "absent")),
            "restarts": st.lists(UNITS, max_size=2),
            "secret": st.booleans(),
        }
    )
    return st.lists(item, max_size=3, unique_by=lambda item: str(item["path"]))


def _units() -> st.SearchStrategy[list[dict[str, t.Any]]]:
    item = st.fixed_dictionaries(
        {
            "name": UNITS,
            "content": st.none() | TEXT,
            "enabled": st.none() | st.booleans(),
            "state": st.sampled_from((None, "started", "stopped")),
        }
    )
    return st.lists(item, max_size=2, unique_by=lambda item: str(item["name"]))


_LINES = st.lists(st.sampled_from(("options nvidia NVreg_A=1", "options nvidia-uvm x=1", "blacklist nouveau")), max_size=2)
VARIABLES: dict[str, st.SearchStrategy[dict[str, t.Any]]] = {
    "node_program": st.fixed_dictionaries({"node_program_reboot": st.sampled_from(("never", "allowed"))}),
    "custom": st.fixed_dictionaries(
        {
            "custom_files": _files(),
            "custom_sysctls": st.dictionaries(
                st.sampled_from(("net.core.somaxconn", "kernel.pid_max")), st.integers(1, 9) | st.just("4\t5 6")
            ),
            "custom_units": _units(),
            "custom_modprobe": st.dictionaries(st.sampled_from(("nvidia", "other")), _LINES, max_size=2),
        }
    ),
    "alias_network": st.fixed_dictionaries(
        {
            "alias_network_state": st.sampled_from(("present", "present", "absent")),
            "alias_network_name": st.just("alias"),
            "alias_network_cni": st.sampled_from(("gpufleet", "gpufleet", "external")),
            "alias_network_cni_directory": st.sampled_from(("/usr/lib/cni", "/opt/cni/bin")),
            "alias_network_prefixes": st.sampled_from(([], [], ["10.1.0.16/28"])),
            "alias_network_wireserver": st.booleans(),
            "alias_network_non_masquerade": st.sampled_from((["10.0.0.0/8"], ["10.0.0.0/8", "192.0.2.0/24"])),
            "alias_network_pod_imds": st.sampled_from(("deny", "allow")),
            "alias_network_pod_sysctls": st.sampled_from(({}, {"net.core.somaxconn": 4096})),
            "alias_network_fleet_nodes": st.integers(1, 10000),
            "alias_network_neighbour_thresholds": st.just([]) | st.lists(st.integers(1, 100000), min_size=3, max_size=3).map(sorted),
            "alias_network_conntrack_max": st.sampled_from((65536, 1048576)),
            "alias_network_rp_filter": st.sampled_from((None, 1, 2)),
        }
    ),
    "traffic_accounting": st.fixed_dictionaries(
        {
            "traffic_accounting_state": st.sampled_from(("present", "present", "absent")),
            "traffic_accounting_name": st.sampled_from(("openai", "old", "a.b-c_d")),
            "traffic_accounting_internal_ranges": st.sampled_from((["10.0.0.0/8"], ["172.16.0.0/12"])),
            "traffic_accounting_strict_article": st.booleans(),
        }
    ),
}
_FILE = st.one_of(
    st.none(),
    st.builds(File, mode=st.sampled_from((0o644, 0o600, 0)), text=TEXT),
    st.builds(File, sha256=st.just("sha256:" + "0" * 64)),
    st.builds(File, kind=st.just("link"), mode=st.just(0o777), link=st.sampled_from(("node-000.pyz", "node-001.pyz", "/dev/null"))),
)
# What stands in folders that are read as a whole: files of cloud-init, netplan, other CNI plugins, other owners of sysctls, and
# records of pods. Of the drop-in only its presence matters.
_RECORD = '{"address": "10.1.0.%d", "network": "%s", "namespace": "research", "pod": "train-0", "container_id": "c1"}'
_CONTENTS: dict[str, st.SearchStrategy[t.Any]] = {
    "/etc/systemd/network/10-cloud-init-eth0.network": st.sampled_from(
        (None, File(text="[Match]\nName=eth0\n[Network]\nDHCP=ipv4\nAddress=10.1.0.5/16\nAddress=192.0.2.7/24\n"))
    ),
    "/run/systemd/network/10-netplan-eth0.network": st.sampled_from((None, File(text="[Network]\nAddress=10.1.0.9/16\n"))),
    "/etc/systemd/network/10-old.network.d/90-gpufleet-alias.conf": st.sampled_from((None, File(text="[Network]\nAddress=\n"))),
    "/etc/cni/net.d/05-other.conflist": st.sampled_from((None, File(text='{"plugins": [{"type": "macvlan"}]}'), File(text="["))),
    "/etc/sysctl.d/99-zzz.conf": st.sampled_from((None, File(text="net.ipv4.ip_forward = 0\n-net.ipv4.neigh.*.gc_thresh3=1\n"))),
    "/run/gpufleet/pods/c1-eth0.json": st.none() | st.builds(File, text=st.integers(5, 9).map(lambda number: _RECORD % (number, "alias"))),
    "/run/gpufleet/pods/c2-eth0.json": st.sampled_from((None, File(text="{"))),
}
_NIC = Nic(mac=MAC, primary="10.1.0.4", secondary=("10.1.0.5",), prefixes=("10.1.0.16/28",), subnets=("10.1.0.0/16",))
_ADDRESSES = [f"10.1.0.{number}" for number in range(5, 12)]
_NAMES = st.lists(
    st.sampled_from((*_ADDRESSES, "lock", "last_reserved_ip.0", "gpufleet-custom-left.conf", "node-000.pyz", "node-001.pyz", "mine.conf")),
    unique=True,
)


@st.composite
def facts(draw: st.DrawFn, reads: Reads, leases: t.Sequence[str] = ()) -> Facts:
    """Any node that could have been read for ``reads``."""
    secondary = draw(st.lists(st.sampled_from(_ADDRESSES), min_size=1, unique=True))
    files = {path: draw(_FILE) for path in sorted(reads.files)}
    files |= {path: item for path, item in draw(st.fixed_dictionaries(_CONTENTS)).items() if any(fits(path, one) for one in reads.contents)}
    files |= {path: draw(st.none() | st.builds(File, sha256=st.just("sha256:" + "1" * 64))) for path in sorted(reads.secret_files)}
    sysctl = st.none() | st.builds(Sysctl, value=st.sampled_from(("1", "128", "4 5\t6")), settable=st.booleans())
    unit = st.builds(Unit, enabled=st.booleans(), active=st.booleans(), needs_reload=st.booleans()) | st.just(Unit(fixed="static"))
    return Facts(
        boot_id="b",
        files=files,
        directories={path: tuple(sorted(draw(_NAMES))) for path in sorted(reads.directories)},
        sysctls={key: draw(sysctl) for key in sorted(reads.sysctls)},
        units={name: draw(unit) for name in sorted(reads.units)},
        packages={name: draw(st.sampled_from((None, "1.0"))) for name in sorted(reads.packages)},
        tables={name: draw(tables(name)) for name in sorted(reads.tables)},
        modules={name: draw(st.booleans()) for name in sorted(reads.modules)},
        interfaces={
            "eth0": Interface(
                mac=MAC,
                mtu=draw(st.sampled_from((1500, 3900))),
                addresses=("10.1.0.4/16", *draw(st.lists(st.sampled_from(("10.1.0.5/16", "10.1.0.9/32", "192.0.2.7/24")), unique=True))),
            ),
            "lo": Interface(mac="00:00:00:00:00:00", mtu=65536),
        },
        instance=instance(secondary=secondary) if "instance" in reads.sources else None,
        wireserver=draw(st.none() | st.just((_NIC,))) if "wireserver" in reads.sources else None,
        pending_restarts=tuple(draw(st.lists(st.just("example.service"), max_size=1))),
    )
