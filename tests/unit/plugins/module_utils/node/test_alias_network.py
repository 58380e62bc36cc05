# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What alias_network wants of a node, and what it refuses."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.node import converge, document, networkd, sysctl_files
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.cni import conflist as conflists
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.cni import installed_file
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.facts.model import Facts, File, Rules
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.subsystems import alias_network
from node_fakes import MAC, TEXTS, FakeNode, FakeUnit, instance

CONFLIST = conflists.PATH
PLUGIN = "/usr/lib/cni/gpufleet-alias"
WIRESERVER = f"""<Interfaces><Interface MacAddress="{MAC.replace(":", "").upper()}" IsPrimary="true"><IPSubnet Prefix="10.1.0.0/16">
<IPAddress Address="10.1.0.4" IsPrimary="true"/><IPAddress Address="10.1.0.7" IsPrimary="false"/></IPSubnet></Interface></Interfaces>"""


def state(**variables: t.Any) -> document.Document:
    given = {f"alias_network_{key}": value for key, value in variables.items()}
    return document.build(["alias_network"], given, lambda name, parameters: TEXTS.get(name, {}))


def run(node: FakeNode, *, check: bool = False, **variables: t.Any) -> dict[str, t.Any]:
    """The result of one converge; a real one is followed by a second that must find nothing to do."""
    result = converge.converge(state(**variables), node, check=check)
    if not check:
        again = converge.converge(state(**variables), node, check=True)
        assert not again["changed"], again
    section: dict[str, t.Any] = result["subsystems"]["alias_network"]
    return section


def refused(node: FakeNode, **variables: t.Any) -> str:
    with pytest.raises(converge.Failed) as failed:
        converge.converge(state(**variables), node, check=False)
    assert str(failed.value).startswith("alias_network: ") and node.steps == []
    return str(failed.value)


def written(node: FakeNode) -> t.Any:
    return json.loads(node.path(CONFLIST).read_text())


def pool(node: FakeNode) -> list[str]:
    (only,) = written(node)["plugins"][0]["ipam"]["ranges"]
    return [item["rangeStart"] if item["rangeStart"] == item["rangeEnd"] else f"{item['rangeStart']}-{item['rangeEnd']}" for item in only]


def record(node: FakeNode, address: str, pod: str = "train-0", network: str = "alias") -> None:
    item = {"address": address, "network": network, "namespace": "research", "pod": pod, "container_id": "0123456789abcdef"}
    node._place(f"/run/gpufleet/pods/{pod}-eth0.json", json.dumps(item))


# The CNI configuration


def test_pods_get_one_set_of_one_address_ranges(node: FakeNode) -> None:
    run(node, pod_sysctls={"net.core.somaxconn": 4096})
    alias, portmap, tuning = written(node)["plugins"]
    assert (written(node)["cniVersion"], written(node)["name"]) == ("1.0.0", "alias")
    assert alias == {
        "type": "gpufleet-alias",
        "master": "eth0",
        "ipam": {
            "type": "host-local",
            "dataDir": "/run/gpufleet/cni",
            "ranges": [
                [
                    {"subnet": "10.1.0.0/16", "rangeStart": "10.1.0.5", "rangeEnd": "10.1.0.5", "gateway": "10.1.0.4"},
                    {"subnet": "10.1.0.0/16", "rangeStart": "10.1.0.6", "rangeEnd": "10.1.0.6", "gateway": "10.1.0.4"},
                ]
            ],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    assert portmap == {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}
    assert tuning == {"type": "tuning", "sysctl": {"net.core.somaxconn": "4096"}}
    plugin = node.path(PLUGIN)
    assert (plugin.read_text(), plugin.stat().st_mode & 0o777) == (installed_file.text(), 0o755)


def test_the_readiness_file_is_the_last_that_is_written(node: FakeNode) -> None:
    run(node)
    assert node.path(alias_network.READY).read_text() == "2 addresses for pods\n"
    # What comes after it is the program's own list of what is owed, which is settled.
    assert node.steps.index(f"write {alias_network.READY}") > max(
        number for number, step in enumerate(node.steps) if step.startswith(("rules", "sysctl", "write /etc", "systemctl"))
    )


def test_a_block_is_one_range_and_its_addresses_are_not_given_twice(node: FakeNode) -> None:
    node.instance = instance(secondary=["10.1.0.5", *(f"10.1.0.{number}" for number in range(16, 32))])
    run(node, prefixes=["10.1.0.16/28"])
    assert pool(node) == ["10.1.0.5", "10.1.0.16-10.1.0.31"]
    assert node.path(alias_network.READY).read_text() == "17 addresses for pods\n"


def test_a_block_alone_is_enough_and_imds_may_know_it(node: FakeNode) -> None:
    node.instance = instance(secondary=["10.1.0.16/28"])
    run(node)
    assert pool(node) == ["10.1.0.16-10.1.0.31"]
    node.instance = instance(secondary=[])
    run(node, prefixes=["10.1.0.32/28"])
    assert pool(node) == ["10.1.0.32-10.1.0.47"]


@pytest.mark.parametrize(
    ("prefixes", "said"),
    [
        (["10.1.0.17/28"], "holds '10.1.0.17/28', which is no block of IPv4 addresses"),
        (["10.2.0.16/28"], "no NIC of this node has secondary addresses"),
        (["10.1.0.16/28", "10.2.0.16/28"], "the block 10.2.0.16/28 is not inside the NIC's subnet 10.1.0.0/16"),
        (["10.1.0.0/28"], "holds its primary address 10.1.0.4"),
    ],
)
def test_a_wrong_block_is_refused(node: FakeNode, prefixes: list[str], said: str) -> None:
    node.instance = instance(secondary=[])
    assert said in refused(node, prefixes=prefixes)


# Where the addresses come from


@pytest.mark.parametrize(
    ("leases", "listed", "kept"),
    [
        (["10.1.0.6", "lock", "last_reserved_ip.0"], ["10.1.0.5"], ["10.1.0.5", "10.1.0.6"]),
        ([], ["10.1.0.5"], ["10.1.0.5"]),
        (["10.1.0.9"], ["10.1.0.5"], ["10.1.0.5"]),
        (["10.1.0.6"], ["10.1.0.5", "10.1.0.6", "10.1.0.7"], ["10.1.0.5", "10.1.0.6", "10.1.0.7"]),
    ],
)
def test_one_stale_answer_frees_no_address_that_a_pod_holds(node: FakeNode, leases: list[str], listed: list[str], kept: list[str]) -> None:
    run(node)
    for name in leases:
        node._place(f"/run/gpufleet/cni/alias/{name}", "")
    node.instance = instance(secondary=listed)
    result = run(node)
    assert pool(node) == kept
    assert bool(set(kept) - set(listed)) == any("IMDS does not list" in note for note in result["notes"])
    node.instance = instance(secondary=listed)
    run(node)
    assert pool(node) == kept, "nor does a second stale answer"


def test_a_held_address_is_named_with_its_pod_and_goes_after_it(node: FakeNode) -> None:
    run(node)
    record(node, "10.1.0.6")
    node.instance = instance(secondary=["10.1.0.5"])
    assert any("10.1.0.6 (research/train-0)" in note for note in run(node)["notes"])
    node.path("/run/gpufleet/pods/train-0-eth0.json").unlink()
    run(node)
    assert pool(node) == ["10.1.0.5"]


def test_the_name_stays_while_pods_hold_addresses_under_it(node: FakeNode) -> None:
    record(node, "10.1.0.6")
    assert "10.1.0.6 research/train-0; keep the name, or drain the node first" in refused(node, name="pods")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (None, "did not answer within 5 seconds (timed out); check that this is an Azure instance"),
        (instance(secondary=()), "no NIC of this node has secondary addresses (eth0 has only 10.1.0.4)"),
        (instance(mac="00:0d:3a:99:99:99"), "IMDS lists none of the interfaces eth0"),
    ],
)
def test_an_answer_without_addresses_stops_before_the_first_change(node: FakeNode, found: t.Any, said: str) -> None:
    node.instance = found
    assert said in refused(node)


@pytest.mark.parametrize("found", [None, instance(secondary=())])
def test_the_wireserver_is_asked_only_where_wanted_and_needed(node: FakeNode, found: t.Any) -> None:
    node.wireserver = WIRESERVER
    run(node, wireserver=True)
    assert pool(node) == ["10.1.0.5", "10.1.0.6"], "IMDS is asked first"
    node.instance = found
    assert any("the wireserver was asked" in note for note in run(node, wireserver=True)["notes"])
    assert pool(node) == ["10.1.0.7"]
    node.steps.clear()
    refused(node)
    node.wireserver = None
    assert "168.63.129.16" in refused(node, wireserver=True) or found is not None


def test_a_subnet_that_is_none_stops_too(node: FakeNode) -> None:
    given = instance()
    given["network"]["interface"][0]["ipv4"]["subnet"] = [{"address": "", "prefix": ""}]
    node.instance = given
    assert f"no usable subnet for the NIC {MAC}" in refused(node)


def test_the_nic_is_the_one_that_azure_knows_and_not_the_first_by_name(node: FakeNode) -> None:
    node._place("/sys/class/net/aaa0/address", "02:00:00:00:00:01\n")
    run(node)
    assert written(node)["plugins"][0]["master"] == "eth0"


def test_a_conflist_of_somebody_else_is_no_reason_to_stop(node: FakeNode) -> None:
    node._place(CONFLIST, '{"plugins": [{"ipam": []}]}')
    run(node)
    assert written(node)["name"] == "alias"


# Secondary addresses on the node itself

CLOUD_INIT = "[Match]\nName=eth0\n\n[Network]\nDHCP=ipv4\nAddress=10.1.0.5/16\nAddress=192.0.2.7/24\n\n[Address]\nAddress=10.1.0.6/16\n"


def test_secondary_addresses_leave_the_nic_and_stay_away(node: FakeNode) -> None:
    node.addresses["eth0"] += ["10.1.0.5/16", "192.0.2.7/24", "10.1.0.6/32"]
    node._place("/etc/systemd/network/10-cloud-init-eth0.network", CLOUD_INIT)
    run(node)
    assert node.addresses["eth0"] == ["10.1.0.4/16", "fe80::20d:3aff:fe11:2233/64", "192.0.2.7/24"]
    drop_in = node.path("/etc/systemd/network/10-cloud-init-eth0.network.d/90-gpufleet-alias.conf").read_text()
    assert drop_in.splitlines()[1:] == ["[Network]", "Address=", "Address=192.0.2.7/24"]
    assert networkd.static_addresses(CLOUD_INIT + drop_in) == ["192.0.2.7/24"]
    # The drop-in goes with what it was for.
    node._place("/etc/systemd/network/10-cloud-init-eth0.network", "[Match]\nName=eth0\n[Network]\nDHCP=yes\n")
    assert any(change.endswith("90-gpufleet-alias.conf: remove") for change in run(node)["changes"])


def test_the_kernel_keeps_the_primary_when_the_first_address_goes(node: FakeNode) -> None:
    node.addresses["eth0"].insert(0, "10.1.0.5/16")
    run(node)
    assert node.steps.index("sysctl net.ipv4.conf.all.promote_secondaries") < node.steps.index("ip address delete 10.1.0.5/16 dev eth0")


@pytest.mark.parametrize("running", [True, False])
def test_networkd_is_restarted_only_where_it_runs(node: FakeNode, running: bool) -> None:
    node._place("/etc/systemd/system/systemd-networkd.service", "")
    node.units["systemd-networkd.service"] = FakeUnit(active=running)
    result = converge.converge(state(), node, check=False)
    assert result["restarts"] == (["systemd-networkd.service"] if running else [])
    assert "ManageForeignRoutes=no\n" in node.path(alias_network.NETWORKD_FILE).read_text()
    assert "apply_network_config: false\n" in node.path(alias_network.CLOUD_INIT_FILE).read_text()


# Rules


def test_only_what_leaves_the_own_networks_is_masqueraded(node: FakeNode) -> None:
    node.tables["nat"] = Rules(chains={"POSTROUTING": ("-j KUBE-POSTROUTING",), "KUBE-POSTROUTING": ()})
    run(node, non_masquerade=["10.0.0.0/8", "198.51.100.0/24"])
    assert node.tables["nat"].chains["GPUFLEET-ALIAS-MASQ"] == (
        "-d 10.0.0.0/8 -j RETURN",
        "-d 198.51.100.0/24 -j RETURN",
        "-d 10.1.0.0/16 -j RETURN",
        "-j MASQUERADE --random-fully",
    )
    assert node.tables["nat"].chains["POSTROUTING"] == ("-j KUBE-POSTROUTING", "! -s 10.1.0.4/32 -o eth0 -j GPUFLEET-ALIAS-MASQ")


def test_a_pod_never_gets_the_identity_of_the_node(node: FakeNode) -> None:
    node.tables["filter"] = Rules(chains={"FORWARD": ("-j ACCEPT",)})
    run(node)
    assert node.tables["filter"].chains["FORWARD"] == ("-j GPUFLEET-ALIAS-POD", "-j ACCEPT")
    assert node.tables["filter"].chains["GPUFLEET-ALIAS-POD"] == (
        "-d 169.254.169.254/32 -j DROP",
        "-d 168.63.129.16/32 -p tcp -m multiport --dports 80,32526 -j DROP",
    )
    run(node, pod_imds="allow")
    assert dict(node.tables["filter"].chains) == {"FORWARD": ("-j ACCEPT",)}


@pytest.mark.parametrize(
    ("ranges", "said"),
    [
        ([], "alias_network_non_masquerade is empty"),
        (["0.0.0.0/0"], "so pods would reach no internet"),
        (["10.0.0.1/8"], "holds '10.0.0.1/8', which is no IPv4 network"),
    ],
)
def test_an_impossible_list_of_own_networks_is_refused(node: FakeNode, ranges: list[str], said: str) -> None:
    assert said in refused(node, non_masquerade=ranges)


# Kernel parameters


def test_the_kernel_gets_room_for_the_fleet_and_forwards(node: FakeNode) -> None:
    result = run(node)
    assert node.path("/proc/sys/net/ipv4/ip_forward").read_text().strip() == "1"
    assert [node.path(f"/proc/sys/net/ipv4/neigh/default/gc_thresh{n}").read_text() for n in (1, 2, 3)] == ["80000", "90000", "100000"]
    assert "net.ipv6.neigh.default.gc_thresh3 = 100000\n" in node.path(alias_network.SYSCTL_FILE).read_text()
    # The module brought the keys.
    assert "module nf_conntrack: load" in result["changes"]
    assert node.path("/proc/sys/net/netfilter/nf_conntrack_max").read_text() == "1048576"
    assert node.path("/proc/sys/net/netfilter/nf_conntrack_buckets").read_text() == "262144"
    # This tree has no ipv6 keys, as a network namespace has none.
    assert [note.split()[1] for note in result["notes"]] == [f"net.ipv6.neigh.default.gc_thresh{number}" for number in (1, 2, 3)]


@pytest.mark.parametrize(
    ("variables", "sizes"),
    [
        ({}, [80000, 90000, 100000]),
        ({"fleet_nodes": 15000}, [160000, 180000, 200000]),
        ({"fleet_nodes": 10}, [16384, 28672, 32768]),
        ({"fleet_nodes": 2500}, [26667, 30000, 33334]),
        ({"fleet_nodes": 10, "neighbour_thresholds": [1, 2, 3]}, [1, 2, 3]),
    ],
)
def test_the_neighbour_table_follows_the_size_of_the_fleet(node: FakeNode, variables: dict[str, t.Any], sizes: list[int]) -> None:
    run(node, **variables)
    assert [int(node.path(f"/proc/sys/net/ipv4/neigh/default/gc_thresh{n}").read_text()) for n in (1, 2, 3)] == sizes


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, ""),
        ({"/etc/sysctl.d/10-early.conf": "net.ipv4.ip_forward=0"}, ""),
        ({"/etc/sysctl.d/99-zzz.conf": "net.ipv4.ip_forward = 1"}, ""),
        ({"/etc/sysctl.d/99-zzz.conf": "# net.ipv4.ip_forward = 0\nnet/ipv4/ip_forward=0"}, "/etc/sysctl.d/99-zzz.conf is read after"),
        ({"/usr/lib/sysctl.d/99-zzz.conf": "-net.ipv4.*=0"}, "/usr/lib/sysctl.d/99-zzz.conf is read after"),
        ({"/usr/lib/sysctl.d/99-zzz.conf": "net.ipv4.ip_forward=0", "/etc/sysctl.d/99-zzz.conf": ""}, ""),
        ({"/etc/sysctl.conf": "net.ipv4.ip_forward=0"}, "/etc/sysctl.conf is read after"),
    ],
)
def test_a_file_that_wins_is_named(files: dict[str, str], said: str) -> None:
    facts = Facts(files={path: File(text=text) for path, text in files.items()})
    notes = sysctl_files.winners(facts, alias_network.SYSCTL_FILE, {"net.ipv4.ip_forward": "1"})
    assert len(notes) == bool(said) and all(said in note for note in notes)


# Other CNI configurations


def test_configurations_that_hide_traffic_or_come_first_are_named(node: FakeNode) -> None:
    node._place("/etc/cni/net.d/05-other.conflist", '{"plugins": [{"type": "macvlan"}, {"type": "portmap"}]}')
    node._place("/etc/cni/net.d/20-old.conf", '{"type": "bridge"}')
    notes = "\n".join(run(node)["notes"])
    assert "/etc/cni/net.d/05-other.conflist uses macvlan" in notes
    assert "/etc/cni/net.d/20-old.conf uses bridge" in notes
    assert "container runtimes take /etc/cni/net.d/05-other.conflist instead" in notes


def test_an_external_configuration_stays_and_is_only_looked_at(node: FakeNode) -> None:
    run(node)
    node._place("/etc/cni/net.d/10-azure.conflist", '{"plugins": [{"type": "azure-vnet"}]}')
    result = run(node, cni="external")
    assert not node.path(CONFLIST).exists() and not node.path(PLUGIN).exists()
    assert "GPUFLEET-ALIAS-MASQ" not in node.tables["nat"].chains
    assert "GPUFLEET-ALIAS-POD" in node.tables["filter"].chains
    assert not any("no CNI configuration" in note for note in result["notes"])
    node.path("/etc/cni/net.d/10-azure.conflist").unlink()
    assert any("no CNI configuration" in note for note in run(node, cni="external")["notes"])


def test_plugins_that_another_directory_lacks_are_named(node: FakeNode) -> None:
    node._place("/opt/cni/bin/host-local", "")
    result = run(node, cni_directory="/opt/cni/bin")
    assert any(note.startswith("/opt/cni/bin lacks portmap, tuning") for note in result["notes"])
    assert node.path("/opt/cni/bin/gpufleet-alias").exists()


# Taking it back


def test_absent_needs_no_answer_from_imds_and_leaves_nothing(node: FakeNode) -> None:
    before, tables = node.tree(), dict(node.tables)
    run(node)
    node.instance = None
    run(node, state="absent")
    assert node.tables == tables
    left = {path for path, item in node.tree().items() if before.get(path) != item and not item.startswith("directory")}
    assert {path for path in left if not path.startswith("/proc/")} == {"/etc/gpufleet/state.d/alias_network.json"}


def test_the_plugin_stays_for_pods_that_must_still_be_taken_down(node: FakeNode) -> None:
    run(node)
    record(node, "10.1.0.6")
    result = run(node, state="absent")
    assert node.path(PLUGIN).exists() and any("research/train-0; drain the node" in note for note in result["notes"])
    node.path("/run/gpufleet/pods/train-0-eth0.json").unlink()
    run(node, state="absent")
    assert not node.path(PLUGIN).exists()


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"name": "a/b"}, "alias_network_name is 'a/b'; use 1 to 63 letters"),
        ({"neighbour_thresholds": [3, 2, 1]}, "give three positive numbers, each at least the one before"),
        ({"neighbour_thresholds": [1, 2]}, "give three positive numbers"),
        ({"cni_directory": "opt"}, "alias_network_cni_directory is 'opt'; give an absolute path"),
        ({"pod_sysctls": {"kernel.pid_max": 1}}, "alias_network_pod_sysctls sets 'kernel.pid_max' to 1"),
        ({"pod_sysctls": {"net.core.somaxconn": True}}, "alias_network_pod_sysctls sets"),
    ],
)
def test_what_cannot_be_meant_is_refused(node: FakeNode, variables: dict[str, t.Any], said: str) -> None:
    assert said in refused(node, **variables)
