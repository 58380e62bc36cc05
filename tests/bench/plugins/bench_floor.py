# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: bench_floor
short_description: The hosts of a JSON file, with the least that an inventory plugin can do
description: What ansible-core itself costs for so many hosts, variables and groups.
options:
  plugin:
    description: Name.
    type: str
    required: true
"""

import json
import typing as t

from ansible.plugins.inventory import BaseInventoryPlugin


class InventoryModule(BaseInventoryPlugin):
    NAME = "bench_floor"

    def verify_file(self, path: str) -> bool:
        return path.endswith("bench_floor.yml")

    def parse(self, inventory: t.Any, loader: t.Any, path: str, cache: bool = True) -> None:
        super().parse(inventory, loader, path, cache)
        with open(f"{path}.json", encoding="utf-8") as file:
            document = json.load(file)
        for group, hosts in document["groups"].items():
            inventory.add_group(group)
            for host in hosts:
                inventory.add_host(host, group)
        for host, variables in document["hosts"].items():
            for key, value in variables.items():
                inventory.set_variable(host, key, value)
