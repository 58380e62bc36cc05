# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The road from fresh nodes to converged ones, in the order in which a user walks it: each test starts where the last one ended."""

from __future__ import annotations

import json
import pathlib
import re
import typing as t

import pytest

from gpufleet import traffic_proof

NODES = ("old000000", "new000000")
# What is there of a node that a converge could touch, as one listing.
LISTING = """
import hashlib, os, subprocess
for top in ("/etc", "/usr/local"):
    for folder, _names, files in sorted(os.walk(top)):
        for name in sorted(files):
            path = os.path.join(folder, name)
            if os.path.islink(path):
                print(path, os.readlink(path))
            elif os.path.isfile(path):
                print(path, oct(os.stat(path).st_mode), hashlib.sha256(open(path, "rb").read()).hexdigest())
for command in (["dpkg-query", "-W"], ["iptables-save"], ["systemctl", "list-unit-files", "--no-legend", "--plain"], ["sysctl", "-a"]):
    print(subprocess.run(command, capture_output=True, text=True).stdout if os.path.exists("/usr/sbin/" + command[0]) or os.path.exists("/usr/bin/" + command[0]) else "")
"""
VOLATILE = re.compile(
    r"^(#|:|fs\.|kernel\.(random|ns_last_pid|pty|sched)|net\.netfilter\.nf_conntrack_count|.*\.(neigh|conf)\.).*$", re.MULTILINE
)


def listing(lab: t.Any, name: str) -> str:
    return VOLATILE.sub("", lab.node(name).run(["python3", "-"], stdin=LISTING))


def mangle(lab: t.Any, name: str) -> list[str]:
    """The table with its counters, without the lines that carry the time."""
    return [line for line in lab.node(name).run(["iptables-save", "-c", "-t", "mangle"]).splitlines() if line.startswith("[")]


def starts(lab: t.Any, name: str) -> dict[str, str]:
    """When each service last started; those of sessions come and go with every login."""
    text = lab.node(name).run(["systemctl", "show", "--property=Id,ActiveEnterTimestampMonotonic", "--type=service", "*"])
    found = dict(re.findall(r"Id=(\S+)\nActiveEnterTimestampMonotonic=(\d+)", text))
    return {unit: when for unit, when in found.items() if not unit.startswith(("user", "session"))}


def changes(run: t.Any) -> dict[str, dict[str, list[str]]]:
    return {host: {name: part["changes"] for name, part in parts.items()} for host, parts in run.results.items()}


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("runner")


def test_check_changes_nothing_and_predicts_what_converge_does(lab: t.Any, artifacts: pathlib.Path) -> None:
    before = {name: listing(lab, name) for name in NODES}
    predicted = lab.play("site.yml", artifacts, "--check --diff")
    assert predicted.status == 0
    assert {name: listing(lab, name) for name in NODES} == before
    done = lab.play("site.yml", artifacts)
    assert done.status == 0
    assert changes(done) == changes(predicted)
    assert set(changes(done)) == set(NODES)
    for parts in changes(done).values():
        assert parts["node_program"] and parts["alias_network"] and parts["traffic_accounting"]


def test_both_playbooks_find_nothing_to_do_afterwards_and_reset_no_counter(lab: t.Any, artifacts: pathlib.Path) -> None:
    node = lab.node("old000000")
    node.run(["curl", "-fsS", "-o", "/dev/null", "http://203.0.113.10/bytes/100000"])
    before, started = node.counters(), {name: starts(lab, name) for name in NODES}
    assert max(before.values()) >= 100000 and "ssh.service" in started["old000000"]
    for playbook in ("site.yml", "fleet.yml"):
        run = lab.play(playbook, artifacts)
        assert run.status == 0
        assert run.total_changed == 0, changes(run)
        assert set(run.changed) == {"localhost", *NODES} == {"localhost", *run.results}
    after = node.counters()
    assert set(after) == set(before)
    assert all(after[rule] >= count for rule, count in before.items())
    assert {name: starts(lab, name) for name in NODES} == started


def test_what_one_playbook_set_is_right_for_the_other(lab: t.Any, artifacts: pathlib.Path) -> None:
    given = "-e traffic_accounting_name=research -e alias_network_name=pods --limit localhost,new000000"
    for first, second, arguments in (("fleet.yml", "site.yml", given), ("site.yml", "fleet.yml", "--limit localhost,new000000")):
        assert lab.play(first, artifacts, arguments).total_changed
        assert lab.play(second, artifacts, arguments).total_changed == 0


def test_verification_passes_and_finds_a_rule_that_was_removed(lab: t.Any) -> None:
    good = lab.command("ansible-playbook", "playbooks/verify.yml")
    assert good.returncode == 0, good.stdout
    rule = next(line for line in mangle(lab, "new000000") if "traffic=internet-in" in line and "INPUT" in line)
    _counter, _append, chain, rest = rule.split(" ", 3)
    lab.node("new000000").run(["sh", "-c", f"iptables -t mangle -D {chain} {rest}"])
    bad = lab.command("ansible-playbook", "playbooks/verify.yml")
    assert bad.returncode != 0
    assert "new000000" in bad.stdout and "four_rules" in bad.stdout


def test_a_tag_narrows_both_playbooks_to_its_subsystem(lab: t.Any, artifacts: pathlib.Path) -> None:
    seen = lab.play("site.yml", artifacts, "--check --tags traffic_accounting")
    assert {host: set(parts) for host, parts in seen.results.items()} == {name: {"node_program", "traffic_accounting"} for name in NODES}
    assert seen.total_changed == 1, "the rule that is missing on new000000 is predicted"
    fused = lab.play("fleet.yml", artifacts, "--check --skip-tags traffic_accounting")
    assert all("traffic_accounting" not in parts for parts in fused.results.values())
    assert fused.total_changed == 0
    mended = lab.play("fleet.yml", artifacts, "--tags traffic_accounting")
    assert mended.changed == {"localhost": 0, "old000000": 0, "new000000": 1}


def test_a_tag_that_names_nothing_is_an_error_in_the_fused_form(lab: t.Any) -> None:
    run = lab.command("ansible-playbook", "playbooks/fleet.yml", "--tags", "trafic_accounting")
    assert run.returncode != 0
    assert "tag trafic_accounting names no subsystem; did you mean traffic_accounting?" in run.stdout


@pytest.mark.parametrize("playbook", ["site.yml", "fleet.yml"])
def test_a_misspelt_variable_stops_the_run_before_anything_is_changed(lab: t.Any, playbook: str) -> None:
    before = listing(lab, "old000000")
    run = lab.command("ansible-playbook", f"playbooks/{playbook}", "-e", "traffic_accounting_nmae=x")
    assert run.returncode != 0
    assert "there is no variable traffic_accounting_nmae; did you mean traffic_accounting_name?" in run.stdout
    assert listing(lab, "old000000") == before


def test_what_others_put_beside_our_rules_stays_byte_for_byte(lab: t.Any, artifacts: pathlib.Path) -> None:
    node = lab.node("old000000")
    foreign = (
        '*mangle\n:FOREIGN - [0:0]\n-I FORWARD 1 -m comment --comment "not ours \\"quoted\\"" -j FOREIGN\n'
        "-A FOREIGN -p tcp -m tcp --dport 8 -j MARK --set-xmark 0x1/0xffffffff\n[7:777] -A INPUT -s 192.0.2.7/32 -j ACCEPT\nCOMMIT\n"
    )
    node.run(["iptables-restore", "--noflush", "--counters"], stdin=foreign)
    others = [line for line in mangle(lab, "old000000") if "GPUFLEET" not in line and "iptables-exporter" not in line]
    assert len(others) == 3
    strict = "-e traffic_accounting_strict_article=true --limit localhost,old000000"
    assert lab.play("fleet.yml", artifacts, strict).status == 0
    now = mangle(lab, "old000000")
    assert [line for line in now if "iptables-exporter" not in line] == others
    ours = [re.sub(r"^\[\d+:\d+\] ", "", line) for line in now if "iptables-exporter" in line]
    assert sorted(ours) == [
        '-A FORWARD ! -d 10.0.0.0/8 -m comment --comment "iptables-exporter openai traffic=internet-out"',
        '-A FORWARD ! -s 10.0.0.0/8 -m comment --comment "iptables-exporter openai traffic=internet-in"',
        '-A INPUT ! -s 10.0.0.0/8 -m comment --comment "iptables-exporter openai traffic=internet-in"',
        '-A OUTPUT ! -d 10.0.0.0/8 -m comment --comment "iptables-exporter openai traffic=internet-out"',
    ]
    assert lab.play("fleet.yml", artifacts, strict).total_changed == 0
    assert lab.play("fleet.yml", artifacts, "-e traffic_accounting_state=absent --limit localhost,old000000").status == 0
    assert mangle(lab, "old000000") == others
    assert lab.play("fleet.yml", artifacts).changed["old000000"] == 1
    assert [line for line in mangle(lab, "old000000") if "GPUFLEET" not in line] == others


def test_pods_reach_each_other_by_their_own_addresses(lab: t.Any) -> None:
    pods = traffic_proof.pod_to_pod(lab.node("old000000"), lab.node("new000000"))
    assert pods.proven, pods


def test_a_node_that_fails_leaves_the_others_alone_and_its_plan_can_be_replayed(lab: t.Any, home: pathlib.Path) -> None:
    blocked = ["OUTPUT", "-d", "169.254.169.254/32", "-j", "DROP"]
    lab.node("old000000").run(["iptables", "-A", *blocked])
    try:
        run = lab.command("ansible-playbook", "playbooks/fleet.yml", HOME=str(home))
    finally:
        lab.node("old000000").run(["iptables", "-D", *blocked])
    assert run.returncode == 2
    assert "the node's addresses are not known" in run.stdout and "IMDS" in run.stdout
    assert re.search(r"new000000\s+: ok=1\s+changed=0\s+unreachable=0\s+failed=0", run.stdout), run.stdout
    command = re.search(r"gpufleet node plan --facts (\S+) --state (\S+)", run.stdout)
    assert command, run.stdout
    saved = [pathlib.Path(path) for path in command.groups()]
    assert {path.stat().st_mode & 0o777 for path in saved} == {0o600}
    replayed = lab.command("gpufleet", "node", "plan", "--facts", command[1], "--state", command[2])
    assert replayed.returncode != 0
    assert "the node's addresses are not known" in replayed.stdout + replayed.stderr


def test_a_limit_that_matches_no_host_is_an_error(lab: t.Any) -> None:
    run = lab.command("ansible-playbook", "playbooks/site.yml", "--limit", "localhost,nowhere")
    assert run.returncode != 0
    assert "leaves us with no hosts to target" in run.stderr
    nobody = lab.command("ansible-playbook", "playbooks/site.yml", "-e", "target=nowhere")
    assert nobody.returncode != 0
    assert "has no host that matches" in nobody.stdout and "Nothing was changed" in nobody.stdout


def test_the_collection_answers_by_name_in_a_plain_clone(lab: t.Any) -> None:
    run = lab.command("ansible-playbook", "gpufleet.vmss.site", "--check")
    assert run.returncode == 0, run.stdout
    for name in ("fleet", "verify"):
        listed = lab.command("ansible-playbook", f"gpufleet.vmss.{name}", "--list-tasks")
        assert listed.returncode == 0 and "TAGS" in listed.stdout, listed.stdout
    document = lab.command("ansible-doc", "-t", "inventory", "-j", "gpufleet.vmss.azure_vmss")
    assert json.loads(document.stdout)["gpufleet.vmss.azure_vmss"]["doc"]["options"]["scale_sets"]
