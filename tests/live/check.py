# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``make live-check``: the same reading calls to a real subscription and to the lab, and every difference between the answers.

Opt-in, and only reads. Needs a login (azure-identity's default), AZURE_SUBSCRIPTION_ID, and a resource group that holds one
Uniform and one Flexible scale set of one or two instances each, named by --group, --uniform and --flexible. Two cheap ones:

  az vmss create -g GROUP -n uni --orchestration-mode Uniform --instance-count 2 --vm-sku Standard_B1s --image Ubuntu2204 --generate-ssh-keys
  az vmss create -g GROUP -n flex --orchestration-mode Flexible --instance-count 2 --vm-sku Standard_B1s --image Ubuntu2204 --generate-ssh-keys

Sanitised answers go to build/live/, differences to the terminal. The exit status is 0 whatever is found.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys
import tempfile
import typing as t

from azure.core.rest import HttpRequest
from azure.mgmt.compute import ComputeManagementClient

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "live"), str(ROOT / "tests" / "unit" / "lab" / "azure")]

import shapes  # noqa: E402
from served_azure import running  # noqa: E402

COMPUTE, NETWORK, SET_NETWORK = "2024-07-01", "2024-05-01", "2018-10-01"
# Each call by its name: path below the resource group's providers, API version. {uniform} and {flexible} are the sets.
CALLS = {
    "sets": ("Microsoft.Compute/virtualMachineScaleSets", COMPUTE),
    "uniform-set": ("Microsoft.Compute/virtualMachineScaleSets/{uniform}", COMPUTE),
    "flexible-set": ("Microsoft.Compute/virtualMachineScaleSets/{flexible}", COMPUTE),
    "uniform-set-view": ("Microsoft.Compute/virtualMachineScaleSets/{uniform}/instanceView", COMPUTE),
    "flexible-set-view": ("Microsoft.Compute/virtualMachineScaleSets/{flexible}/instanceView", COMPUTE),
    "uniform-skus": ("Microsoft.Compute/virtualMachineScaleSets/{uniform}/skus", COMPUTE),
    "uniform-instances": ("Microsoft.Compute/virtualMachineScaleSets/{uniform}/virtualMachines?$expand=instanceView", COMPUTE),
    "flexible-instances-of-the-set": ("Microsoft.Compute/virtualMachineScaleSets/{flexible}/virtualMachines", COMPUTE),
    "machines": ("Microsoft.Compute/virtualMachines", COMPUTE),
    "uniform-nics": ("Microsoft.Compute/virtualMachineScaleSets/{uniform}/networkInterfaces", SET_NETWORK),
    "flexible-nics-of-the-set": ("Microsoft.Compute/virtualMachineScaleSets/{flexible}/networkInterfaces", SET_NETWORK),
    "nics": ("Microsoft.Network/networkInterfaces", NETWORK),
    "vnets": ("Microsoft.Network/virtualNetworks", NETWORK),
    "absent-set": ("Microsoft.Compute/virtualMachineScaleSets/is-not-there", COMPUTE),
    "old-version": ("Microsoft.Compute/virtualMachineScaleSets", "2000-01-01"),
}


class Manager:
    """A Resource Manager with one group. ``names`` is what to hide in its answers."""

    def __init__(self, credential: t.Any, url: str, subscription: str, group: str, sets: dict[str, str], **options: t.Any) -> None:
        self._client: t.Any = ComputeManagementClient(
            credential, subscription, base_url=url, credential_scopes=[f"{url}/.default"], **options
        )
        self._place = f"{url}/subscriptions/{subscription}/resourceGroups/{group}/providers"
        self._sets = sets
        self.names = {url: "(arm)", subscription: "(subscription)", group: "(group)", **{name: f"({kind})" for kind, name in sets.items()}}

    def ask(self, path: str, version: str) -> dict[str, t.Any]:
        """Status, the headers that clients read, and the body, all made anonymous."""
        joined = path.format(**self._sets)
        url = f"{self._place}/{joined}{'&' if '?' in joined else '?'}api-version={version}"
        answer = self._client.send_request(HttpRequest("GET", url))
        kept = sorted(
            name.lower() for name in answer.headers if name.lower().startswith(("x-ms-ratelimit", "retry-after", "x-ms-request-id"))
        )
        return {"status": answer.status_code, "headers": kept, "body": shapes.anonymous(answer.json(), self.names)}


def compare(real: Manager, lab: Manager, folder: pathlib.Path) -> dict[str, list[str]]:
    """The differences of every call, by its name. Both answers are kept in ``folder``."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = {}
    for name, (path, version) in CALLS.items():
        answers = {"azure": real.ask(path, version), "lab": lab.ask(path, version)}
        for side, answer in answers.items():
            (folder / f"{name}.{side}.json").write_text(json.dumps(answer, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        lines = shapes.differences(answers["azure"]["body"], answers["lab"]["body"])
        for key in ("status", "headers"):
            if answers["azure"][key] != answers["lab"][key]:
                lines.insert(0, f"{key}: Azure {answers['azure'][key]}, the lab {answers['lab'][key]}")
        found[name] = lines
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--subscription", "--group", "--uniform", "--flexible"):
        parser.add_argument(name, required=True)
    options = parser.parse_args()
    from azure.identity import DefaultAzureCredential

    real = Manager(
        DefaultAzureCredential(),
        "https://management.azure.com",
        options.subscription,
        options.group,
        {"uniform": options.uniform, "flexible": options.flexible},
    )
    with tempfile.TemporaryDirectory() as folder, running(pathlib.Path(folder)) as azure:
        found = compare(real, of_lab(azure), ROOT / "build" / "live")
    for name, lines in found.items():
        print(f"{name}: {len(lines)} differences" if lines else f"{name}: the same")
        for line in lines:
            print(f"  {line}")
    print(f"answers are in {ROOT / 'build' / 'live'}")
    return 0


def of_lab(azure: t.Any) -> Manager:
    """The lab's, over the fleet that the tests use."""
    return Manager(
        azure.credential(),
        azure.url,
        azure.subscription,
        "gpufleet-lab",
        {"uniform": "gpua", "flexible": "cpub"},
        connection_verify=azure.authority_file,
    )


if __name__ == "__main__":
    sys.exit(main())
