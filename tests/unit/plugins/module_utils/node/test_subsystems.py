# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each subsystem's own wishes and refusals."""

from __future__ import annotations

import typing as t

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.node import converge, document
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.cni.conflist import PATH as CONFLIST
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.facts import read
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.spec import NodeError
from node_fakes import TEXTS, FakeNode


def state(**variables: t.Any) -> document.Document:
    """The document of the one subsystem that these variables belong to."""
    (name,) = {
        next(name for name in ("node_program", "custom", "alias_network", "traffic_accounting") if key.startswith(name))
        for key in variables
    }
    return document.build([name], variables, lambda name, parameters: TEXTS.get(name, {}))


def changes(node: FakeNode, **variables: t.Any) -> list[str]:
    (section,) = converge.converge(state(**variables), node, check=True)["subsystems"].values()
    return list(section["changes"])


# custom


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"custom_files": [{"path": "etc/a"}]}, "'etc/a'; give an absolute path"),
        ({"custom_files": [{"path": "/etc/../a"}]}, "give an absolute path without dots"),
        ({"custom_files": [{"path": "/etc/gpufleet/state.d/x.json"}]}, "belongs to another subsystem"),
        ({"custom_files": [{"path": "/etc/gpufleet"}]}, "belongs to another subsystem"),
        ({"custom_files": [{"path": "/usr/local/lib/gpufleet/current"}]}, "belongs to another subsystem"),
        ({"custom_files": [{"path": CONFLIST}]}, "belongs to another subsystem"),
        ({"custom_files": [{"path": "/etc/systemd/system/gpufleet-accounting.service"}]}, "belongs to another subsystem"),
        ({"custom_files": [{"path": "/etc/a"}, {"path": "/etc/a"}]}, "custom_files names /etc/a twice"),
        ({"custom_files": [{"path": "/etc/a", "mode": 420}]}, "has mode '420'; write it in octal and quoted"),
        ({"custom_files": [{"path": "/etc/a", "mode": "rw"}]}, "has mode 'rw'"),
        ({"custom_files": [{"path": "/etc/a", "contnet": "x"}]}, "no variable contnet; did you mean content?"),
        ({"custom_sysctls": {"somaxconn": 1}}, "'somaxconn', which is no kernel parameter"),
        ({"custom_sysctls": {"net.//.//.x": 1}}, "which is no kernel parameter"),
        ({"custom_sysctls": {"net.core.somaxconn": True}}, "net.core.somaxconn is True; give a number"),
        ({"custom_sysctls": {"net.core.somaxconn": "1\nkernel.x = 2"}}, "give a number or one line"),
        ({"custom_sysctls": {"net.core.somaxconn": ""}}, "give a number or one line"),
        ({"custom_units": [{"name": "../x.service"}]}, "'../x.service'; give the whole name of a unit"),
        ({"custom_units": [{"name": "example"}]}, "give the whole name of a unit"),
        ({"custom_units": [{"name": "gpufleet-accounting.service"}]}, "belongs to another subsystem"),
        ({"custom_units": [{"name": "a.service"}, {"name": "a.service"}]}, "custom_units names a.service twice"),
        ({"custom_modprobe": {"a/b": []}}, "names a file 'a/b'"),
        ({"custom_modprobe": {"a": "options a b=1"}}, "a must be a list of lines"),
        ({"custom_modprobe": {"a": ["x\ny"]}}, "a must be a list of lines"),
    ],
)
def test_custom_refuses_what_cannot_be_meant(node: FakeNode, variables: dict[str, t.Any], said: str) -> None:
    with pytest.raises(NodeError) as error:
        converge.converge(state(**variables), node, check=False)
    assert said in str(error.value) and node.steps == []


@pytest.mark.parametrize(
    ("lines", "loaded", "reboot"),
    [
        (["options nvidia-drm modeset=1"], "nvidia_drm", True),
        (["options nvidia-drm modeset=1"], "nvidia", False),
        (["blacklist nvidia_drm", "# options nvidia_drm modeset=1"], "nvidia_drm", False),
    ],
)
def test_options_of_a_loaded_module_want_a_reboot(node: FakeNode, lines: list[str], loaded: str, reboot: bool) -> None:
    node.path(f"/sys/module/{loaded}").mkdir(parents=True)
    result = converge.converge(state(custom_modprobe={"gpu": lines}), node, check=False)
    assert bool(result["needs"]["reboot"]) is reboot
    assert node.path("/etc/modprobe.d/gpufleet-custom-gpu.conf").read_text() == "".join(f"{line}\n" for line in lines)


def test_what_was_custom_before_and_is_no_more_goes(node: FakeNode) -> None:
    node._place("/etc/modprobe.d/mine.conf", "")
    converge.converge(state(custom_modprobe={"a": ["blacklist a"], "b": []}, custom_sysctls={"net.core.somaxconn": 1}), node, check=False)
    assert changes(node, custom_modprobe={"b": []})[:2] == [
        "file /etc/modprobe.d/gpufleet-custom-a.conf: remove",
        "file /etc/sysctl.d/98-gpufleet-custom.conf: remove",
    ]


def test_a_kernel_wide_parameter_is_not_set_from_a_container(node: FakeNode) -> None:
    node._place("/run/systemd/container", "podman\n")
    result = converge.converge(state(custom_sysctls={"kernel.pid_max": 99999, "net.core.somaxconn": 7}), node, check=False)
    assert node.path("/proc/sys/kernel/pid_max").read_text() == "32768\n"
    assert node.path("/proc/sys/net/core/somaxconn").read_text() == "7"
    assert result["subsystems"]["custom"]["notes"] == ["sysctl kernel.pid_max is 32768 and not settable here; the drop-in holds 99999"]
    assert "kernel.pid_max = 99999\n" in node.path("/etc/sysctl.d/98-gpufleet-custom.conf").read_text()


# traffic_accounting


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"traffic_accounting_name": 'a" -j DROP'}, "use 1 to 32 letters"),
        ({"traffic_accounting_internal_ranges": []}, "name at least one network"),
        ({"traffic_accounting_internal_ranges": ["10.0.0.1/8"]}, "'10.0.0.1/8', which is no IPv4 network"),
        ({"traffic_accounting_internal_ranges": ["0.0.0.0/0"]}, "nothing would count as internet"),
        (
            {"traffic_accounting_internal_ranges": ["10.0.0.0/8", "172.16.0.0/12"], "traffic_accounting_strict_article": True},
            "takes one range",
        ),
    ],
)
def test_accounting_refuses_what_would_count_wrongly(node: FakeNode, variables: dict[str, t.Any], said: str) -> None:
    with pytest.raises(converge.Failed) as failed:
        converge.converge(state(**variables), node, check=False)
    assert said in str(failed.value) and node.steps == []


def test_an_address_counts_as_a_network_as_the_kernel_prints_it(node: FakeNode) -> None:
    converge.converge(state(traffic_accounting_internal_ranges=["192.0.2.7"]), node, check=False)
    assert "! -s 192.0.2.7/32 " in node.tables["mangle"].chains["GPUFLEET-ACCT-INPUT-IN"][0]


def test_a_distribution_that_nobody_has_described_is_refused(node: FakeNode) -> None:
    node._place("/etc/os-release", 'ID="rhel"\nVERSION_ID="9.4"\n')
    with pytest.raises(converge.Failed, match="distribution rhel is not supported; supported: debian, ubuntu"):
        converge.converge(state(traffic_accounting_state="present"), node, check=False)


# node_program


def test_the_build_before_stays_and_older_ones_go(node: FakeNode) -> None:
    for name in ("node-aaa.pyz", "node-bbb.pyz", "mine.txt"):
        node._place(f"/usr/local/lib/gpufleet/{name}", name)
    node.path("/usr/local/lib/gpufleet/current").symlink_to("node-bbb.pyz")
    converge.converge(state(node_program_reboot="never"), node, check=False)
    left = sorted(place.name for place in node.path("/usr/local/lib/gpufleet").iterdir())
    new = node.path("/usr/local/lib/gpufleet/current").readlink().name
    assert left == sorted(["current", "mine.txt", "node-bbb.pyz", new, "previous"]) and new not in ("node-aaa.pyz", "node-bbb.pyz")
    assert not converge.converge(state(node_program_reboot="never"), node, check=True)["changed"], "a second run leaves the way back alone"


def test_facts_name_what_was_asked_for_and_absent(node: FakeNode) -> None:
    facts = read.read(node, converge.reads(state(custom_files=[{"path": "/etc/none"}])))
    assert facts.files["/etc/none"] is None and facts.distribution == "debian" and facts.boot_id == "0b1c"
