# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The play of the documentation, run as it stands by ansible-playbook with the inventory's hosts; this machine is each node."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
from served_azure import GROUP, running

ROOT = pathlib.Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "vmss-alias-ips.md").read_text(encoding="utf-8")
LIMIT_SECONDS = 120


def test_the_play_of_the_page(tmp_path: pathlib.Path) -> None:
    if pathlib.Path("/run/gpufleet/pods").exists():
        pytest.skip("this machine has records of pods of its own")
    (block,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "play.yml").write_text(block, encoding="utf-8")
    (tmp_path / "azure_vmss.yml").write_text(json.dumps({"plugin": "gpufleet.vmss.azure_vmss", "scale_sets": ["gpua"]}), encoding="utf-8")
    with running(tmp_path) as azure:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"),
            "ANSIBLE_NOCOLOR": "1",
            **azure.service.environment,
        }

        def play(*more: str) -> str:
            given = {
                "ansible_connection": "local",
                "ansible_python_interpreter": sys.executable,
                "resource_group": GROUP,
                "scale_set": "gpua",
                "addresses": 4,
            }
            command = [sys.executable, "-m", "ansible", "playbook"]
            arguments = ["-i", str(tmp_path / "azure_vmss.yml"), str(tmp_path / "play.yml"), "-e", json.dumps(given), *more]
            done = subprocess.run(
                [*command, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
            )
            assert done.returncode == 0, done.stdout + done.stderr
            return done.stdout

        held = azure.current.fleet
        assert re.search(r"localhost .*changed=1 ", play("--check")) and azure.current.fleet == held
        assert re.search(r"localhost .*changed=1 ", play())
        assert [len(item.secondary_addresses) for item in azure.current.fleet.instances_of("gpua")] == [4, 4]
        assert re.search(r"localhost .*changed=0 ", play())
