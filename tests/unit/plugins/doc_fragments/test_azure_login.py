# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module logs in with the same options as the inventory, from the same variables."""

from __future__ import annotations

import re

import yaml
from ansible_collections.gpufleet.vmss.plugins.doc_fragments.azure_login import ModuleDocFragment
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import arguments

PLUGIN = yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"]
MODULE = yaml.safe_load(ModuleDocFragment.MODULE)["options"]
# The inventory has these with words of its own.
OF_THE_MODULE = {"env_file", "subscription_id"}


def test_the_options_are_the_same() -> None:
    assert list(PLUGIN) == [name for name in MODULE if name not in OF_THE_MODULE]
    for name, option in PLUGIN.items():
        assert MODULE[name].get("choices") == option.get("choices") and MODULE[name]["type"] == option["type"]


def test_so_are_their_variables_and_defaults() -> None:
    for name, option in PLUGIN.items():
        assert arguments.VARIABLES[name] == tuple(entry["name"] for entry in option["env"])
        assert arguments.DEFAULTS.get(name) == option.get("default")


def test_a_description_names_the_variables_and_the_default() -> None:
    for name, variables in arguments.VARIABLES.items():
        description = " ".join(text) if isinstance(text := MODULE[name]["description"], list) else text
        assert tuple(re.findall(r"E\((\w+)\)", description)) == variables
        assert name not in arguments.DEFAULTS or f"else V({arguments.DEFAULTS[name]})" in description


def test_they_are_the_arguments_of_the_module() -> None:
    assert set(arguments.SPEC) == set(MODULE)
    for name, argument in arguments.SPEC.items():
        assert (argument["type"], argument.get("choices")) == (MODULE[name]["type"], MODULE[name].get("choices"))
        assert bool(argument.get("no_log")) is (name in arguments.SECRETS)
