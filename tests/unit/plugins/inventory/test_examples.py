# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the documentation shows is understood as it stands, but for names of subscriptions, groups, sets and files."""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest
import yaml
from ansible_collections.gpufleet.vmss.plugins.inventory import azure_vmss

ROOT = pathlib.Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "inventory.md").read_text(encoding="utf-8")
PLUGIN = {"plugin": "gpufleet.vmss.azure_vmss"}
BLOCKS = [next(yaml.safe_load_all(block)) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
SHOWN = {
    # Of the page's blocks some show a few options alone.
    **{f"page-{number}": {**PLUGIN, **block} for number, block in enumerate(BLOCKS)},
    **{f"plugin-{number}": example for number, example in enumerate(yaml.safe_load_all(azure_vmss.EXAMPLES))},
    "example": yaml.safe_load((ROOT / "inventory" / "example" / "azure_vmss.yml").read_text(encoding="utf-8")),
}
# What names things of somebody's own Azure or machine.
OWN = ("subscription_ids", "resource_groups", "scale_sets", "scale_set_tags", "ssh_config", "cache_connection")


@pytest.mark.parametrize("example", SHOWN.values(), ids=SHOWN)
def test_an_example_makes_hosts(inventory: t.Any, example: dict[str, t.Any]) -> None:
    options = {name: value for name, value in example.items() if name not in OWN}
    assert options.pop("plugin") == "gpufleet.vmss.azure_vmss"
    if "cache" in options:
        options["cache_connection"] = str(inventory.folder)
    variables = dict(inventory.azure.environment)
    if "logins" in options:
        # One of them, with the login and the subscription of the lab.
        subscription = variables.pop("AZURE_SUBSCRIPTION_ID")
        options["logins"] = [{"subscription_ids": [subscription]}]
    # The lab's instances have none of the tags that an example may want.
    answer = inventory(variables=variables, scale_sets=["gpua", "cpub"], allow_empty="include" in options, **options)
    assert len(answer.hosts) == (0 if "include" in options else 3)
    for name in options.get("compose", {}):
        assert "include" in options or sum(name in host for host in answer.hosts.values()) >= 2
