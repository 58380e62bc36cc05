# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs on every Azure machine, cloud-init and Azure's agent, reads the lab's IMDS and wireserver with its own parsers."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import socket
import subprocess
import threading
import typing as t

import pytest
from aiohttp import web

from lab import description, fleet
from lab.azure.imds import Imds
from lab.azure.tokens import Tokens
from lab.azure.wireserver import Wireserver
from lab.current import Current

ROOT = pathlib.Path(__file__).resolve().parents[2]
CLOUD_INIT = """
import json, sys
from cloudinit.sources import DataSourceAzure as azure
azure.IMDS_URL = sys.argv[1] + "/metadata"
from cloudinit import url_helper
text = url_helper.readurl(sys.argv[1] + "/metadata/instance?api-version=2021-08-01&extended=true", headers={"Metadata": "true"})
document = json.loads(str(text))
network = azure.generate_network_config_from_instance_network_metadata(document["network"])
print(json.dumps({
    "network": network,
    "keys": [key["keyData"] for key in document["compute"]["publicKeys"]],
    "hostname": azure._hostname_from_imds(document),
    "username": azure._username_from_imds(document),
    "password": azure._disable_password_from_imds(document),
}))
"""
AGENT = """
import json, sys
from azurelinuxagent.common.protocol import imds, wire
imds.IMDS_ENDPOINT = sys.argv[1].removeprefix("http://")
client = imds.ImdsClient(sys.argv[1].removeprefix("http://"))
healthy, problem = client.validate()
compute = client.get_compute()
from azurelinuxagent.common.utils import restutil
versions = wire.VersionInfo(restutil.http_get(sys.argv[2] + "/?comp=versions", use_proxy=False).read().decode())
print(json.dumps({
    "healthy": healthy, "problem": problem, "name": compute.name, "vmId": compute.vmId, "vmSize": compute.vmSize,
    "scaleSet": compute.vmScaleSetName, "zone": compute.zone, "preferred": versions.get_preferred(), "supported": versions.get_supported(),
}))
"""


@pytest.fixture(scope="module")
def machine() -> tuple[fleet.Instance, list[str]]:
    """One machine of the demo's GPU set, with the addresses at which its IMDS and wireserver are served."""
    built = fleet.build(description.load(ROOT / "lab" / "fleets" / "demo.yml"), prefix="t", public_key="ssh-ed25519 AAAA t")
    item = built.instances_of("gpua")[0]
    urls: list[str] = []
    started, loops = threading.Event(), []

    async def serve() -> None:
        current = Current(built)
        for app in (
            Imds(current, Tokens(), address_of=lambda _request: item.primary_address).application(),
            Wireserver(current, address_of=lambda _request: item.primary_address).application(),
        ):
            sock = socket.create_server(("127.0.0.1", 0))
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            await web.SockSite(runner, sock).start()
            urls.append(f"http://127.0.0.1:{sock.getsockname()[1]}")
        loops.append(asyncio.get_running_loop())
        started.set()
        await asyncio.Event().wait()

    threading.Thread(target=lambda: asyncio.run(serve()), daemon=True).start()
    assert started.wait(30)
    return item, urls


def ask(program: pathlib.Path, modules: pathlib.Path, script: str, *arguments: str) -> t.Any:
    done = subprocess.run(
        [str(program / "python"), "-W", "ignore", "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": str(modules)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if "No module named 'crypt'" in done.stderr:
        pytest.skip("this cloud-init is older than this Python")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_cloud_init_configures_the_nic_with_all_its_addresses(machine: t.Any, environment: t.Any, debian_package: t.Any) -> None:
    item, urls = machine
    modules = debian_package("cloud-init")
    program = environment("cloud-init", ["configobj", "jinja2", "jsonpatch", "jsonschema", "oauthlib", "pyyaml", "requests"])
    found = ask(program, modules, CLOUD_INIT, urls[0])
    interface = found["network"]["ethernets"]["eth0"]
    assert interface["match"] == {"macaddress": item.mac}
    assert interface["dhcp4"] is True
    assert interface["addresses"] == [f"{address}/20" for address in item.secondary_addresses]
    assert found["keys"] == ["ssh-ed25519 AAAA t"]
    assert (found["hostname"], found["username"], found["password"]) == (item.computer_name, "azureuser", True)


def test_azures_agent_takes_imds_for_healthy_and_the_wireserver_for_its_own(
    machine: t.Any, environment: t.Any, debian_package: t.Any
) -> None:
    item, urls = machine
    found = ask(environment("waagent", ["distro"]), debian_package("waagent"), AGENT, *urls)
    assert (found["healthy"], found["problem"]) == (True, "")
    assert (found["name"], found["vmId"], found["scaleSet"], found["zone"]) == (item.name, item.vm_id, "gpua", "1")
    assert found["vmSize"] == "Standard_ND96isr_H100_v5"
    assert "2012-11-30" in found["supported"]
