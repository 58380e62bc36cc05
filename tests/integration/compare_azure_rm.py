#!/usr/bin/env python3
# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""azure.azcollection's azure_rm and azure_vmss list one fleet of the lab; every difference in what both know is an error.

``python tests/integration/compare_azure_rm.py --azure-rm PROGRAM``, with an ansible-inventory that has the collection and its
requirements; ``make test-peers`` makes one. Needs no root. What differs by intent is in docs/inventory.md.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import typing as t

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("", "collections", "tests/unit/lab/azure", "tests/peers")]

from ansible_collections.gpufleet.vmss.plugins.filter.expand_addresses import expand_addresses  # noqa: E402
from azure_rm_settings import CONFIGURATION, plain, variables  # noqa: E402
from served_azure import running  # noqa: E402

FLEET = ROOT / "tests" / "peers" / "fleet.yml"
LIMIT_SECONDS = 900
Hosts = dict[str, dict[str, t.Any]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--azure-rm", type=pathlib.Path, required=True, help="ansible-inventory of an environment that has azure_rm")
    options = parser.parse_args()
    # Not throttled: azure_rm asks for every instance by itself, more often than Azure allows.
    with tempfile.TemporaryDirectory() as name, running(pathlib.Path(name), FLEET, throttled=False) as azure:
        folder = pathlib.Path(name)
        theirs, ours = folder / "their.azure_rm.yml", folder / "our.azure_vmss.yml"
        theirs.write_text(CONFIGURATION + f"cloud_environment: {azure.url}/\n", encoding="utf-8")
        ours.write_text("plugin: gpufleet.vmss.azure_vmss\n", encoding="utf-8")
        given = {**variables(azure.service.environment), "AZURE_CONFIG_DIR": str(folder / "config")}
        mine = {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"), "ANSIBLE_INVENTORY_ENABLED": "gpufleet.vmss.azure_vmss"}
        found = listed(options.azure_rm.absolute(), theirs, given)
        expected = listed(pathlib.Path(sys.executable).with_name("ansible-inventory"), ours, {**given, **mine})
    differences = list(compare(found, expected))
    for line in differences:
        print(line)
    addresses = sum(len(host["private_ipv4_addresses"]) for host in found.values())
    print(f"{len(found)} hosts with {addresses} addresses by azure_rm, {len(expected)} by azure_vmss, {len(differences)} differences")
    return 1 if differences else 0


def listed(program: pathlib.Path, source: pathlib.Path, given: dict[str, str]) -> Hosts:
    """Every host with its variables. Raises RuntimeError with the program's own words when it fails."""
    environment = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "HOME": str(source.parent),
        "LC_ALL": "C.UTF-8",
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
        **given,
    }
    done = subprocess.run(
        [str(program), "-i", str(source), "--list"],
        cwd=source.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{program} ended with status {done.returncode}: {done.stderr}")
    return {name: plain(host) for name, host in json.loads(done.stdout)["_meta"]["hostvars"].items()}


def compare(theirs: Hosts, ours: Hosts) -> t.Iterator[str]:
    """A line for each difference: which hosts there are, who each is, where it is reached, its state and all of its addresses."""
    for name in sorted(set(theirs) | set(ours)):
        if name not in theirs or name not in ours:
            yield f"{name}: listed by {'azure_rm' if name in theirs else 'azure_vmss'} alone"
            continue
        their, our = known_to_azure_rm(theirs[name]), known_to_us(ours[name])
        for key, value in their.items():
            if value != our[key]:
                yield f"{name}: {key} is {value!r} by azure_rm and {our[key]!r} by azure_vmss"


def known_to_azure_rm(host: dict[str, t.Any]) -> dict[str, t.Any]:
    return {
        "identity": host["vmid"],
        "address": host["ansible_host"],
        "state": host["powerstate"],
        "location": host["location"],
        "resource group": host["resource_group"].lower(),
        # Sorted: azure_rm gives them in the order of the NIC, and ours in short.
        "addresses": sorted(host["private_ipv4_addresses"]),
    }


def known_to_us(host: dict[str, t.Any]) -> dict[str, t.Any]:
    return {
        "identity": host["vm_id"],
        "address": host["ansible_host"],
        "state": host["power_state"],
        "location": host["location"],
        "resource group": host["resource_group"].lower(),
        "addresses": sorted([host["primary_address"], *expand_addresses(host.get("alias_addresses", ""))]),
    }


if __name__ == "__main__":
    sys.exit(main())
