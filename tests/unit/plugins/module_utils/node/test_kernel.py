# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The planned lines against a real kernel, in a network namespace of the test's own."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import time
import typing as t

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.facts import iptables_save
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.plan import rules_after
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.rules import DesiredRules, plan_lines, restore_input
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.subsystems.traffic_accounting import CHAIN_PREFIX, _is_ours, desired_rules

LIMIT_SECONDS = 20.0
COUNTER = '! -s 10.0.0.0/8 -m comment --comment "iptables-exporter openai traffic=internet-in"'
# What an image, kube-proxy and an older form of ours could have left, each rule with a counter of its own.
START = f"""*mangle
:PREROUTING ACCEPT [0:0]
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:POSTROUTING ACCEPT [0:0]
:KUBE-FORWARD - [0:0]
:GPUFLEET-ACCT-STALE - [0:0]
[1:100] -A INPUT -p tcp -m tcp --dport 22 -m comment --comment "don't touch" -j ACCEPT
[2:200] -A INPUT {COUNTER}
[3:300] -A INPUT -j GPUFLEET-ACCT-STALE
[4:400] -A INPUT {COUNTER.replace("openai", "old")}
[5:500] -A INPUT -s 192.0.2.0/24 -j KUBE-FORWARD
[6:600] -A KUBE-FORWARD -m comment --comment "say \\"no\\"" -j RETURN
[7:700] -A GPUFLEET-ACCT-STALE -s 10.0.0.0/8 -j RETURN
[8:800] -A FORWARD {COUNTER}
[9:900] -A FORWARD {COUNTER}
COMMIT
"""
WISHES = {
    "strict": desired_rules("openai", ("10.0.0.0/8",), strict=True),
    "own": desired_rules("openai", ("10.0.0.0/8",), strict=False),
    "several": desired_rules("openai", ("10.0.0.0/8", "172.16.0.0/12", "192.0.2.7/32"), strict=False),
    "others": desired_rules("a.b-c_d", ("172.16.0.0/12", "10.0.0.0/8"), strict=False),
    "absent": DesiredRules(chain_prefix=CHAIN_PREFIX, is_ours=_is_ours),
}


class Namespace:
    """A network namespace that lives as long as the process that holds it."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.holder = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)
        self.path = f"/proc/{self.holder.pid}/ns/net"
        limit = time.monotonic() + LIMIT_SECONDS
        while self.holder.poll() is None and pathlib.Path(self.path).readlink() == pathlib.Path("/proc/self/ns/net").readlink():
            assert time.monotonic() < limit, "unshare gave no namespace"
            time.sleep(0.01)

    def run(self, *argv: str, stdin: str = "") -> str:
        command = ["nsenter", f"--net={self.path}", *argv]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
        if done.returncode:
            raise RuntimeError(f"{argv}: {done.stderr}")
        return done.stdout

    def save(self, *options: str) -> str:
        return self.run(f"{self.tool}-save", "-t", "mangle", *options)

    def restore(self, text: str, *options: str) -> None:
        self.run(f"{self.tool}-restore", *options, "-w", "60", stdin=text)

    def counters(self) -> dict[tuple[str, str], list[str]]:
        """Rule to its counters, in order; the same rule may be there more than once."""
        found: dict[tuple[str, str], list[str]] = {}
        for line in self.save("-c").splitlines():
            if line.startswith("["):
                counter, _, chain, *rule = line.split(" ", 3)
                found.setdefault((chain, "".join(rule)), []).append(counter)
        return found

    def close(self) -> None:
        self.holder.communicate(timeout=LIMIT_SECONDS)


@pytest.fixture(params=["iptables", "iptables-legacy"])
def namespace(request: pytest.FixtureRequest) -> t.Iterator[Namespace]:
    if os.geteuid() != 0:
        pytest.skip("a network namespace needs root")
    for tool in ("unshare", "nsenter", f"{request.param}-save"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    space = Namespace(request.param)
    try:
        try:
            space.restore(START, "--noflush", "-c")
        except RuntimeError as error:
            pytest.skip(f"this kernel does not take the rules by {request.param}: {error}")
        yield space
    finally:
        space.close()


@pytest.mark.parametrize("path", [("strict",), ("own", "several", "others", "strict", "own", "absent"), ("absent",)])
def test_the_kernel_does_what_the_plan_says_and_untouched_rules_keep_counters(namespace: Namespace, path: tuple[str, ...]) -> None:
    for name in path:
        found, counters = iptables_save.parse(namespace.save())["mangle"], namespace.counters()
        lines = plan_lines(found, WISHES[name])
        assert lines, f"{name} is already there"
        namespace.restore(restore_input("mangle", lines), "--noflush")
        real = iptables_save.parse(namespace.save())["mangle"]
        assert {key: value for key, value in real.chains.items() if value} == {
            key: value for key, value in rules_after(found, lines).chains.items() if value
        }
        assert not [chain for chain in real.chains if chain.startswith(CHAIN_PREFIX) and chain not in WISHES[name].chains]
        assert plan_lines(real, WISHES[name]) == ()
        for rule, before in counters.items():
            touched = [line for line in lines if line.startswith(f"-D {rule[0]} ")]
            if rule[0].startswith(CHAIN_PREFIX) and (touched or rule[0] not in real.chains):
                continue
            if f"-D {rule[0]} {rule[1]}" not in lines:
                assert namespace.counters()[rule] == before, f"{rule} lost its counters on the way to {name}"


def test_a_line_that_fails_leaves_the_table_as_it_was(namespace: Namespace) -> None:
    before = namespace.counters()
    with pytest.raises(RuntimeError):
        namespace.restore(restore_input("mangle", ["-A INPUT -p udp", "-A INPUT -j NO-SUCH-CHAIN"]), "--noflush")
    assert namespace.counters() == before
