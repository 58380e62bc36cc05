# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses of a scale set change by ARM while its pods run: from single ones to more, and to blocks. Tests go on from each other."""

from __future__ import annotations

import json
import subprocess
import typing as t

import pytest
from runtime_pod import Pods

from lab import control

A, B, OTHER = "gpua000000", "gpua000001", "gpub000000"
CONVERGE = ["gpufleet-node", "converge", "--only", "alias_network"]


def aliases(lab: t.Any, scale_set: str, **options: t.Any) -> dict[str, t.Any]:
    """The module's answer, as a user's play gets it."""
    given = {"resource_group": "gpufleet-lab", "scale_set": scale_set, "env_file": str(lab.paths.access / "azure.env"), **options}
    done: subprocess.CompletedProcess[str] = lab.command(
        "ansible", "localhost", "-m", "gpufleet.vmss.vmss_alias_ips", "-a", json.dumps(given), ANSIBLE_CALLBACK_RESULT_FORMAT="json"
    )
    head, _sign, text = done.stdout.partition("=> ")
    assert "SUCCESS" in head or "CHANGED" in head or "FAILED" in head, done.stdout + done.stderr
    answer: dict[str, t.Any] = {"failed": "FAILED" in head, **json.loads(text)}
    return answer


def vm_ids(lab: t.Any, *names: str) -> list[str]:
    return [item["vm_id"] for item in lab.instances if item["computer_name"] in names]


def pool(item: Pods) -> list[str]:
    item.node.run(CONVERGE)
    (ranges,) = json.loads(item.node.run(["cat", "/etc/cni/net.d/10-gpufleet-alias.conflist"]))["plugins"][0]["ipam"]["ranges"]
    return [one["rangeStart"] if one["rangeStart"] == one["rangeEnd"] else f"{one['rangeStart']}-{one['rangeEnd']}" for one in ranges]


def test_from_10_to_27_addresses_and_pods_of_untouched_instances_lose_no_packet(lab: t.Any, pods: dict[str, Pods]) -> None:
    fewer = aliases(lab, "gpua", count=10, idle_instances=vm_ids(lab, A, B), addresses_in_use=[])
    assert fewer["changed"] and fewer["waves"] and not fewer["left_alone"], fewer
    assert [len(pool(pods[name])) for name in (A, B)] == [10, 10]
    names = [f"p{number}" for number in range(10)]
    pods[B].start(*names)
    pinging = pods[B].node.start(["ctr", "task", "exec", "--exec-id", "ping", "p0", "ping", "-i", "0.02", "-w", "60", "10.0.0.4"])
    assert pinging.stdout is not None and pinging.stdout.readline().startswith("PING")
    more = aliases(lab, "gpua", count=27, idle_instances=vm_ids(lab, A))
    assert [item["reason"] for item in more["left_alone"]] == ["not_idle"], more
    assert len(pool(pods[A])) == 27
    pods[A].start(*(f"p{number:02d}" for number in range(27)))
    pods[B].node.run(["pkill", "-INT", "-x", "ping"])
    said = pinging.communicate(timeout=60)[0]
    assert " 0% packet loss" in said, said
    # The busy one still has what it had, and its pods too.
    assert len(pool(pods[B])) == 10
    assert len(pods[B].addresses()) == 10


def test_an_address_that_a_pod_holds_is_not_taken_away(lab: t.Any, pods: dict[str, Pods]) -> None:
    pods[A].start("one", "two", "three")
    held = [
        {"address": address, "namespace": "research", "pod": name, "instance": A} for name, address in sorted(pods[A].addresses().items())
    ]
    refused = aliases(lab, "gpua", count=0, idle_instances=vm_ids(lab, A, B), addresses_in_use=held)
    assert refused["failed"] and {item["pod"] for item in refused["in_use"]} == {"one", "two", "three"}, refused
    assert "research/one" in refused["msg"]
    assert len(pool(pods[A])) == 27


def test_blocks_serve_pods_as_single_addresses_do(lab: t.Any, pods: dict[str, Pods], artifacts: t.Any) -> None:
    here = pods[OTHER]
    assert aliases(lab, "gpub", blocks=2, idle_instances=vm_ids(lab, OTHER), addresses_in_use=[])["changed"]
    listed = pool(here)
    assert len(listed) == 32, "IMDS lists the addresses of blocks one by one"
    # The same, said beforehand as blocks.
    starts = [listed[0], listed[16]]
    given = {"alias_network_prefixes": [f"{start}/28" for start in starts]}
    assert lab.play("fleet.yml", artifacts, f"--limit localhost,{OTHER} -e '{json.dumps(given)}'").status == 0
    assert pool(here) == [f"{listed[0]}-{listed[15]}", f"{listed[16]}-{listed[31]}"]
    names = [f"p{number:02d}" for number in range(32)]
    here.start(*names)
    assert sorted(here.addresses().values()) == sorted(listed)
    for name in (names[0], names[31]):
        assert here.succeeds(name, "ping", "-c1", "-W3", "10.0.0.4")
    here.stop(*names)


@pytest.mark.parametrize("answer", ["no_secondaries", "cut"])
def test_the_wireserver_describes_blocks_too_when_imds_does_not(lab: t.Any, pods: dict[str, Pods], artifacts: t.Any, answer: str) -> None:
    here = pods[OTHER]
    control.ask(lab.paths, "POST", "/faults", {"path": "metadata/instance", "answer": answer, "times": 1000})
    try:
        run = lab.play("fleet.yml", artifacts, f"--limit localhost,{OTHER} -e alias_network_wireserver=true")
        assert run.status == 0
        assert any("the wireserver was asked" in note for note in run.results[OTHER]["alias_network"]["notes"])
        assert len(pool(here)) == 32
    finally:
        control.ask(lab.paths, "DELETE", "/faults")
