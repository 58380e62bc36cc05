# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VNet as nodes see it: what arrives, as whom, and what the fabric drops."""

from __future__ import annotations

import json
import subprocess
import typing as t

import pytest

A, B, OTHER = "gpua000000", "gpua000001", "cpub000000"
# Sends one UDP packet from any source address and MAC, past the node's own stack.
RAW = r"""
import socket, struct, sys
source, target, mac = sys.argv[1:]
own = open("/sys/class/net/eth0/address").read().strip()
mac_bytes = bytes.fromhex((mac or own).replace(":", ""))
payload = b"raw-" + source.encode()
udp = struct.pack("!HHHH", 7777, 7777, 8 + len(payload), 0) + payload
head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, socket.inet_aton(source), socket.inet_aton(target))
total = sum(struct.unpack("!10H", head))
total = (total & 0xFFFF) + (total >> 16)
head = head[:10] + struct.pack("!H", ~(total + (total >> 16)) & 0xFFFF) + head[12:]
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
wire.bind(("eth0", 0))
wire.send(bytes.fromhex("123456789abc") + mac_bytes + b"\x08\x00" + head + udp)
"""
# Prints every payload that arrives until one says that all has been sent.
LISTEN = """
import socket
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("0.0.0.0", 7777))
server.settimeout(20)
print("listening", flush=True)
while (payload := server.recv(100)) != b"end":
    print(payload.decode(), flush=True)
"""


def address(lab: t.Any, name: str, number: int = 0) -> str:
    return str(next(item for item in lab.instances if item["computer_name"] == name)["addresses"][number])


def reaches(lab: t.Any, source: str, target: str, *options: str) -> bool:
    """Whether a connection to the target's sshd comes about."""
    return bool(lab.inside("nc", "-z", "-w1", *options, target, "22", network=source, check=False).returncode == 0)


def test_the_hub_reaches_every_cluster_and_the_clusters_not_each_other(lab: t.Any) -> None:
    assert all(reaches(lab, "hub", address(lab, name)) for name in (A, B, OTHER))
    assert reaches(lab, A, address(lab, B))
    assert not reaches(lab, A, address(lab, OTHER))
    assert not reaches(lab, OTHER, address(lab, A))


def test_nodes_are_seen_on_the_internet_by_addresses_of_the_fabric(lab: t.Any) -> None:
    seen = lab.inside("curl", "-fsS", "-m5", "http://203.0.113.10/source", network=A).stdout.strip()
    assert seen.startswith("198.51.100.")


def test_a_secondary_address_is_delivered_to_the_nic_that_owns_it_and_has_no_way_out(lab: t.Any) -> None:
    alias = address(lab, A, 1)
    assert not reaches(lab, B, alias), "nobody has it on the node yet"
    lab.inside("ip", "address", "add", f"{alias}/32", "dev", "lo", network=A)
    try:
        assert reaches(lab, B, alias)
        assert reaches(lab, "hub", alias)
        assert reaches(lab, A, address(lab, B), "-s", alias)
        out = lab.inside("curl", "-fsS", "-m2", "--interface", alias, "http://203.0.113.10/source", network=A, check=False)
        assert out.returncode != 0, "the internet is reached from primary addresses alone"
    finally:
        lab.inside("ip", "address", "delete", f"{alias}/32", "dev", "lo", network=A)


def test_the_fabric_drops_foreign_sources_and_foreign_macs(lab: t.Any) -> None:
    target = address(lab, B)
    listening = lab.node(B).start(["python3", "-c", LISTEN])
    try:
        assert listening.stdout.readline().strip() == "listening"
        mine, alias, stolen = address(lab, A), address(lab, A, 1), address(lab, B, 1)
        for source, mac in ((stolen, ""), ("192.0.2.9", ""), (mine, "02:00:00:00:00:01"), (mine, ""), (alias, "")):
            lab.inside("python3", "-c", RAW, source, target, mac, network=A)
        lab.inside(
            "python3",
            "-c",
            f"import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'end', ('{target}', 7777))",
            network=A,
        )
        seen, errors = listening.communicate(timeout=30)
    finally:
        listening.kill()
    assert seen.split() == [f"raw-{mine}", f"raw-{alias}"], errors


def test_packets_of_the_full_mtu_pass_whole_and_longer_ones_do_not(lab: t.Any) -> None:
    """What an overlay adds to a full packet makes it one that the network does not take."""
    target = address(lab, B)
    send = (
        "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.IPPROTO_IP, 10, 2); "
        f"s.sendto(sys.argv[1].encode().ljust(int(sys.argv[2]), b'.'), ('{target}', 7777))"
    )
    listening = lab.node(B).start(["python3", "-c", LISTEN.replace("100", "9000").replace("payload.decode()", "len(payload)")])
    lab.inside("ip", "link", "set", "eth0", "mtu", "9000", network=A)
    try:
        assert listening.stdout.readline().strip() == "listening"
        for size in (1500 - 28, 1501 - 28, 1550 - 28):
            lab.inside("python3", "-c", send, "x", str(size), network=A, check=False)
        lab.inside("python3", "-c", send, "end", "3", network=A)
        seen, errors = listening.communicate(timeout=30)
    finally:
        listening.kill()
        lab.inside("ip", "link", "set", "eth0", "mtu", "1500", network=A)
    assert seen.split() == ["1472"], errors


def test_one_mac_answers_for_every_address_of_the_network(lab: t.Any) -> None:
    for target in (address(lab, B), address(lab, B, 1), "10.1.7.77"):
        reaches(lab, A, target)
    table = json.loads(lab.inside("ip", "-json", "neigh", "show", "dev", "eth0", network=A).stdout)
    assert {item["lladdr"] for item in table if "lladdr" in item} == {"12:34:56:78:9a:bc"}


@pytest.mark.parametrize("name", [A, OTHER])
def test_imds_knows_who_asks(lab: t.Any, name: str) -> None:
    url = "http://169.254.169.254/metadata/instance?api-version=2021-02-01"
    document = json.loads(lab.node(name).run(["curl", "-fsS", "-H", "Metadata: true", url]))
    mine = next(item for item in lab.instances if item["computer_name"] == name)
    assert document["compute"]["vmId"] == mine["vm_id"]
    assert [item["privateIpAddress"] for item in document["network"]["interface"][0]["ipv4"]["ipAddress"]] == mine["addresses"]


def test_imds_gives_secondary_addresses_no_answer_and_the_wireserver_does(lab: t.Any) -> None:
    alias = address(lab, A, 1)
    lab.inside("ip", "address", "add", f"{alias}/32", "dev", "lo", network=A)
    try:
        ask = ("curl", "-sS", "-m2", "-o", "/dev/null", "-w", "%{http_code}", "--interface", alias)
        silent = lab.inside(
            *ask, "-H", "Metadata: true", "http://169.254.169.254/metadata/instance?api-version=2021-02-01", network=A, check=False
        )
        assert (silent.returncode, silent.stdout) == (28, "000")
        answered = lab.inside(*ask, "http://168.63.129.16/machine/plugins?comp=nmagent&type=getinterfaceinfov1", network=A)
        assert answered.stdout == "200"
    finally:
        lab.inside("ip", "address", "delete", f"{alias}/32", "dev", "lo", network=A)


def test_kernel_wide_settings_are_out_of_reach_and_those_of_the_network_are_not(lab: t.Any) -> None:
    node = lab.node(A)
    with pytest.raises(RuntimeError, match="permission denied on key"):
        node.run(["sysctl", "-w", "vm.swappiness=11"])
    node.run(["sysctl", "-w", "net.ipv4.conf.eth0.log_martians=1"])
    node.run(["sysctl", "-w", "net.ipv4.conf.eth0.log_martians=0"])


def test_a_host_key_that_is_not_the_nodes_is_refused(lab: t.Any) -> None:
    known = lab.paths.access / "known_hosts"
    right = known.read_text(encoding="utf-8")
    lines = right.splitlines()
    keys = [line.split()[2] for line in lines]
    known.write_text(
        "\n".join(f"{line.rpartition(' ')[0]} {key}" for line, key in zip(lines, keys[1:] + keys[:1], strict=True)) + "\n", encoding="utf-8"
    )
    try:
        with pytest.raises(RuntimeError, match=r"(?i)host key"):
            lab.node(A).run(["true"])
    finally:
        known.write_text(right, encoding="utf-8")
    lab.node(A).run(["true"])


def test_a_reboot_gives_a_new_boot_id_and_keeps_files_and_addresses(lab: t.Any, eventually: t.Any) -> None:
    node = lab.node(B)
    boot = node.run(["cat", "/proc/sys/kernel/random/boot_id"])
    node.run(["touch", "/etc/kept"])
    node.start(["systemctl", "reboot"]).wait(timeout=30)
    eventually(lambda: node.run(["cat", "/proc/sys/kernel/random/boot_id"]) != boot)
    node.run(["test", "-e", "/etc/kept"])
    assert reaches(lab, A, address(lab, B))


def test_the_machine_has_no_way_into_the_lab(lab: t.Any) -> None:
    routes = subprocess.run(["ip", "route"], capture_output=True, text=True, check=True).stdout
    assert "10.1." not in routes and "169.254.169.254" not in routes
    links = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True).stdout
    assert "nic" not in links and "hub" not in links
