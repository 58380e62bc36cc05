# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labs that come, go, are killed, and leave the machine as it was."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time
import typing as t

import pytest

from lab import lifecycle, namespace
from lab.paths import ROOT, LabError, Paths

ONE_NODE = pathlib.Path(__file__).resolve().parents[1] / "fleets" / "one_node.yml"
KILLS = int(os.environ.get("GPUFLEET_TEST_KILLS", "4"))
LIMIT_SECONDS = 120
# A client that keeps the lab's Azure busy until it is killed.
OPERATIONS = """
import sys
from azure.identity import ClientSecretCredential
from azure.mgmt.compute import ComputeManagementClient
given = dict(line.split("=", 1) for line in open(sys.argv[1]).read().splitlines())
url, authority = given["GPUFLEET_ARM_ENDPOINT"], given["GPUFLEET_CA_FILE"]
credential = ClientSecretCredential(
    given["AZURE_TENANT_ID"], given["AZURE_CLIENT_ID"], given["AZURE_CLIENT_SECRET"],
    authority=url, disable_instance_discovery=True, connection_verify=authority,
)
compute = ComputeManagementClient(
    credential, given["AZURE_SUBSCRIPTION_ID"], base_url=url, credential_scopes=[url + "/.default"], connection_verify=authority
)
sets = compute.virtual_machine_scale_sets
while True:
    sets.begin_update("gpufleet-lab", "only", {"sku": {"capacity": 3}}).result()
    sets.begin_reimage("gpufleet-lab", "only").result()
    sets.begin_update("gpufleet-lab", "only", {"sku": {"capacity": 1}}).result()
"""
# Counters of the machine that move by themselves.
VOLATILE = re.compile(
    r"^(fs\.(dentry|inode|file-nr|aio-nr|quota|epoll)|kernel\.(random|ns_last_pid|pty\.nr|sched|perf_event_max)|net\.netfilter\.nf_conntrack_count)"
)


def gpufleet(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "gpufleet", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )


def output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout


def machine() -> dict[str, t.Any]:
    """What a lab must not touch. A firewall that was never used has no tables, an empty one neither."""
    return {
        "sysctl": [line for line in output("sysctl", "-a").splitlines() if not VOLATILE.match(line)],
        "routes": output("ip", "route", "show", "table", "all"),
        "rules": output("ip", "rule"),
        "links": output("ip", "-o", "link"),
        "addresses": re.sub(r"valid_lft \S+ preferred_lft \S+", "", output("ip", "-o", "address")),
        "firewall": output("nft", "list", "ruleset"),
        "namespaces": output("ip", "netns", "list"),
    }


def mounts() -> list[str]:
    return pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()


def nothing_left(prefix: str) -> None:
    paths = Paths(prefix)
    assert not [path for path in (paths.run, paths.state, paths.access) if path.exists()]
    assert not [line for line in mounts() if f"gpufleet-lab/{prefix}" in line or f"labs/{prefix}/" in line]
    assert not [
        line for line in output("ps", "-eo", "args").splitlines() if f"--prefix {prefix} " in f"{line} " or f"labs/{prefix}/" in line
    ]


def test_the_machine_stays_as_it_was_while_a_lab_is_up_and_after(start_lab: t.Callable[..., t.Any]) -> None:
    before, mounted = machine(), mounts()
    start_lab("tlife", "one_node")
    during = machine()
    added = [line for line in mounts() if line not in mounted]
    lifecycle.down("tlife")
    assert during == before
    assert all("/run/gpufleet-lab/tlife/" in line for line in added), added
    assert machine() == before
    assert mounts() == mounted
    nothing_left("tlife")


def test_two_labs_of_the_same_addresses_run_side_by_side(start_lab: t.Callable[..., t.Any]) -> None:
    one, two = start_lab("tone", "one_node"), start_lab("ttwo", "one_node")
    boots = {item.prefix: item.node("only000000").run(["cat", "/proc/sys/kernel/random/boot_id"]) for item in (one, two)}
    assert boots["tone"] != boots["ttwo"]
    lifecycle.down("tone")
    assert two.node("only000000").run(["hostname"]).strip() == "only000000"
    again = gpufleet("lab", "up", "--prefix", "ttwo", "-f", str(ONE_NODE))
    assert again.returncode == 1
    assert "lab ttwo is already up" in again.stderr and "gpufleet lab down --prefix ttwo" in again.stderr
    assert two.node("only000000").run(["cat", "/proc/sys/kernel/random/boot_id"]) == boots["ttwo"], "the first one is left alone"
    assert lifecycle.down("ttwo") is True
    assert lifecycle.down("ttwo") is False


def test_a_lab_whose_azure_was_killed_says_so_and_can_be_replaced(start_lab: t.Callable[..., t.Any]) -> None:
    killed = start_lab("tkill", "one_node")
    pid = json.loads((killed.paths.run / "daemon.json").read_text(encoding="utf-8"))["pid"]
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + LIMIT_SECONDS
    while lifecycle.status("tkill").up and time.monotonic() < deadline:
        time.sleep(0.05)
    found = lifecycle.status("tkill")
    assert (found.up, found.arm, found.nodes) == (False, "not running", {"only000000": "running"})
    lifecycle.up("tkill", ONE_NODE, lambda _line: None)
    assert lifecycle.status("tkill").up
    lifecycle.down("tkill")
    nothing_left("tkill")


@pytest.mark.parametrize("number", range(KILLS))
@pytest.mark.parametrize("command", ["up", "down"])
def test_after_a_kill_at_any_moment_the_next_command_goes_on(command: str, number: int) -> None:
    """Every process of the command dies at once, as when the machine's user loses patience."""
    chance = random.Random(f"{command}-{number}")
    delay = chance.uniform(0.1, 2.5 if command == "up" else 0.8)
    if command == "down":
        lifecycle.up("tcut", ONE_NODE, lambda _line: None)
    arguments = ["up", "--prefix", "tcut", "-f", str(ONE_NODE)] if command == "up" else ["down", "--prefix", "tcut"]
    process = subprocess.Popen(
        [sys.executable, "-m", "gpufleet", "lab", *arguments],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        process.wait(timeout=delay)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=LIMIT_SECONDS)
    try:
        if Paths("tcut").ready.exists() and namespace.exists(Paths("tcut")):
            # Killed after the last step of up, or before the first of down.
            assert lifecycle.status("tcut").nodes == {"only000000": "running"}
        elif number % 2:
            lifecycle.up("tcut", ONE_NODE, lambda _line: None)
            assert lifecycle.status("tcut").nodes == {"only000000": "running"}
    finally:
        lifecycle.down("tcut")
    nothing_left("tcut")


@pytest.mark.parametrize("number", range(KILLS))
def test_after_a_kill_during_an_operation_the_next_command_goes_on(number: int) -> None:
    """The lab's Azure dies while it scales out, reimages and deletes; whatever it has left, a lab comes up again."""
    chance = random.Random(f"operation-{number}")
    lifecycle.up("tcut", ONE_NODE, lambda _line: None)
    try:
        operation = subprocess.Popen(
            [sys.executable, "-c", OPERATIONS, str(Paths("tcut").access / "azure.env")], cwd=ROOT, stderr=subprocess.PIPE
        )
        with contextlib.suppress(subprocess.TimeoutExpired):
            operation.wait(timeout=chance.uniform(0.7, 4.0))
        os.kill(json.loads((Paths("tcut").run / "daemon.json").read_text(encoding="utf-8"))["pid"], signal.SIGKILL)
        operation.kill()
        operation.wait(timeout=LIMIT_SECONDS)
        if number % 2:
            lifecycle.up("tcut", ONE_NODE, lambda _line: None)
            assert lifecycle.status("tcut").nodes == {"only000000": "running"}
    finally:
        lifecycle.down("tcut")
    nothing_left("tcut")


def test_status_shows_the_nodes_for_people_and_for_programs(lab: t.Any) -> None:
    table = gpufleet("lab", "status", "--prefix", lab.prefix)
    assert table.returncode == 0 and "gpua000000" in table.stdout and "running" in table.stdout
    document = json.loads(gpufleet("lab", "status", "--prefix", lab.prefix, "--json").stdout)
    assert document["up"] and document["nodes"]["cpub000000"] == "running"


def test_what_is_not_there_is_said_with_what_to_do() -> None:
    for arguments in (("status",), ("ssh", "node"), ("fault",)):
        answer = gpufleet("lab", arguments[0], "--prefix", "tnone", *arguments[1:])
        assert answer.returncode == 1
        assert "there is no" in answer.stderr and "gpufleet lab up --prefix tnone" in answer.stderr


def test_a_description_that_cannot_be_built_makes_nothing(tmp_path: pathlib.Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(
        ONE_NODE.read_text(encoding="utf-8").replace("image", "imgae").replace("instances: 1", "instances: 999"), encoding="utf-8"
    )
    answer = gpufleet("lab", "up", "--prefix", "tnone", "-f", str(wrong))
    assert answer.returncode == 1
    assert "251 usable addresses, 1998 are asked for; widen it" in answer.stderr
    nothing_left("tnone")


def test_a_machine_that_is_too_small_is_told_before_anything_is_made(tmp_path: pathlib.Path) -> None:
    large = tmp_path / "large.yml"
    large.write_text(ONE_NODE.read_text(encoding="utf-8").replace("instances: 1", "instances: 120"), encoding="utf-8")
    with pytest.raises(LabError, match="describe fewer instances"):
        lifecycle.up("tnone", large, lambda _line: None)
    nothing_left("tnone")
