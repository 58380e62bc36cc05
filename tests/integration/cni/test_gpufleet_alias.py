# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CNI plugin as its runtimes call it, in real network namespaces with the real host-local, portmap and tuning."""

from __future__ import annotations

import json
import signal
import time
import typing as t

import pytest
from cni_node import LIMIT_SECONDS, NOTHING, POOL, CniNode, Namespace, Refused

VERSIONS = ("0.3.1", "0.4.0", "1.0.0", "1.1.0")
POD = "IgnoreUnknown=1;K8S_POD_NAMESPACE=research;K8S_POD_NAME=train-0;K8S_POD_UID=4f8a;K8S_POD_INFRA_CONTAINER_ID=c1"


def refused(node: CniNode, *arguments: t.Any, **more: str) -> dict[str, t.Any]:
    with pytest.raises(Refused) as said:
        node.call(*arguments, **more)
    return said.value.document


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pod_comes_and_goes_in_every_version(node: CniNode, version: str) -> None:
    pod, config = node.pod(), node.config(version)
    result = node.call("ADD", config, "c1", pod.path)
    assert result["cniVersion"] == version
    assert [item["address"] for item in result["ips"]] == [POOL[0] + "/32"]
    assert ("version" in result["ips"][0]) == (version < "1.0.0")
    host, inside = result["interfaces"]
    assert inside == {"name": "eth0", "mac": "02:67:0a:01:00:0a", "sandbox": pod.path}
    assert host["name"].startswith("gfa") and len(host["name"]) <= 15

    if version >= "0.4.0":
        node.call("CHECK", {**config, "prevResult": result}, "c1", pod.path)
    # The pod reaches the node by the address that a gateway has on no interface; nothing was learned by ARP.
    assert pod.reaches("10.1.0.4")
    assert node.network.reaches(POOL[0])
    assert {item["dst"]: item.get("gateway", "") for item in pod.ip("route")} == {"default": "169.254.1.1", "169.254.1.1": ""}
    assert [(item["dst"], item["state"]) for item in pod.ip("neigh")] == [("169.254.1.1", ["PERMANENT"])]
    assert [item["dst"] for item in node.network.ip("route", "show", "dev", host["name"])] == [POOL[0]]
    assert node.network.run("cat", f"/proc/sys/net/ipv4/conf/{host['name']}/proxy_arp").stdout == "1\n"

    assert node.call("DEL", config, "c1", pod.path) is None
    assert node.left() == NOTHING
    node.call("DEL", config, "c1", pod.path)  # and once more: a runtime repeats it until it ends well


def test_version(node: CniNode) -> None:
    said = node.call("VERSION", '{"cniVersion": "1.0.0"}')
    assert said == {"cniVersion": "1.0.0", "supportedVersions": list(VERSIONS)}
    assert node.call("VERSION", "")["cniVersion"] == "1.1.0"


def test_27_at_once_get_27_addresses(node: CniNode) -> None:
    pods = [node.pod() for _ in POOL]
    calls = [node.start("ADD", node.config(), f"c{number}", pod.path) for number, pod in enumerate(pods)]
    results = [node.finish(call) for call in calls]
    assert sorted(item["ips"][0]["address"] for item in results) == sorted(address + "/32" for address in POOL)
    for number, (pod, result) in enumerate(zip(pods, results, strict=True)):
        node.call("CHECK", {**node.config(), "prevResult": result}, f"c{number}", pod.path)
    # Pods reach each other through the node.
    node.network.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
    assert pods[0].reaches(results[-1]["ips"][0]["address"].partition("/")[0])
    ends = [node.start("DEL", node.config(), f"c{number}", pod.path) for number, pod in enumerate(pods)]
    for end in ends:
        node.finish(end)
    assert node.left() == NOTHING


def test_the_record_is_what_accounting_needs(node: CniNode) -> None:
    pod = node.pod()
    result = node.call("ADD", node.config(), "c1", pod.path, CNI_ARGS=POD)
    (path,) = node.records.iterdir()
    assert path.name == "c1-eth0.json"
    record = json.loads(path.read_text())
    inode = record.pop("netns_inode")
    assert inode == int(pod.run("stat", "-Lc", "%i", pod.path).stdout)
    assert record == {
        "address": POOL[0],
        "container_id": "c1",
        "host_interface": result["interfaces"][0]["name"],
        "interface": "eth0",
        "namespace": "research",
        "netns": pod.path,
        "network": "alias",
        "pod": "train-0",
        "uid": "4f8a",
    }


def test_the_mtu_is_that_of_the_nic_at_this_moment(node: CniNode) -> None:
    node.call("ADD", node.config(), "c1", (first := node.pod()).path)
    node.network.run("ip", "link", "set", "eth0", "mtu", "3900")
    node.call("ADD", node.config(), "c2", (second := node.pod()).path)
    assert [pod.ip("link", "show", "eth0")[0]["mtu"] for pod in (first, second)] == [1500, 3900]


def test_a_full_node_says_who_has_the_addresses(node: CniNode) -> None:
    config = node.config(addresses=POOL[:2])
    for name in ("c1", "c2"):
        node.call("ADD", config, name, node.pod().path, CNI_ARGS=f"K8S_POD_NAMESPACE=research;K8S_POD_NAME=train-{name}")
    before = node.left()
    said = refused(node, "ADD", config, "c3", node.pod().path)["msg"]
    assert "10.1.0.10 research/train-c1, 10.1.0.11 research/train-c2" in said
    assert "all addresses of network alias are in use (2 pods" in said and "more ipConfigurations" in said
    assert node.left() == before


def test_a_container_that_has_an_interface_keeps_it(node: CniNode) -> None:
    pod = node.pod()
    result = node.call("ADD", node.config(), "c1", pod.path)
    refused(node, "ADD", node.config(), "c1", pod.path)
    # Someone else's eth0 in a new container is not taken over either, and nothing stays behind.
    other = node.pod()
    other.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth1")
    before = node.left()
    said = refused(node, "ADD", node.config(), "c2", other.path)
    assert said["code"] == 101 and "already has an interface eth0" in said["msg"]
    assert node.left() == before
    node.call("CHECK", {**node.config(), "prevResult": result}, "c1", pod.path)


@pytest.mark.parametrize(
    ("namespace", "code", "message"),
    [
        ("", 4, "CNI_NETNS is not set"),
        ("/proc/1/nothing", 3, "/proc/1/nothing is gone"),
        ("/proc/self/ns/uts", 4, "which is no network namespace"),
        ("/etc/hostname", 4, "which is no network namespace"),
    ],
)
def test_an_add_for_no_namespace_leaves_nothing(node: CniNode, namespace: str, code: int, message: str) -> None:
    said = refused(node, "ADD", node.config(), "c1", namespace)
    assert (said["code"], message in said["msg"]) == (code, True), said
    assert node.left() == NOTHING


def test_a_delete_needs_no_namespace(node: CniNode) -> None:
    pod = node.pod()
    node.call("ADD", node.config(), "c1", pod.path)
    pod.close()
    node.call("DEL", node.config(), "c1", "")
    assert node.left() == NOTHING


@pytest.mark.parametrize("milliseconds", [2, 8, 14, 20, 26, 32, 40, 55])
def test_a_killed_add_is_undone_by_delete_or_done_again(node: CniNode, milliseconds: int) -> None:
    pod = node.pod()
    call = node.start("ADD", node.config(), "c1", pod.path)
    time.sleep(milliseconds / 1000)  # the moment of the kill is what varies
    call.send_signal(signal.SIGKILL)
    call.communicate(timeout=LIMIT_SECONDS)
    node.call("DEL", node.config(), "c1", pod.path)
    deadline = time.monotonic() + LIMIT_SECONDS
    while node.left() != NOTHING and time.monotonic() < deadline:
        # host-local outlives its killed parent for some milliseconds; the runtime's next DEL finds what it left.
        node.call("DEL", node.config(), "c1", pod.path)
    assert node.left() == NOTHING
    node.call("ADD", node.config(), "c1", pod.path)


def test_check_names_what_is_missing(node: CniNode) -> None:
    pod = node.pod()
    result = node.call("ADD", node.config(), "c1", pod.path)
    given = {**node.config(), "prevResult": result}
    host = result["interfaces"][0]["name"]

    def says(message: str) -> None:
        assert message in refused(node, "CHECK", given, "c1", pod.path)["msg"]

    pod.run("ip", "route", "delete", "default")
    says("the container lacks the route to 0.0.0.0/0")
    node.network.run("ip", "route", "delete", POOL[0])
    says(f"the node lacks the route to {POOL[0]}")
    pod.run("ip", "address", "flush", "dev", "eth0")
    says(f"eth0 lacks the address {POOL[0]}")
    node.network.run("ip", "link", "set", host, "down")
    says(f"the node's interface {host} is missing or down")


def test_collect_removes_what_no_runtime_knows(node: CniNode) -> None:
    config = node.config("1.1.0")
    kept = node.pod()
    result = node.call("ADD", config, "kept", kept.path)
    node.call("ADD", config, "lost", node.pod().path)
    node.call("ADD", config, "unrecorded", node.pod().path)
    (node.records / "unrecorded-eth0.json").unlink()
    assert "valid-attachments" in refused(node, "GC", config)["msg"]
    node.call("GC", {**config, "cni.dev/valid-attachments": [{"containerID": "kept", "ifname": "eth0"}]})
    assert node.left()["leases"] == [POOL[0]]
    assert node.left()["interfaces"] == [result["interfaces"][0]["name"]]
    node.call("CHECK", {**config, "prevResult": result}, "kept", kept.path)


def test_status_tells_whether_an_add_could_succeed(node: CniNode) -> None:
    config = node.config("1.1.0")
    assert node.call("STATUS", config) is None
    assert "host-remote is not in CNI_PATH" in refused(node, "STATUS", {**config, "ipam": {"type": "host-remote"}})["msg"]
    node.network.run("ip", "link", "set", "eth0", "down")
    said = refused(node, "STATUS", config)
    assert (said["code"], "eth0 is missing or down" in said["msg"]) == (50, True)


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ("not JSON", 6, "no JSON"),
        ("[]", 6, "no JSON object"),
        ("", 6, "no JSON"),
        ('{"cniVersion": "2.0.0"}', 1, "cniVersion is 2.0.0"),
        ('{"cniVersion": "1.0.0"}', 7, "needs name and ipam.type"),
    ],
)
def test_a_wrong_configuration_is_one_error(node: CniNode, given: str, code: int, message: str) -> None:
    said = refused(node, "ADD", given, "c1", node.pod().path)
    assert (said["code"], message in said["msg"]) == (code, True), said


def test_an_unknown_command_and_a_wild_name_are_errors(node: CniNode) -> None:
    assert refused(node, "MOVE", node.config(), "c1")["code"] == 4
    assert "../c1" in refused(node, "ADD", node.config(), "../c1", node.pod().path)["msg"]


def test_an_ipam_that_fails_leaves_nothing(node: CniNode) -> None:
    config = {**node.config(), "master": "eth9"}
    assert "eth9" in refused(node, "ADD", config, "c1", node.pod().path)["msg"]
    assert node.left() == NOTHING


def test_with_portmap_and_tuning_behind_it(node: CniNode) -> None:
    plugin = node.config()
    conflist = {
        "cniVersion": plugin.pop("cniVersion"),
        "name": plugin.pop("name"),
        "plugins": [
            plugin,
            {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True},
            {"type": "tuning", "sysctl": {"net.core.somaxconn": "4096"}},
        ],
    }
    pod: Namespace = node.pod()
    result = node.chain("ADD", conflist, "c1", pod.path)
    assert [item["address"] for item in result["ips"]] == [POOL[0] + "/32"]
    assert pod.run("cat", "/proc/sys/net/core/somaxconn").stdout == "4096\n"
    node.chain("CHECK", conflist, "c1", pod.path, result)
    node.chain("DEL", conflist, "c1", pod.path, result)
    assert node.left() == NOTHING
