# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a finished node looks like, asked from outside and without any code of the roles.

Commands run as the inventory says (ansible_become).
"""

from __future__ import annotations

import ipaddress
import json
import pathlib
import shlex
import typing as t

import pytest

COMMENT = "iptables-exporter openai traffic=internet-"
# The four rules of the published cluster: hook, match, direction.
FOUR_RULES = (
    ("INPUT", "! -s 10.0.0.0/8", "in"),
    ("FORWARD", "! -s 10.0.0.0/8", "in"),
    ("OUTPUT", "! -d 10.0.0.0/8", "out"),
    ("FORWARD", "! -d 10.0.0.0/8", "out"),
)


def expand(compact: str) -> list[str]:
    """The inventory's compact form, "10.1.0.5-10.1.0.7,10.1.0.16/28", as a list; read here without the project's own code."""
    addresses: list[str] = []
    for part in filter(None, (piece.strip() for piece in compact.split(","))):
        if "/" in part:
            addresses += map(str, ipaddress.IPv4Network(part))
            continue
        first, _dash, last = part.partition("-")
        start, end = ipaddress.IPv4Address(first), ipaddress.IPv4Address(last or first)
        addresses += [str(start + number) for number in range(int(end) - int(start) + 1)]
    return addresses


def mangle(host: t.Any) -> dict[str, list[str]]:
    chains: dict[str, list[str]] = {}
    for line in host.check_output("iptables -t mangle -S").splitlines():
        if line.startswith("-A "):
            _verb, chain, rule = line.split(" ", 2)
            chains.setdefault(chain, []).append(rule)
    return chains


@pytest.mark.parametrize(("hook", "match", "direction"), FOUR_RULES)
def test_each_of_the_four_rules_counts_once(host: t.Any, hook: str, match: str, direction: str) -> None:
    chains = mangle(host)
    wanted = shlex.split(f'{match} -m comment --comment "{COMMENT}{direction}"')
    reached = [rule for rule in chains.get(hook, []) if "-j " not in rule]
    for rule in chains.get(hook, []):
        if "-j GPUFLEET-" in rule:
            reached += chains.get(rule.split("-j ")[1].split()[0], [])
    assert [shlex.split(rule) for rule in reached].count(wanted) == 1, reached


def alias_network(host: t.Any) -> dict[str, t.Any]:
    """The variables that alias_network was converged with, without their prefix."""
    stored = json.loads(host.check_output("cat /etc/gpufleet/state.d/alias_network.json"))["parameters"]
    return {name.removeprefix("alias_network_"): value for name, value in stored.items()}


def test_pods_get_exactly_the_secondary_addresses_of_the_nic(host: t.Any) -> None:
    if alias_network(host)["cni"] == "external":
        pytest.skip("the CNI configuration is not ours")
    names = sorted(host.file("/etc/cni/net.d").listdir())
    assert names, "no CNI configuration"
    configuration = json.loads(host.file(f"/etc/cni/net.d/{names[0]}").content_string)
    ranges = [single for plugin in configuration["plugins"] for single in plugin.get("ipam", {}).get("ranges", [[]])[0]]
    given = [address for single in ranges for address in expand(f"{single['rangeStart']}-{single['rangeEnd']}")]
    expected = expand(host.ansible.get_variables()["alias_addresses"])
    assert sorted(given) == sorted(expected)


def test_cni_plugins_are_installed(host: t.Any) -> None:
    assert host.package("containernetworking-plugins").is_installed


def test_the_node_forwards(host: t.Any) -> None:
    assert host.sysctl("net.ipv4.ip_forward") == 1


def test_secondary_addresses_are_not_on_the_node_itself(host: t.Any) -> None:
    own = json.loads(host.check_output("ip -json -4 address show dev eth0"))[0]["addr_info"]
    assert len(own) == 1, own


def test_every_pod_has_an_address_of_the_nic(host: t.Any) -> None:
    """What the fabric does not know as an ipConfiguration of this NIC never leaves the node."""
    mine = expand(host.ansible.get_variables()["alias_addresses"])
    lines = host.check_output("cat /run/gpufleet/pods/*.json 2>/dev/null || true").splitlines()
    strange = [
        f"{item['namespace'] or '-'}/{item['pod'] or item['container_id']} has {item['address']}"
        for item in map(json.loads, lines)
        if item["address"] not in mine
    ]
    assert not strange, (
        f"{', '.join(strange)}: no ipConfiguration of this node's NIC has that address, so Azure drops what such a pod sends; "
        "delete the pod, and look whether the scale set lost ipConfigurations while it ran"
    )


def test_a_pod_reaches_neither_imds_nor_the_wireserver(host: t.Any) -> None:
    """Tried from a pod that is made for it; pods on the host's own network are not covered."""
    if alias_network(host)["pod_imds"] == "allow":
        pytest.skip("alias_network_pod_imds is allow")
    probe = pathlib.Path(__file__).with_name("pod_probe.py").read_text(encoding="utf-8")
    answer = json.loads(host.check_output("python3 -c %s", probe))
    if "all addresses" in answer.get("problem", ""):
        pytest.skip("all addresses of this node are in use, so no pod could be made to try")
    assert answer == {"reached": []}


def test_what_leaves_for_the_internet_takes_the_address_of_the_node(host: t.Any) -> None:
    settings = alias_network(host)
    if settings["cni"] == "external":
        pytest.skip("masquerading is left to the owner of the CNI configuration")
    rules = host.check_output("iptables -t nat -S").splitlines()
    assert any("-j MASQUERADE" in rule and rule.startswith("-A GPUFLEET-ALIAS-MASQ") for rule in rules)
    assert any(rule.startswith("-A POSTROUTING") and rule.endswith("-j GPUFLEET-ALIAS-MASQ") for rule in rules)
    for network in settings["non_masquerade"]:
        assert f"-A GPUFLEET-ALIAS-MASQ -d {network} -j RETURN" in rules


def test_runtimes_may_start_pods(host: t.Any) -> None:
    assert host.file("/run/gpufleet/ready/alias_network").exists
    unit = host.service("gpufleet-alias-network")
    assert unit.is_enabled
    assert unit.is_valid
    order = host.check_output("systemctl show --property=Before gpufleet-alias-network.service")
    assert "containerd.service" in order
    assert "kubelet.service" in order


def test_the_stored_state_is_readable_by_root_alone(host: t.Any) -> None:
    assert host.file("/etc/gpufleet/state.d").mode == 0o700
    for name in host.file("/etc/gpufleet/state.d").listdir():
        assert host.file(f"/etc/gpufleet/state.d/{name}").mode == 0o600


def test_the_node_program_finds_nothing_to_do(host: t.Any) -> None:
    answer = json.loads(host.check_output("gpufleet-node converge --check"))
    assert answer["changed"] is False, {name: part["changes"] for name, part in answer["subsystems"].items()}


def test_counters_come_back_at_boot(host: t.Any) -> None:
    unit = host.service("gpufleet-accounting")
    assert unit.is_enabled
    assert unit.is_valid


def test_no_unit_has_failed(host: t.Any) -> None:
    assert host.check_output("systemctl list-units --failed --no-legend --plain") == ""
