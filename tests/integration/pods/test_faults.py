# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong on nodes with pods: the right result or one clear error, and nothing left behind."""

from __future__ import annotations

import json
import typing as t

import pytest
from runtime_pod import NOTHING, Pods, start_line

from gpufleet.lab_access import Node
from lab import control

A, B, OTHER = "gpua000000", "gpua000001", "gpub000000"
CONFLIST = "/etc/cni/net.d/10-gpufleet-alias.conflist"
CONVERGE = "gpufleet-node converge --only alias_network"


@pytest.fixture
def fault(lab: t.Any) -> t.Iterator[t.Callable[..., None]]:
    """Makes the lab's Azure fail; all is well again afterwards."""

    def make(**document: t.Any) -> None:
        control.ask(lab.paths, "POST", "/faults", document)

    yield make
    control.ask(lab.paths, "DELETE", "/faults")


def converge(node: Node) -> t.Any:
    return json.loads(node.run(CONVERGE.split()))


def pool(node: Node) -> list[str]:
    (ranges,) = json.loads(node.run(["cat", CONFLIST]))["plugins"][0]["ipam"]["ranges"]
    return [item["rangeStart"] for item in ranges]


def test_after_a_reboot_no_lease_and_no_result_is_left_and_pods_wait_for_their_addresses(
    lab: t.Any, pods: dict[str, Pods], eventually: t.Callable[..., None]
) -> None:
    here = pods[B]
    here.start_detached("one", "two")
    boot = here.node.run(["cat", "/proc/sys/kernel/random/boot_id"])
    assert here.node.run(["sh", "-c", "ls /var/lib/cni/results/alias-*"]).split()
    here.node.run(["sh", "-c", "systemctl reboot >/dev/null 2>&1 &"])
    eventually(lambda: here.node.run(["cat", "/proc/sys/kernel/random/boot_id"]) != boot)
    eventually(lambda: here.node.run(["systemctl", "is-active", "containerd", "gpufleet-alias-network"]).split() == ["active", "active"])
    again = Pods(here.node)
    assert again.left() == NOTHING
    assert not here.node.run(["sh", "-c", "ls /var/lib/cni/results/alias-* 2>/dev/null || true"]).split()
    assert here.node.run(["cat", "/run/gpufleet/ready/alias_network"]) == "27 addresses for pods\n"
    when = here.node.run(
        ["systemctl", "show", "--value", "--property=ActiveEnterTimestampMonotonic", "gpufleet-alias-network", "containerd"]
    ).split()
    assert int(when[0]) < int(when[1]), "addresses first, then the runtime"
    for name in ("one", "two"):
        here.node.run(["sh", "-c", f"ctr container rm {name} || true"])
    again.start("one")


def test_pods_keep_their_network_while_the_runtime_is_killed(pods: dict[str, Pods], eventually: t.Callable[..., None]) -> None:
    pods[A].start("one")
    pods[B].start_detached("one")
    peer = pods[B].addresses()["one"]
    pinging = pods[A].node.start(["ctr", "task", "exec", "--exec-id", "ping", "one", "ping", "-i", "0.05", "-c", "60", peer])
    pods[B].node.run(["systemctl", "kill", "--signal=KILL", "--kill-who=main", "containerd"])
    said = pinging.communicate(timeout=60)[0]
    assert " 0% packet loss" in said, said
    eventually(lambda: bool(pods[B].node.run(["ctr", "version"])))


def test_a_runtime_client_that_is_killed_during_add_leaves_only_what_its_delete_removes(pods: dict[str, Pods]) -> None:
    here = pods[A]
    names = [f"k{number}" for number in range(6)]
    start = "; ".join(start_line(name) for name in names)
    kill = "; ".join(f"sleep 0.03; systemctl kill --signal=KILL pod-{name}" for name in names)
    here.node.run(["sh", "-c", f"{start}; {kill}; true"])
    for name in names:
        here.node.run(["sh", "-c", f"ctr task kill -s SIGKILL {name}; ctr task rm --force {name}; ctr container rm {name}; true"])
        here.network_down(name)
    assert here.left() == NOTHING


def test_imds_that_is_slow_for_a_moment_is_asked_again(pods: dict[str, Pods], fault: t.Callable[..., None]) -> None:
    fault(path="metadata/instance", status=429, times=2)
    assert not converge(pods[A].node)["changed"]


@pytest.mark.parametrize("how", [{"answer": "cut"}, {"status": 503}, {"answer": "no_secondaries"}])
def test_without_addresses_from_imds_nothing_changes_and_one_line_says_why(
    pods: dict[str, Pods], fault: t.Callable[..., None], how: dict[str, t.Any]
) -> None:
    here = pods[A]
    here.start("one")
    before = here.node.run(["cat", CONFLIST])
    fault(path="metadata/instance", times=1000, **how)
    with pytest.raises(
        RuntimeError, match=r"alias_network: (the node's addresses are not known|no NIC of this node has secondary)"
    ) as failed:
        converge(here.node)
    assert len(str(failed.value).strip().splitlines()) == 1
    assert here.node.run(["cat", CONFLIST]) == before
    here.start("two")


def test_an_address_fewer_frees_none_that_a_pod_has(lab: t.Any, pods: dict[str, Pods], fault: t.Callable[..., None]) -> None:
    here = pods[A]
    names = [f"p{number:02d}" for number in range(27)]
    here.start(*names)
    last = pool(here.node)[-1]
    holder = next(name for name, address in here.addresses().items() if address == last)
    fault(path="metadata/instance", times=1000, answer="fewer_addresses")
    result = converge(here.node)
    assert not result["changed"]
    assert any(f"{last} (-/default-{holder}" in note for note in result["subsystems"]["alias_network"]["notes"])
    here.stop(*names)
    assert converge(here.node)["changed"]
    assert last not in pool(here.node)
    control.ask(lab.paths, "DELETE", "/faults")
    converge(here.node)
    assert last in pool(here.node)


def own_addresses(node: Node) -> list[str]:
    return [item["local"] for item in json.loads(node.run(["ip", "-json", "-4", "address", "show", "eth0"]))[0]["addr_info"]]


def test_a_foreign_reload_and_restart_of_networkd_leave_pods_alone(
    lab: t.Any, pods: dict[str, Pods], eventually: t.Callable[..., None]
) -> None:
    here = pods[OTHER]
    mine = next(item["addresses"] for item in lab.instances if item["computer_name"] == OTHER)
    # What cloud-init writes of IMDS: every address on the NIC.
    addresses = "".join(f"Address={address}/20\n" for address in mine)
    text = f"[Match]\nName=eth0\n\n[Network]\n{addresses}Gateway=10.2.0.1\n"
    here.node.run(["sh", "-c", "cat > /etc/systemd/network/10-cloud-init-eth0.network"], stdin=text)
    try:
        # With a /sys that can be written networkd would wait for udev, which does not run here.
        here.node.run(["mount", "-o", "remount,ro", "/sys"])
        here.node.run(["systemctl", "start", "systemd-networkd"])
        eventually(lambda: own_addresses(here.node) == mine)
        assert converge(here.node)["restarts"] == ["systemd-networkd.service"]
        assert own_addresses(here.node) == mine[:1]
        here.start("one")
        pinging = here.node.start(["ctr", "task", "exec", "--exec-id", "ping", "one", "ping", "-i", "0.05", "-c", "100", "10.0.0.4"])
        here.node.run(["networkctl", "reload"])
        here.node.run(["systemctl", "restart", "systemd-networkd"])
        said = pinging.communicate(timeout=60)[0]
        assert " 0% packet loss" in said, said
        assert own_addresses(here.node) == mine[:1]
        assert not converge(here.node)["changed"]
    finally:
        here.node.run(
            ["sh", "-c", "rm -f /etc/systemd/network/10-cloud-init-eth0.network; systemctl stop systemd-networkd.socket systemd-networkd"]
        )
        here.node.run(["mount", "-o", "remount,rw", "/sys"])
        converge(here.node)
