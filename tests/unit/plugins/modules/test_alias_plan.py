# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as Ansible starts it: with documents, with an Azure to read, and when it refuses."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest
import wishes
import yaml
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufleet.vmss.plugins.modules import alias_plan as module
from served_azure import GROUP, Azure, running

ROOT = pathlib.Path(__file__).parents[4]
EXAMPLE = ROOT / "docs" / "examples" / "network_plan.yml"
LIMIT_SECONDS = 120
NETWORKS = [{"name": "research", "addressSpace": {"addressPrefixes": ["10.16.0.0/12"]}}]

Document = dict[str, t.Any]
Run = t.Callable[..., Document]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*, check: bool = False, **arguments: t.Any) -> Document:
        with patch_module_args({"_ansible_check_mode": check, **arguments}), pytest.raises(SystemExit) as end:
            module.main()
        answer: Document = json.loads(capsys.readouterr().out)
        assert (end.value.code == 0) == (not answer.get("failed"))
        return answer

    return call


def fleet(**given: t.Any) -> Document:
    entry = {"name": "gpu", "size": wishes.GPU, "nodes": 100, "pods_per_node": 27, **given}
    return {"clusters": [{"name": "research", "virtual_network": "research", "scale_sets": [entry]}]}


@pytest.mark.parametrize("check", [False, True])
def test_it_answers_with_a_plan_and_a_table(run: Run, check: bool) -> None:
    answer = run(fleet=fleet(count=75), virtual_networks=NETWORKS, check=check)
    assert answer["changed"] is False
    assert answer["plan"]["format"] == 1 and answer["plan"]["address_form"] == "blocks"
    assert answer["plan"]["totals"] == {
        "clusters": 1,
        "scale_sets": 75,
        "nodes": 7_500,
        "growth": 0,
        "pod_addresses": 202_500,
        "ip_configurations": 22_500,
    }
    first = answer["plan"]["clusters"][0]["scale_sets"][0]
    assert first["infiniband"] is True and first["blocks_per_node"] == 2
    assert first["subnet"] == {"name": "gpu-01", "prefix": "10.16.0.0/20", "new": True}
    assert "gpu-01 .. gpu-75" in answer["table"]


def test_it_names_the_first_limit_that_is_broken(run: Run) -> None:
    answer = run(fleet=fleet(nodes=101, pods_per_node=300), virtual_networks=NETWORKS)
    assert answer["msg"].startswith("scale set gpu: 101 nodes, and Azure allows 100 ")
    assert answer["refused"] == {
        "limit": "infiniband_nodes",
        "unit": "instances that reach each other by InfiniBand (one placement group)",
        "value": 100,
        "needed": 101,
        "where": "scale set gpu",
        "source": answer["refused"]["source"],
    }
    assert "learn.microsoft.com" in answer["refused"]["source"] and "plan" not in answer


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"fleet": fleet()}, "virtual_networks: no VNet is at hand"),
        ({"fleet": fleet(), "resource_groups": ["net"], "virtual_networks": NETWORKS}, "resource_groups: they are named without"),
        ({"fleet": fleet(nodez=1), "virtual_networks": NETWORKS}, "fleet.clusters.scale_sets.nodez"),
        ({"fleet": fleet(orchestration="uniform"), "virtual_networks": NETWORKS}, "value of orchestration must be one of"),
        ({"fleet": {"clusters": [{"name": "a"}]}, "virtual_networks": NETWORKS}, "missing required arguments: scale_sets, virtual_network"),
        ({"fleet": fleet(nodes=0), "virtual_networks": NETWORKS}, "fleet.clusters[0].scale_sets[0] (research).nodes: 0 is too small"),
        (
            {"fleet": fleet(), "virtual_networks": [{"name": "other", "addressSpace": {"addressPrefixes": ["10.0.0.0/8"]}}]},
            "no VNet research",
        ),
    ],
)
def test_bad_input_is_one_message(run: Run, arguments: Document, said: str) -> None:
    answer = run(**arguments)
    assert answer["failed"] and said in answer["msg"] and "refused" not in answer


# Reading


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Azure]:
    with running(tmp_path_factory.mktemp("azure")) as found:
        yield found


@pytest.fixture
def login(azure: Azure, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """The file of variables; the environment has none of them."""
    for name in azure.service.environment:
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "azure.env"
    file.write_text("".join(f"{key}={value}\n" for key, value in azure.service.environment.items()), encoding="utf-8")
    return file


def beside(*names: str) -> Document:
    """Clusters a and b of the lab, with scale sets of these names in a."""
    sets = [{"name": name, "size": wishes.CPU, "nodes": 300, "pods_per_node": 2, "subnet": None} for name in names]
    other = [{"name": "cpub", "size": wishes.CPU, "nodes": 1, "pods_per_node": 2, "orchestration": "Flexible"}]
    return {
        "clusters": [
            {"name": "a", "virtual_network": "cluster-a", "hub": "hub", "scale_sets": sets},
            {"name": "b", "virtual_network": "cluster-b", "hub": "hub", "scale_sets": other},
        ]
    }


@pytest.mark.parametrize("groups", [[], [GROUP]])
def test_it_reads_what_is_there(run: Run, azure: Azure, login: pathlib.Path, groups: list[str]) -> None:
    answer = run(fleet=beside("many", "new"), subscription_ids=[azure.subscription], resource_groups=groups, env_file=str(login))
    many, new = answer["plan"]["clusters"][0]["scale_sets"]
    # "many" has 230 instances there, 690 addresses; it stays, and is not counted twice. Beside it are gpua and flex.
    assert many["subnet"] == {"name": "stubs", "prefix": "10.1.16.0/20", "new": False}
    assert new["subnet"]["new"] and answer["plan"]["peerings_to_make"] == []
    counts = answer["plan"]["virtual_networks"]
    assert [(count["planned"], count["others"]) for count in counts] == [(1_800, 2 * 3 + 230 * 3), (3, 3)]


def test_documents_are_added_to_what_is_read(run: Run, azure: Azure, login: pathlib.Path) -> None:
    wanted = {"clusters": [{"name": "c", "virtual_network": "c", "hub": "hub", "scale_sets": fleet()["clusters"][0]["scale_sets"]}]}
    new = [{"name": "c", "addressSpace": {"addressPrefixes": ["10.3.0.0/16"]}}]
    answer = run(fleet=wanted, subscription_ids=[azure.subscription], virtual_networks=new, env_file=str(login))
    assert [(item["from"], item["to"]) for item in answer["plan"]["peerings_to_make"]] == [("hub", "c"), ("c", "hub")]


def test_a_group_that_is_not_there_and_a_login_that_fails_are_one_message(run: Run, azure: Azure, login: pathlib.Path) -> None:
    answer = run(fleet=beside("many"), subscription_ids=[azure.subscription], resource_groups=["nowhere"], env_file=str(login))
    assert answer["failed"] and "ResourceGroupNotFound" in answer["msg"] and "correct resource_groups" in answer["msg"]
    login.write_text(login.read_text(encoding="utf-8").replace(azure.service.principal.secret, "wrong-secret"), encoding="utf-8")
    answer = run(fleet=beside("many"), subscription_ids=[azure.subscription], env_file=str(login))
    assert answer["failed"] and "AADSTS7000215" in answer["msg"] and "wrong-secret" not in json.dumps(answer)


# The playbook


def play(*arguments: str, folder: pathlib.Path, result_format: str = "yaml") -> subprocess.CompletedProcess[str]:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_CALLBACK_RESULT_FORMAT": result_format,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
    }
    command = [
        str(pathlib.Path(sys.executable).with_name("ansible-playbook")),
        "-i",
        "localhost,",
        "playbooks/network_plan.yml",
        *arguments,
    ]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)


@pytest.mark.parametrize(("result_format", "line"), [("yaml", "        Subnets to make: 77, "), ("json", '        "Subnets to make: 77, ')])
def test_the_playbook_shows_the_example_and_writes_it(tmp_path: pathlib.Path, result_format: str, line: str) -> None:
    written = tmp_path / "plan.json"
    done = play("-e", f"@{EXAMPLE}", "-e", f"network_plan_json={written}", folder=tmp_path, result_format=result_format)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"\n{line}" in done.stdout
    assert json.loads(written.read_text(encoding="utf-8"))["totals"]["nodes"] == 7_556
    again = play("-e", f"@{EXAMPLE}", "-e", f"network_plan_json={written}", folder=tmp_path)
    assert "changed=0" in again.stdout


def test_the_playbook_stops_with_the_refusal_and_writes_nothing(tmp_path: pathlib.Path) -> None:
    written = tmp_path / "plan.json"
    done = play("-e", f"@{EXAMPLE}", "-e", f"network_plan_json={written}", "-e", "network_plan_largest_job_nodes=101", folder=tmp_path)
    assert done.returncode != 0 and not written.exists()
    assert "a job of 101 nodes does not fit one InfiniBand domain" in done.stdout + done.stderr


def test_the_playbook_hands_over_every_option_of_the_module() -> None:
    tasks = yaml.safe_load((ROOT / "playbooks" / "network_plan.yml").read_text(encoding="utf-8"))[0]["tasks"]
    handed = tasks[0]["gpufleet.vmss.alias_plan"]
    assert set(handed) == set(yaml.safe_load(module.DOCUMENTATION)["options"])
    assert all(f"network_plan_{name}" in value for name, value in handed.items())
