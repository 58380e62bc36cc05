# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-inventory against ARM: hosts, variables, groups, and the options that choose and name them."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import typing as t

ROOT = pathlib.Path(__file__).parents[4]
NODES = {"gpua000000", "gpua000001", "cpub000000"}


def test_every_instance_over_all_pages_is_a_host(inventory: t.Any) -> None:
    answer = inventory()
    assert len(answer.hosts) == 463 and set(answer.hosts) > NODES
    assert len(answer.document["scale_set_many"]["hosts"]) == len(answer.document["scale_set_flex"]["hosts"]) == 230
    assert answer.stderr == ""


def test_the_variables_of_a_host_are_few_and_flat(inventory: t.Any) -> None:
    hosts = inventory(scale_sets=["gpua", "cpub"]).hosts
    assert set(hosts) == NODES
    first = hosts["gpua000000"]
    assert all(not isinstance(value, (dict, list)) for value in first.values())
    assert {key: first[key] for key in ("ansible_host", "primary_address", "alias_addresses", "scale_set", "instance_id", "zone")} == {
        "ansible_host": "10.1.0.4",
        "primary_address": "10.1.0.4",
        "alias_addresses": "10.1.0.5-10.1.0.6",
        "scale_set": "gpua",
        "instance_id": "0",
        "zone": "1",
    }
    assert (first["orchestration"], first["vm_size"], first["power_state"]) == ("uniform", "Standard_ND96isr_H100_v5", "running")
    assert hosts["cpub000000"]["orchestration"] == "flexible" and "zone" not in hosts["cpub000000"]


def test_groups_follow_from_where_and_what_an_instance_is(inventory: t.Any) -> None:
    document = inventory(scale_sets=["gpua", "cpub"]).document
    assert set(document["gpu_h100"]["hosts"]) == {"gpua000000", "gpua000001"}
    assert document["cpu"]["hosts"] == document["orchestration_flexible"]["hosts"] == ["cpub000000"]
    assert set(document["zone_westeurope_1"]["hosts"]) == {"gpua000000", "gpua000001"}
    assert set(document["power_running"]["hosts"]) == set(document["resource_group_gpufleet_lab"]["hosts"]) == NODES


def test_a_play_is_limited_by_each_group(inventory: t.Any) -> None:
    document = inventory(scale_sets=["gpua", "cpub"]).document
    groups = {name: group["hosts"] for name, group in document.items() if "hosts" in group}
    assert len(groups) > 15
    assert {name: sorted(inventory.hosts_of_play(name)) for name in groups} == groups


def test_globs_choose_scale_sets(inventory: t.Any) -> None:
    assert set(inventory(scale_sets=["GPU*", "?pub"]).hosts) == NODES


def test_expressions_name_group_and_extend_hosts(inventory: t.Any) -> None:
    answer = inventory(
        scale_sets=["gpua", "cpub"],
        hostname="scale_set ~ '-' ~ instance_name",
        compose={"pods": "alias_addresses | gpufleet.vmss.expand_addresses | length"},
        groups={"large": "'ND96' in vm_size"},
        keyed_groups=[{"key": "vmss_tags.cluster", "prefix": "cluster"}],
    )
    assert set(answer.hosts) >= {"gpua-gpua_0", "gpua-gpua_1"}
    assert {host["pods"] for host in answer.hosts.values()} == {2}
    assert set(answer.document["cluster_a"]["hosts"]) == set(answer.document["large"]["hosts"]) == {"gpua-gpua_0", "gpua-gpua_1"}
    assert len(answer.document["cluster_b"]["hosts"]) == 1


def test_an_option_may_be_a_template(inventory: t.Any) -> None:
    assert set(inventory(scale_sets=["{{ 'cp' ~ 'ub' }}"]).hosts) == {"cpub000000"}


def test_an_empty_fleet_is_an_answer_where_it_is_meant(inventory: t.Any) -> None:
    answer = inventory(scale_sets=["gpua"], states=["deallocated"], allow_empty=True)
    assert answer.hosts == {} and "2 of 2 instances left out: 2 running (gpua_0, gpua_1)" in answer.stderr


def test_the_raw_documents_are_kept_on_demand(inventory: t.Any) -> None:
    (host,) = inventory(scale_sets=["cpub"], full_document=True).hosts.values()
    assert host["vmss_document"]


def test_an_ssh_config_holds_for_all_hosts(inventory: t.Any) -> None:
    (inventory.folder / "ssh config").touch()
    (host,) = inventory(scale_sets=["cpub"], ssh_config="ssh config").hosts.values()
    assert host["ansible_ssh_common_args"] == f"-F '{inventory.folder}/ssh config'"


def test_fleets_behind_two_bastions_share_no_open_connection(inventory: t.Any) -> None:
    """Their hosts may have the same addresses, by which alone Ansible finds a connection that ssh keeps open."""
    kept = set()
    for name in ("east", "west"):
        (inventory.folder / name).touch()
        (host,) = inventory(scale_sets=["cpub"], ssh_config=name).hosts.values()
        kept.add(host["ansible_control_path_dir"])
    assert len(kept) == 2 and all(path.startswith("~/.ansible/cp/") for path in kept)


def test_sets_are_chosen_by_tag_and_left_out_by_name(inventory: t.Any, fault: t.Any) -> None:
    met = fault(path="/virtualMachineScaleSets/gpua/", latency=0.001, times=10**6)
    assert set(inventory(scale_set_tags={"cluster": "[bc]"}).hosts) == {"cpub000000"}
    assert set(inventory(scale_set_tags={"cluster": "*"}, exclude_scale_sets=["GPU*"]).hosts) == {"cpub000000"}
    # What is left out costs nothing.
    assert met.seen == 0
    assert "correct resource_groups, scale_sets and scale_set_tags" in inventory(exclude_resource_groups=["gpufleet-*"]).stderr


def test_hosts_are_chosen_by_expressions(inventory: t.Any) -> None:
    chosen = inventory(scale_sets=["gpua", "cpub"], include=["vmss_tags.cluster == 'b'", "instance_id == '0'"])
    assert set(chosen.hosts) == {"gpua000000", "cpub000000"}
    left = inventory(scale_sets=["gpua", "cpub"], include=["true"], exclude=["gpu_family != 'cpu'"])
    assert set(left.hosts) == {"cpub000000"}
    assert "correct include and exclude" in inventory(scale_sets=["cpub"], exclude=["true"]).stderr


def test_the_same_fleet_is_the_same_text(inventory: t.Any) -> None:
    """However its pages come: with one call at a time, and with many."""
    expected = inventory(parallel=1).stdout
    assert all(inventory(parallel=16).stdout == expected for _time in range(2))


def test_the_real_command_draws_the_same_graph(inventory: t.Any) -> None:
    drawn = inventory("--graph", "gpu_h100", scale_sets=["gpua"])
    assert drawn.stdout.split() == ["@gpu_h100:", "|--gpua000000", "|--gpua000001"]
    program = pathlib.Path(sys.executable).parent / "ansible-inventory"
    done = subprocess.run(
        [str(program), "-i", str(inventory.folder / "azure_vmss.yml"), "--graph", "gpu_h100"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(inventory.folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, drawn.stdout)
