# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virtual machine as a node: a kernel of its own, on the same network, seen by ARM and IMDS like any other."""

from __future__ import annotations

import os
import typing as t

import pytest

GROUP = "gpufleet-lab"
BOOT_ID = ["cat", "/proc/sys/kernel/random/boot_id"]
slow = pytest.mark.skipif(
    "GPUFLEET_TEST_MACHINES" not in os.environ, reason="boots a virtual machine again and again; make test-vm runs it"
)


@pytest.fixture(scope="module")
def virtual(start_lab: t.Callable[..., t.Any]) -> t.Any:
    return start_lab("tvm", "one_machine")


@pytest.fixture(scope="module")
def instances(virtual: t.Any) -> t.Any:
    return virtual.compute().virtual_machine_scale_set_vms


def test_it_has_a_kernel_of_its_own_and_the_network_of_the_others(virtual: t.Any) -> None:
    node = virtual.node("virt000000")
    assert node.run(["hostname"]).strip() == "virt000000"
    assert node.run(["uname", "-r"]).strip() != os.uname().release
    with open("/proc/sys/vm/swappiness", encoding="ascii") as file:
        mine = file.read()
    node.run(["sysctl", "-w", "vm.swappiness=13"])
    with open("/proc/sys/vm/swappiness", encoding="ascii") as file:
        assert file.read() == mine
    node.run(["modprobe", "dummy"])
    url = "http://169.254.169.254/metadata/instance/compute/name?api-version=2021-02-01&format=text"
    assert node.run(["curl", "-fsS", "-H", "Metadata: true", url]) == "virt_0"
    node.run(["nc", "-z", "-w2", "10.1.0.7", "22"])
    virtual.node("cont000000").run(["nc", "-z", "-w2", "10.1.0.4", "22"])


def test_run_command_reaches_it_without_its_network(virtual: t.Any, instances: t.Any) -> None:
    def run(script: str) -> str:
        poller = instances.begin_run_command(GROUP, "virt", "0", {"commandId": "RunShellScript", "script": [script]})
        return str(poller.result().value[0].message)

    assert "[stdout]\nvirt000000" in run("ip link set eth0 down; hostname")
    assert virtual.inside("nc", "-z", "-w1", "10.1.0.4", "22", network="hub", check=False).returncode != 0
    run("ip link set eth0 up; systemctl restart systemd-networkd")
    virtual.node("virt000000").run(["true"])


@slow
def test_arm_restarts_stops_starts_and_reimages_it(virtual: t.Any, instances: t.Any) -> None:
    node = virtual.node("virt000000")
    boot = node.run(BOOT_ID)
    node.run(["touch", "/etc/kept"])
    instances.begin_restart(GROUP, "virt", "0").result()
    assert node.run(BOOT_ID) != boot
    node.run(["test", "-e", "/etc/kept"])
    instances.begin_deallocate(GROUP, "virt", "0").result()
    assert virtual.inside("nc", "-z", "-w1", "10.1.0.4", "22", network="hub", check=False).returncode != 0
    instances.begin_start(GROUP, "virt", "0").result()
    node.run(["test", "-e", "/etc/kept"])
    instances.begin_reimage(GROUP, "virt", "0").result()
    with pytest.raises(RuntimeError):
        node.run(["test", "-e", "/etc/kept"])


@slow
def test_a_converge_sets_what_a_container_cannot_and_it_holds_over_a_reboot(virtual: t.Any, tmp_path: t.Any, instances: t.Any) -> None:
    node = virtual.node("virt000000")
    done = virtual.play("fleet.yml", tmp_path, "--limit localhost,virt000000")
    assert done.status == 0
    kernel = ["sysctl", "-n", "net.ipv4.neigh.default.gc_thresh3", "net.netfilter.nf_conntrack_max", "net.netfilter.nf_conntrack_buckets"]
    assert node.run(kernel).split() == ["100000", "1048576", "262144"]
    assert node.run(["systemctl", "is-active", "systemd-networkd"]).strip() == "active", "as on Azure's images"
    node.add_pod("before")
    again = virtual.play("fleet.yml", tmp_path, "--limit localhost,virt000000")
    assert again.total_changed == 0
    instances.begin_restart(GROUP, "virt", "0").result()
    assert node.run(kernel).split() == ["100000", "1048576", "262144"]
    assert node.run(["cat", "/run/gpufleet/ready/alias_network"]).endswith(" addresses for pods\n")
    node.add_pod("after")
    assert any("internet-in" in comment for _chain, comment in node.counters())
    assert virtual.play("fleet.yml", tmp_path, "--limit localhost,virt000000").total_changed == 0
