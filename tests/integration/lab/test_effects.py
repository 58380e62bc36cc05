# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes to ARM and what they do to real nodes, through Azure's own client; and what nodes may do to themselves."""

from __future__ import annotations

import json
import subprocess
import sys
import typing as t

import pytest
from azure.mgmt.compute import ComputeManagementClient
from azure.mgmt.compute.models import VirtualMachineScaleSetIPConfiguration

from gpufleet.lab_access import Node

GROUP = "gpufleet-lab"
BOOT_ID = ["cat", "/proc/sys/kernel/random/boot_id"]
MANAGED = """
import sys
from azure.identity import ManagedIdentityCredential
print(ManagedIdentityCredential().get_token(sys.argv[1] + "/.default").token)
"""


@pytest.fixture(scope="module")
def changing(start_lab: t.Callable[..., t.Any]) -> t.Any:
    """A lab of its own: what is written to it is not what others expect."""
    return start_lab("teff", "two_nodes")


@pytest.fixture(scope="module")
def compute(changing: t.Any) -> ComputeManagementClient:
    client: ComputeManagementClient = changing.compute()
    return client


def at(changing: t.Any, address: str) -> Node:
    return Node(changing.paths.access, address)


def test_scaling_out_boots_a_node_that_knows_itself(changing: t.Any, compute: ComputeManagementClient) -> None:
    compute.virtual_machine_scale_sets.begin_update(GROUP, "old", {"sku": {"capacity": 2}}).result()
    node = at(changing, "10.1.0.12")
    assert node.run(["hostname"]).strip() == "old000001"
    url = "http://169.254.169.254/metadata/instance/compute/name?api-version=2021-02-01&format=text"
    assert node.run(["curl", "-fsS", "-H", "Metadata: true", url]) == "old_1"
    listed = changing.command("ansible-inventory", "--list", "--limit=old000001")
    assert '"ansible_host": "10.1.0.12"' in listed.stdout


def test_a_reimaged_node_is_another_system_with_the_same_name(changing: t.Any, compute: ComputeManagementClient) -> None:
    node = at(changing, "10.1.0.12")
    node.run(["touch", "/etc/marker"])
    key = node.run(["cat", "/etc/ssh/ssh_host_ed25519_key.pub"])
    boot = node.run(BOOT_ID)
    compute.virtual_machine_scale_set_vms.begin_restart(GROUP, "old", "1").result()
    assert node.run(BOOT_ID) != boot
    node.run(["test", "-e", "/etc/marker"])
    compute.virtual_machine_scale_set_vms.begin_reimage(GROUP, "old", "1").result()
    assert node.run(["hostname"]).strip() == "old000001"
    assert node.run(["cat", "/etc/ssh/ssh_host_ed25519_key.pub"]) != key
    with pytest.raises(RuntimeError):
        node.run(["test", "-e", "/etc/marker"])


def test_a_deallocated_node_is_silent_until_it_is_started(changing: t.Any, compute: ComputeManagementClient) -> None:
    node = at(changing, "10.1.0.12")
    compute.virtual_machine_scale_set_vms.begin_deallocate(GROUP, "old", "1").result()
    assert changing.inside("nc", "-z", "-w1", "10.1.0.12", "22", network="hub", check=False).returncode != 0
    compute.virtual_machine_scale_set_vms.begin_start(GROUP, "old", "1").result()
    assert node.run(["hostname"]).strip() == "old000001"


def test_new_aliases_reach_a_node_with_the_upgrade_and_leave_it_running(changing: t.Any, compute: ComputeManagementClient) -> None:
    node = at(changing, "10.1.0.4")
    boot = node.run(BOOT_ID)
    held = compute.virtual_machine_scale_sets.get(GROUP, "old")
    nic = held.virtual_machine_profile.network_profile.network_interface_configurations[0]  # type: ignore[union-attr,index]
    subnet = nic.ip_configurations[0].subnet
    nic.ip_configurations.append(VirtualMachineScaleSetIPConfiguration(name="one-more", subnet=subnet, primary=False))
    nic.ip_configurations.append(
        VirtualMachineScaleSetIPConfiguration(name="block", subnet=subnet, primary=False, private_ip_address_prefix_length=28)
    )
    compute.virtual_machine_scale_sets.begin_create_or_update(GROUP, "old", held).result()
    compute.virtual_machine_scale_sets.begin_update_instances(GROUP, "old", {"instanceIds": ["0"]}).result()
    assert node.run(BOOT_ID) == boot
    written = json.loads((changing.paths.access / "fleet.json").read_text(encoding="utf-8"))["instances"]
    addresses = next(item["addresses"] for item in written if item["computer_name"] == "old000000")
    assert len(addresses) == 4 + 1 + 16
    for address in (addresses[4], addresses[-1]):
        changing.inside("ip", "address", "add", f"{address}/32", "dev", "lo", network="old000000")
        try:
            assert changing.inside("nc", "-z", "-w1", address, "22", network="new000000", check=False).returncode == 0, address
        finally:
            changing.inside("ip", "address", "delete", f"{address}/32", "dev", "lo", network="old000000")


def test_run_command_reaches_a_node_whose_network_is_dead(changing: t.Any, compute: ComputeManagementClient) -> None:
    def run(script: str) -> str:
        poller = compute.virtual_machine_scale_set_vms.begin_run_command(
            GROUP, "old", "1", {"commandId": "RunShellScript", "script": [script]}
        )
        return str(poller.result().value[0].message)  # type: ignore[index]

    assert "[stdout]\nold000001" in run("ip link set eth0 down; hostname; echo trouble >&2")
    assert changing.inside("nc", "-z", "-w1", "10.1.0.12", "22", network="hub", check=False).returncode != 0
    assert "[stderr]\n" in run("ip link set eth0 up && ip route replace default via 10.1.0.1")
    assert at(changing, "10.1.0.12").run(["hostname"]).strip() == "old000001"


def test_deleted_nodes_leave_nothing(changing: t.Any, compute: ComputeManagementClient) -> None:
    compute.virtual_machine_scale_sets.begin_delete_instances(GROUP, "old", {"instanceIds": ["1"]}).result()
    assert "old000001" not in changing.inside("ip", "netns", "list").stdout
    assert not changing.paths.node("old000001").exists()
    assert len(changing.inside("ip", "-o", "link", network="fabric").stdout.split("nic")) == 3
    assert "old000001" not in (changing.paths.access / "known_hosts").read_text(encoding="utf-8")


def test_a_repair_replaces_a_node_by_another_machine_where_repairs_are_on(changing: t.Any, compute: ComputeManagementClient) -> None:
    def repair() -> subprocess.CompletedProcess[str]:
        answer: subprocess.CompletedProcess[str] = changing.command("gpufleet", "lab", "repair", "--prefix", changing.prefix, "old000000")
        return answer

    refused = repair()
    assert refused.returncode == 1 and "has none enabled" in refused.stderr
    before = compute.virtual_machine_scale_set_vms.get(GROUP, "old", "0").vm_id
    policy = {"automaticRepairsPolicy": {"enabled": True, "gracePeriod": "PT10M", "repairAction": "Replace"}}
    compute.virtual_machine_scale_sets.begin_update(GROUP, "old", {"properties": policy}).result()
    assert repair().returncode == 0
    assert compute.virtual_machine_scale_set_vms.get(GROUP, "old", "0").vm_id != before
    written = json.loads((changing.paths.access / "fleet.json").read_text(encoding="utf-8"))["instances"]
    address = next(item["addresses"][0] for item in written if item["computer_name"] == "old000000")
    assert address != "10.1.0.4"
    assert at(changing, address).run(["hostname"]).strip() == "old000000"


def test_a_managed_identity_logs_in_from_a_node(changing: t.Any) -> None:
    url = changing.environment["GPUFLEET_ARM_ENDPOINT"]
    token = changing.inside(sys.executable, "-c", MANAGED, url, network="new000000").stdout.strip()
    subscription = changing.environment["AZURE_SUBSCRIPTION_ID"]
    ask = ["curl", "-fsS", "--cacert", changing.environment["GPUFLEET_CA_FILE"], "-H", "@-"]
    answer = subprocess.run(
        [*ask, f"{url}/subscriptions/{subscription}?api-version=2022-12-01"],
        input=f"Authorization: Bearer {token}\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert subscription in answer.stdout


def test_an_approved_event_reboots_its_node(changing: t.Any, eventually: t.Any) -> None:
    node = at(changing, "10.1.0.8")
    boot = node.run(BOOT_ID)
    scheduled = changing.command("gpufleet", "lab", "event", "--prefix", changing.prefix, "new000000", "Reboot")
    assert scheduled.returncode == 0, scheduled.stderr
    url = "http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01"
    seen = node.run(["curl", "-fsS", "-H", "Metadata: true", url])
    identifier = seen.split('"EventId": "')[1].split('"')[0]
    node.run(["curl", "-fsS", "-H", "Metadata: true", "-d", '{"StartRequests": [{"EventId": "' + identifier + '"}]}', url])
    eventually(lambda: node.run(BOOT_ID) != boot)
