# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who reaches whom, from pods of a real container runtime."""

from __future__ import annotations

import json
import subprocess
import typing as t

from runtime_pod import NOTHING, Pods

A, B, OTHER = "gpua000000", "gpua000001", "gpub000000"
# Whether a packet goes there and back: a port that nobody listens on refuses.
REACHES = (
    "import socket, sys; s = socket.socket(); s.settimeout(3); sys.exit(s.connect_ex((sys.argv[1], int(sys.argv[2]))) not in (0, 111))"
)


def reaches(pods: Pods, name: str, address: str, port: int = 9) -> bool:
    return pods.succeeds(name, "python3", "-c", REACHES, address, str(port))


def test_all_27_addresses_serve_27_pods_at_once_and_the_28th_is_told_who_has_them(lab: t.Any, pods: dict[str, Pods]) -> None:
    names = [f"p{number:02d}" for number in range(27)]
    here = pods[A]
    here.start(*names)
    listed = next(item["addresses"][1:] for item in lab.instances if item["computer_name"] == A)
    assert sorted(here.addresses().values()) == sorted(listed)
    here.try_to_start("late")
    assert not here.running("late")
    said = here.said("late")
    assert "all addresses of network alias are in use (27 pods" in said and listed[-1] in said
    assert len(here.left()["interfaces"]) == 27, "the one that failed left nothing"
    here.remove("late")
    addresses = here.addresses()
    for peer in ("p13", "p26"):
        assert reaches(here, "p00", addresses[peer])
    here.stop(*names)
    assert here.left() == NOTHING


def test_pods_reach_what_they_should_and_nothing_else(lab: t.Any, pods: dict[str, Pods]) -> None:
    for name, item in pods.items():
        item.start("one") if name != A else item.start("one", "two")
    here, addresses = pods[A], {name: item.addresses() for name, item in pods.items()}
    own = here.node.address
    assert reaches(here, "one", addresses[A]["two"]), "a pod of the same node"
    assert reaches(here, "one", addresses[B]["one"]), "a pod of another node"
    assert reaches(here, "one", own, 22), "its own node"
    assert reaches(here, "one", pods[B].node.address, 22), "another node"
    assert reaches(here, "one", "10.0.0.4"), "the hub"
    assert not reaches(here, "one", addresses[OTHER]["one"]), "the other cluster"
    assert not reaches(here, "one", pods[OTHER].node.address, 22)
    # The hub reaches pods of both clusters by their own addresses.
    for name in (A, OTHER):
        seen = lab.inside("nc", "-z", "-w2", addresses[name]["one"], "9", network="hub", check=False)
        assert "refused" in lab.inside("nc", "-zv", "-w2", addresses[name]["one"], "9", network="hub", check=False).stderr, seen
    # To the internet under the node's address: the lab's fabric lets nothing else out.
    outside = here.run("one", "curl", "-fsS", "-m5", "http://203.0.113.10/source").strip()
    assert outside == here.node.run(["curl", "-fsS", "-m5", "http://203.0.113.10/source"]).strip()


def test_a_pod_gets_neither_identity_nor_settings_of_its_node(pods: dict[str, Pods]) -> None:
    here = pods[A]
    here.start("one")
    url = "http://169.254.169.254/metadata/instance?api-version=2021-02-01"
    assert not here.succeeds("one", "curl", "-fsS", "-m2", "-H", "Metadata: true", url)
    assert not reaches(here, "one", "168.63.129.16", 80)
    assert not reaches(here, "one", "168.63.129.16", 32526)
    # The node itself has both; its name service is not closed to pods.
    here.node.run(["curl", "-fsS", "-m5", "-H", "Metadata: true", "-o", "/dev/null", url])
    here.node.run(["curl", "-fsS", "-m5", "-o", "/dev/null", "http://168.63.129.16/?comp=versions"])
    assert here.succeeds("one", "ping", "-c1", "-W2", "168.63.129.16")


def test_full_packets_pass_whole_and_under_the_pods_own_address(pods: dict[str, Pods]) -> None:
    for name in (A, B):
        pods[name].start("one")
    sender, receiver = (pods[name].addresses()["one"] for name in (A, B))
    listen = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('', 7500)); s.settimeout(20);"
        "print('there', flush=True); data, peer = s.recvfrom(9000); print(len(data), peer[0])"
    )
    listening = pods[B].node.start(["ctr", "task", "exec", "--exec-id", "listen", "one", "python3", "-c", listen])
    assert listening.stdout is not None and listening.stdout.readline() == "there\n"
    send = (
        "import socket, sys; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
        "s.setsockopt(socket.IPPROTO_IP, 10, 2); s.sendto(bytes(1472), (sys.argv[1], 7500))"  # IP_MTU_DISCOVER, always: never in parts
    )
    pods[A].run("one", "python3", "-c", send, receiver)
    assert listening.communicate(timeout=30)[0].split() == ["1472", sender]
    send_more = send.replace("1472", "1473")
    assert not pods[A].succeeds("one", "python3", "-c", send_more, receiver), "one byte more does not fit"
    kinds = {item.get("linkinfo", {}).get("info_kind", "") for item in json.loads(pods[A].node.run(["ip", "-json", "-details", "link"]))}
    assert kinds <= {"", "veth"}, "no tunnel, no bridge"


def test_an_address_of_nobody_is_dropped_by_the_fabric_and_verify_says_why(lab: t.Any, pods: dict[str, Pods]) -> None:
    for name in (A, B):
        pods[name].start("one")
    here, peer = pods[A], pods[B].addresses()["one"]
    record = "/run/gpufleet/pods/default-one-eth0.json"
    right = here.node.run(["cat", record])
    inside = f"ip address add 10.1.15.200/32 dev eth0; ip route replace {peer}/32 via 169.254.1.1 dev eth0 src 10.1.15.200"
    process = here.node.run(["sh", "-c", "ctr task ls | awk '$1 == \"one\" {print $2}'"]).strip()
    here.node.run(["nsenter", "-t", process, "-n", "sh", "-c", inside])
    assert not reaches(here, "one", peer)
    # As it would be recorded, had the CNI plugin given it.
    here.node.run(["sh", "-c", f"sed s/10.1.0.[0-9]*/10.1.15.200/ {record} > {record}.new; mv {record}.new {record}"])
    bad: subprocess.CompletedProcess[str] = lab.command("ansible-playbook", "playbooks/verify.yml", "--limit", f"localhost,{A}")
    assert bad.returncode != 0
    assert "10.1.15.200" in bad.stdout and "Azure drops what such a pod sends" in bad.stdout
    here.node.run(["sh", "-c", f"cat > {record}"], stdin=right)
    good = lab.command("ansible-playbook", "playbooks/verify.yml", "--limit", f"localhost,{A}")
    assert good.returncode == 0, good.stdout
