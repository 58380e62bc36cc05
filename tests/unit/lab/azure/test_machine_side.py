# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine is told: scheduled events, attested documents, wireserver, and IMDS gone wrong. Driven over HTTP."""

from __future__ import annotations

import asyncio
import base64
import pathlib
import typing as t
import xml.etree.ElementTree as ElementTree

import pytest
from aiohttp.test_utils import TestClient, TestServer
from cryptography.hazmat.primitives.serialization import pkcs7

from lab import description, fleet
from lab.azure.certificates import signer, write_authority
from lab.azure.faults import Faults
from lab.azure.imds import Imds
from lab.azure.tokens import Tokens
from lab.azure.wireserver import Wireserver
from lab.current import Current

HEADERS = {"Metadata": "true"}
EVENTS = "/metadata/scheduledevents?api-version=2020-07-01"
ADDRESSES = "/metadata/instance/network/interface/0/ipv4/ipAddress?api-version=2021-02-01"
DESCRIPTION = {
    "vnets": [{"name": "cluster", "address_space": "10.1.0.0/16", "subnets": [{"name": "nodes", "prefix": "10.1.0.0/20"}]}],
    "scale_sets": [
        {"name": name, "sku": size, "vnet": "cluster", "subnet": "nodes", "instances": 2, "ip_configurations": 3}
        for name, size in (("gpus", "Standard_ND96isr_H100_v5"), ("cpus", "Standard_D8s_v5"))
    ],
}


class Machines:
    """IMDS and wireserver, asked as any machine."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.current = Current(fleet.build(description.parse(DESCRIPTION), prefix="t", public_key=""))
        self.faults = Faults()
        self.address = "10.1.0.4"
        write_authority(directory)
        self.imds = Imds(
            self.current,
            Tokens(),
            address_of=lambda _request: self.address,
            clock=iter(range(1_000_000)).__next__,
            active=self.faults,
            attest=signer(directory),
        )
        self.wireserver = Wireserver(self.current, address_of=lambda _request: self.address)


def run(tmp_path: pathlib.Path, scenario: t.Callable[[Machines, t.Any, t.Any], t.Coroutine[t.Any, t.Any, None]]) -> None:
    async def main() -> None:
        machines = Machines(tmp_path)
        async with (
            TestClient(TestServer(machines.imds.application())) as imds,
            TestClient(TestServer(machines.wireserver.application())) as wire,
        ):
            await scenario(machines, imds, wire)

    asyncio.run(main())


async def events(client: t.Any) -> list[dict[str, t.Any]]:
    found = await (await client.get(EVENTS, headers=HEADERS)).json()
    return t.cast("list[dict[str, t.Any]]", found["Events"])


def test_an_event_of_a_gpu_is_told_to_its_machine_alone_and_others_to_all(tmp_path: pathlib.Path) -> None:
    async def scenario(machines: Machines, imds: t.Any, _wire: t.Any) -> None:
        gpu, cpu = (machines.current.fleet.instances_of(name)[0] for name in ("gpus", "cpus"))
        machines.imds.events.schedule(gpu, "Redeploy")
        machines.imds.events.schedule(cpu, "Freeze")
        seen = {}
        for item in machines.current.fleet.instances:
            machines.address = item.primary_address
            seen[item.name] = [event["EventType"] for event in await events(imds)]
        assert seen == {"gpus_0": ["Redeploy"], "gpus_1": [], "cpus_0": ["Freeze"], "cpus_1": ["Freeze"]}

    run(tmp_path, scenario)


def test_an_approved_event_happens_and_is_gone(tmp_path: pathlib.Path) -> None:
    async def scenario(machines: Machines, imds: t.Any, _wire: t.Any) -> None:
        machines.imds.events.schedule(machines.current.fleet.instances_of("gpus")[0], "Reboot")
        identifier = (await events(imds))[0]["EventId"]
        refused = await imds.post(EVENTS, headers=HEADERS, json={"StartRequests": [{"EventId": "other"}]})
        assert refused.status == 400
        taken = await imds.post(EVENTS, headers=HEADERS, json={"StartRequests": [{"EventId": identifier}]})
        assert taken.status == 200
        for _ in range(100):
            if not await events(imds):
                break
            await asyncio.sleep(0.01)
        assert await events(imds) == []
        assert [item.boots for item in machines.current.fleet.instances_of("gpus")] == [2, 1]

    run(tmp_path, scenario)


def test_an_event_starts_when_its_time_comes_although_nobody_asks(tmp_path: pathlib.Path) -> None:
    async def scenario(machines: Machines, _imds: t.Any, _wire: t.Any) -> None:
        machines.imds.events.schedule(machines.current.fleet.instances_of("cpus")[0], "Reboot", notice=0.05)
        assert machines.current.fleet.instances_of("cpus")[0].boots == 1
        for _ in range(200):
            if machines.current.fleet.instances_of("cpus")[0].boots == 2:
                break
            await asyncio.sleep(0.01)
        assert machines.current.fleet.instances_of("cpus")[0].boots == 2

    run(tmp_path, scenario)


def test_a_terminated_machine_is_no_more(tmp_path: pathlib.Path) -> None:
    async def scenario(machines: Machines, imds: t.Any, _wire: t.Any) -> None:
        machines.imds.events.schedule(machines.current.fleet.instances_of("cpus")[1], "Terminate", notice=0)
        for _ in range(100):
            if len(machines.current.fleet.instances_of("cpus")) == 1:
                break
            await asyncio.sleep(0.01)
        assert [item.name for item in machines.current.fleet.instances_of("cpus")] == ["cpus_0"]

    run(tmp_path, scenario)


def test_an_attested_document_is_signed_and_holds_the_nonce(tmp_path: pathlib.Path) -> None:
    async def scenario(machines: Machines, imds: t.Any, _wire: t.Any) -> None:
        answer = await (await imds.get("/metadata/attested/document?api-version=2020-09-01&nonce=1234567890", headers=HEADERS)).json()
        signature = base64.b64decode(answer["signature"])
        assert pkcs7.load_der_pkcs7_certificates(signature)
        assert b'"nonce": "1234567890"' in signature
        assert machines.current.fleet.instances[0].vm_id.encode() in signature

    run(tmp_path, scenario)


@pytest.mark.parametrize(("answer", "count"), [("fewer_addresses", 2), ("no_secondaries", 1)])
def test_imds_can_forget_addresses(tmp_path: pathlib.Path, answer: str, count: int) -> None:
    async def scenario(machines: Machines, imds: t.Any, _wire: t.Any) -> None:
        machines.faults.add({"path": "/metadata/instance", "answer": answer})
        assert len(await (await imds.get(ADDRESSES, headers=HEADERS)).json()) == count
        assert len(await (await imds.get(ADDRESSES, headers=HEADERS)).json()) == 3

    run(tmp_path, scenario)


def test_user_data_is_the_instances_own_or_its_models(tmp_path: pathlib.Path) -> None:
    async def scenario(_machines: Machines, imds: t.Any, _wire: t.Any) -> None:
        answer = await imds.get("/metadata/instance/compute/userData?api-version=2021-02-01&format=text", headers=HEADERS)
        assert (answer.status, await answer.text()) == (200, "")

    run(tmp_path, scenario)


def test_the_wireserver_answers_any_address_of_the_nic_and_refuses_goal_states(tmp_path: pathlib.Path) -> None:
    async def scenario(machines: Machines, _imds: t.Any, wire: t.Any) -> None:
        machines.address = "10.1.0.6"
        answer = await wire.get("/machine/plugins?comp=nmagent&type=getinterfaceinfov1")
        interface = ElementTree.fromstring(await answer.text())[0]
        assert interface.attrib == {"MacAddress": machines.current.fleet.instances[0].mac.replace(":", "").upper(), "IsPrimary": "true"}
        assert interface[0].attrib == {"Prefix": "10.1.0.0/20"}
        addresses = [(item.attrib["Address"], item.attrib["IsPrimary"]) for item in interface[0]]
        assert addresses == [("10.1.0.4", "true"), ("10.1.0.5", "false"), ("10.1.0.6", "false")]
        assert (await wire.get("/machine?comp=goalstate")).status == 410
        machines.address = "10.9.9.9"
        assert (await wire.get("/machine/plugins?comp=nmagent&type=getinterfaceinfov1")).status == 403

    run(tmp_path, scenario)
