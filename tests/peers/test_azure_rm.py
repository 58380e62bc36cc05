# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of the collection azure.azcollection lists the lab, and finds the instances and addresses that ours finds.

Its dependencies conflict with today's SDK, so it has an environment of its own. It asks for every instance one by one.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest
from azure_rm_settings import CONFIGURATION, plain, variables
from served_azure import Azure, running

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIMIT_SECONDS = 600


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Azure]:
    with running(tmp_path_factory.mktemp("azure"), HERE / "fleet.yml") as found:
        yield found


@pytest.fixture(scope="module")
def peer(environment: t.Any) -> pathlib.Path:
    """ansible-inventory of the PyPI package ansible, with what its Azure collection asks for."""
    # The collection that comes with ansible for older Pythons cannot be pointed at a private Resource Manager.
    program: pathlib.Path = environment("azure-rm", ["ansible>=14"], "3.13")
    stamp = program.parent / "requirements"
    if not stamp.exists():
        found = next(program.parent.glob("lib/python3*/site-packages/ansible_collections/azure/azcollection/requirements.txt"))
        subprocess.run([str(program / "python"), "-m", "pip", "install", "--quiet", "-r", str(found)], check=True, timeout=LIMIT_SECONDS)
        stamp.touch()
    return program / "ansible-inventory"


def listed(program: pathlib.Path, source: pathlib.Path, variables: dict[str, str]) -> dict[str, dict[str, t.Any]]:
    """Every host with its variables."""
    done = subprocess.run(
        [str(program), "-i", str(source), "--list"],
        cwd=source.parent,
        env={
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "HOME": str(source.parent),
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return t.cast("dict[str, dict[str, t.Any]]", json.loads(done.stdout)["_meta"]["hostvars"])


def test_it_finds_the_instances_and_addresses_that_ours_finds(azure: Azure, peer: pathlib.Path, tmp_path: pathlib.Path) -> None:
    theirs, ours = tmp_path / "their.azure_rm.yml", tmp_path / "our.azure_vmss.yml"
    theirs.write_text(CONFIGURATION + f"cloud_environment: {azure.url}/\n", encoding="utf-8")
    ours.write_text("plugin: gpufleet.vmss.azure_vmss\nscale_sets: [gpua, gpub]\n", encoding="utf-8")
    given = {**variables(azure), "AZURE_CONFIG_DIR": str(tmp_path / "azure")}
    found = listed(peer, theirs, given)
    expected = listed(
        pathlib.Path(sys.executable).parent / "ansible-inventory",
        ours,
        {**given, "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"), "ANSIBLE_INVENTORY_ENABLED": "gpufleet.vmss.azure_vmss"},
    )
    assert set(found) == set(expected)
    assert len(found) == 20
    for name, host in found.items():
        instance = next(item for item in azure.current.fleet.instances if item.computer_name == name)
        theirs_now, ours_now = (plain(held) for held in (host, expected[name]))
        assert theirs_now["private_ipv4_addresses"] == list(instance.addresses)
        assert theirs_now["vmid"] == ours_now["vm_id"] == instance.vm_id
        assert theirs_now["ansible_host"] == ours_now["ansible_host"] == instance.primary_address
        assert theirs_now["powerstate"] == ours_now["power_state"] == "running"
