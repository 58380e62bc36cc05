# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every answer of the lab's Resource Manager against Microsoft's description of it, by Microsoft's validator."""

from __future__ import annotations

import json
import ssl
import typing as t
import urllib.error
import urllib.request

import pytest
from served_azure import running

GROUP = "/subscriptions/5ab00000-0000-4000-8000-000000000001/resourceGroups/gpufleet-lab/providers"
SETS = f"{GROUP}/Microsoft.Compute/virtualMachineScaleSets"
COMPUTE, NETWORK, SET_NETWORK = (
    "2024-07-01",
    "2024-01-01",
    "2018-10-01",
)  # The one instance of the Flexible set, and its NIC; their names come from the fleet.
MACHINE = f"{GROUP}/Microsoft.Compute/virtualMachines/{{machine}}"
NIC = f"{GROUP}/Microsoft.Network/networkInterfaces/{{machine}}-nic"
# Of these the request is the answer to the GET before it: what is written is what was read, as clients do it. That then holds
# what only the server writes is a fault of the request, not of the answer.
SENT_BACK = "READONLY_PROPERTY_NOT_ALLOWED_IN_REQUEST"
WRITTEN_BACK = [
    (f"{SETS}/gpua", COMPUTE),
    (f"{SETS}/gpua/virtualMachines/0", COMPUTE),
    (NIC, NETWORK),
]

REQUESTS: list[tuple[str, str, str, dict[str, t.Any] | None]] = [
    ("GET", "/subscriptions/5ab00000-0000-4000-8000-000000000001/providers/Microsoft.Compute/virtualMachineScaleSets", COMPUTE, None),
    ("GET", SETS, COMPUTE, None),
    ("GET", f"{SETS}/gpua", COMPUTE, None),
    ("GET", f"{SETS}/cpub", COMPUTE, None),
    ("GET", f"{SETS}/gpua/instanceView", COMPUTE, None),
    ("GET", f"{SETS}/gpua/skus", COMPUTE, None),
    ("GET", f"{SETS}/gpua/virtualMachines?$expand=instanceView", COMPUTE, None),
    ("GET", f"{SETS}/many/virtualMachines", COMPUTE, None),
    ("GET", f"{SETS}/gpua/virtualMachines/0?$expand=instanceView", COMPUTE, None),
    ("GET", f"{SETS}/gpua/virtualMachines/0/instanceView", COMPUTE, None),
    ("GET", f"{GROUP}/Microsoft.Compute/virtualMachines", COMPUTE, None),
    ("GET", f"{SETS}/gpua/networkInterfaces", SET_NETWORK, None),
    ("GET", f"{SETS}/gpua/virtualMachines/0/networkInterfaces", SET_NETWORK, None),
    ("GET", f"{SETS}/gpua/virtualMachines/0/networkInterfaces/nic", SET_NETWORK, None),
    ("GET", f"{SETS}/gpua/virtualMachines/0/networkInterfaces/nic/ipConfigurations", SET_NETWORK, None),
    ("GET", f"{GROUP}/Microsoft.Network/networkInterfaces", NETWORK, None),
    ("GET", f"{GROUP}/Microsoft.Network/virtualNetworks", NETWORK, None),
    ("GET", f"{GROUP}/Microsoft.Network/virtualNetworks/cluster-a", NETWORK, None),
    ("GET", f"{GROUP}/Microsoft.Network/virtualNetworks/cluster-a/subnets", NETWORK, None),
    ("GET", f"{GROUP}/Microsoft.Network/virtualNetworks/cluster-a/subnets/nodes", NETWORK, None),
    ("PATCH", f"{SETS}/gpua", COMPUTE, {"sku": {"capacity": 3}}),
    ("POST", f"{SETS}/gpua/virtualMachines/0/runCommand", COMPUTE, {"commandId": "RunShellScript", "script": ["true"]}),
    ("POST", f"{SETS}/gpua/manualupgrade", COMPUTE, {"instanceIds": ["0"]}),
    ("POST", f"{SETS}/gpua/reimage", COMPUTE, {"instanceIds": ["0"]}),
    ("POST", f"{SETS}/gpua/redeploy", COMPUTE, {"instanceIds": ["0"]}),
    ("POST", f"{SETS}/gpua/restart", COMPUTE, {"instanceIds": ["0"]}),
    ("POST", f"{SETS}/gpua/poweroff", COMPUTE, {"instanceIds": ["0"]}),
    ("POST", f"{SETS}/gpua/start", COMPUTE, {"instanceIds": ["0"]}),
    ("POST", f"{SETS}/gpua/deallocate", COMPUTE, {"instanceIds": ["0"]}),
    ("POST", f"{SETS}/gpua/delete", COMPUTE, {"instanceIds": ["2"]}),
    ("POST", f"{SETS}/gpua/virtualMachines/1/reimage", COMPUTE, {}),
    ("POST", f"{SETS}/gpua/virtualMachines/1/restart", COMPUTE, None),
    ("DELETE", f"{SETS}/gpua/virtualMachines/1", COMPUTE, None),
    ("POST", f"{SETS}/cpub/restart", COMPUTE, {}),
    ("POST", f"{SETS}/gpua/setOrchestrationServiceState", COMPUTE, {"serviceName": "AutomaticRepairs", "action": "Suspend"}),
    ("POST", f"{SETS}/gpua/virtualMachines/0/redeploy", COMPUTE, None),
    ("POST", f"{SETS}/gpua/virtualMachines/0/poweroff", COMPUTE, None),
    ("POST", f"{SETS}/gpua/virtualMachines/0/start", COMPUTE, None),
    ("POST", f"{SETS}/gpua/virtualMachines/0/deallocate", COMPUTE, None),
    ("GET", MACHINE, COMPUTE, None),
    ("GET", f"{MACHINE}?$expand=instanceView", COMPUTE, None),
    ("GET", f"{MACHINE}/instanceView", COMPUTE, None),
    ("PATCH", MACHINE, COMPUTE, {"tags": {"a": "b"}}),
    ("POST", f"{MACHINE}/restart", COMPUTE, None),
    ("POST", f"{MACHINE}/redeploy", COMPUTE, None),
    ("POST", f"{MACHINE}/reimage", COMPUTE, {}),
    ("POST", f"{MACHINE}/powerOff", COMPUTE, None),
    ("POST", f"{MACHINE}/start", COMPUTE, None),
    ("POST", f"{MACHINE}/deallocate", COMPUTE, None),
    ("GET", NIC, NETWORK, None),
    ("DELETE", MACHINE, COMPUTE, None),
    ("GET", f"{SETS}/absent", COMPUTE, None),
    ("PATCH", f"{SETS}/gpua", COMPUTE, {"sku": {"capacity": 101}}),
]


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[t.Any]:
    with running(tmp_path_factory.mktemp("azure")) as found:
        yield found


def exchange(azure: t.Any, method: str, path: str, version: str, body: dict[str, t.Any] | None) -> dict[str, t.Any]:
    """One request over HTTP, as the validator wants to see it."""
    path = path.replace("{machine}", azure.machine)
    joined = f"{path}{'&' if '?' in path else '?'}api-version={version}".replace("$", "%24")
    headers = {"Authorization": f"Bearer {azure.token()}", "Content-Type": "application/json"}
    content = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(azure.url + joined, method=method, headers=headers, data=content)
    context = ssl.create_default_context(cafile=azure.authority_file)
    try:
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            status, text, said = answer.status, answer.read(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        status, text, said = error.code, error.read(), dict(error.headers)
    asked: dict[str, t.Any] = {
        "url": f"https://management.azure.com{joined}",
        "method": method,
        "headers": {"Content-Type": "application/json"},
    }
    if body is not None:
        asked["body"] = body
    given: dict[str, t.Any] = {"statusCode": str(status), "headers": said}
    if text:
        given["body"] = json.loads(text)
    return {"request": asked, "response": given}


@pytest.fixture(scope="module")
def judged(azure: t.Any, validate: t.Any) -> list[tuple[dict[str, t.Any], dict[str, t.Any]]]:
    """Every exchange with its result, and at the end one that was spoiled; the validator takes long to start, so all go at once."""
    written: list[dict[str, t.Any]] = []
    for path, version in WRITTEN_BACK:
        read = exchange(azure, "GET", path, version, None)
        written.append(exchange(azure, "PUT", path, version, read["response"]["body"]))
    exchanges = [*written, *(exchange(azure, *request) for request in REQUESTS)]
    spoiled = json.loads(json.dumps(exchanges[len(written) + 2]))
    spoiled["response"]["body"]["sku"]["capacity"] = "many"
    results = validate([*exchanges, spoiled])
    return list(zip([*exchanges, spoiled], results, strict=True))


def test_every_answer_is_as_described(judged: list[tuple[dict[str, t.Any], dict[str, t.Any]]]) -> None:
    wrong = [
        f"{asked['request']['method']} {asked['request']['url']} ({result['operation']}): {issue['code']} {issue['message']} {issue['path']}"
        for asked, result in judged[:-1]
        for issue in result["issues"]
        if not (asked["request"]["method"] == "PUT" and issue["code"] == SENT_BACK)
    ]
    assert not wrong, "\n".join(wrong)
    assert all(result["operation"] for _asked, result in judged), "an address that the description does not know"


def test_the_validator_notices_a_wrong_answer(judged: list[tuple[dict[str, t.Any], dict[str, t.Any]]]) -> None:
    assert "INVALID_TYPE" in {issue["code"] for issue in judged[-1][1]["issues"]}
