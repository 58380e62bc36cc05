# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory of the collection azure.azcollection lists the lab, and finds the instances and addresses that ours finds.

Its dependencies conflict with today's SDK, so it has an environment of its own.
"""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sys
import types
import typing as t

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "integration" / "compare_azure_rm.py"
LIMIT_SECONDS = 900


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


@pytest.fixture(scope="module")
def script() -> types.ModuleType:
    specification = importlib.util.spec_from_file_location("compare_azure_rm", SCRIPT)
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_it_finds_the_instances_and_addresses_that_ours_finds(peer: pathlib.Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--azure-rm", str(peer)], capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith("300 hosts with 7410 addresses by azure_rm, 300 by azure_vmss, 0 differences\n")


def test_a_difference_is_said(script: types.ModuleType) -> None:
    theirs = {"vmid": "a", "ansible_host": "10.0.0.4", "powerstate": "running", "location": "west", "resource_group": "RG"}
    ours = {"vm_id": "a", "ansible_host": "10.0.0.4", "power_state": "running", "location": "west", "resource_group": "rg"}
    addresses = {"private_ipv4_addresses": ["10.0.0.4", "10.0.0.5"]}
    ours |= {"primary_address": "10.0.0.4", "alias_addresses": "10.0.0.5"}
    assert list(script.compare({"x": theirs | addresses}, {"x": ours})) == []
    assert list(script.compare({"x": theirs | addresses}, {"x": ours | {"alias_addresses": "10.0.0.6"}})) == [
        "x: addresses is ['10.0.0.4', '10.0.0.5'] by azure_rm and ['10.0.0.4', '10.0.0.6'] by azure_vmss"
    ]
    assert list(script.compare({"x": theirs | addresses}, {"x": ours, "y": ours})) == ["y: listed by azure_vmss alone"]
