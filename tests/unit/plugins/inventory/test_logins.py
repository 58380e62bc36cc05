# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every way to log in, by Azure's own library against the lab, and several at once."""

from __future__ import annotations

import asyncio
import datetime
import json
import pathlib
import socket
import threading
import time
import typing as t

import jwt
import pytest
import served_azure
import yaml
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from lab.azure.assertions import EXCHANGE_AUDIENCE, Certificate, Federation
from lab.azure.imds import Imds
from lab.current import Current

ISSUER, SUBJECT = "https://issuer.invalid", "system:serviceaccount:fleet:inventory"

Key = rsa.RSAPrivateKey


@pytest.fixture(scope="module")
def key() -> Key:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def public(key: Key) -> str:
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()


def certificate(key: Key, path: pathlib.Path, password: bytes | None = None) -> pathlib.Path:
    """A file with certificate and key, as `az ad sp create-for-rbac --create-cert` writes one."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "inventory")])
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + datetime.timedelta(days=1))
    locked = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    path.write_bytes(private + made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    return path


def without_secret(inventory: t.Any) -> dict[str, str]:
    return {
        name: value for name, value in inventory.azure.environment.items() if name not in ("AZURE_CLIENT_SECRET", "GPUFLEET_AZURE_AUTH")
    }


@pytest.fixture
def trusted(azure: t.Any) -> t.Iterator[list[t.Any]]:
    yield azure.principal.trusted
    azure.principal.trusted.clear()


@pytest.mark.parametrize("password", [None, b"correct horse"])
def test_a_certificate(inventory: t.Any, trusted: list[t.Any], key: Key, password: bytes | None) -> None:
    trusted.append(Certificate(public_key=public(key)))
    file = certificate(key, inventory.folder / "client.pem", password)
    more = {"certificate_password": password.decode()} if password else {}
    inventory.secrets |= set(more.values())
    answer = inventory("--list", "-vvvv", variables=without_secret(inventory), certificate_path=str(file), scale_sets=["cpub"], **more)
    assert "cpub000000" in answer.stdout, answer.stderr


def test_a_certificate_that_the_application_does_not_have(inventory: t.Any, trusted: list[t.Any], key: Key) -> None:
    file = certificate(rsa.generate_private_key(public_exponent=65537, key_size=2048), inventory.folder / "client.pem")
    trusted.append(Certificate(public_key=public(key)))
    answer = inventory(variables=without_secret(inventory), certificate_path=str(file))
    assert answer.status != 0 and "AADSTS700027" in answer.stderr and "correct certificate_path" in answer.stderr


def test_a_certificate_file_that_is_none(inventory: t.Any) -> None:
    (inventory.folder / "client.pem").write_text("nothing", encoding="utf-8")
    answer = inventory(variables=without_secret(inventory), auth="environment", certificate_path=str(inventory.folder / "client.pem"))
    assert answer.status != 0 and "it must be PEM or PKCS12 with its private key" in answer.stderr


def federated(key: Key, *, lasts: int = 600) -> str:
    claims = {"iss": ISSUER, "sub": SUBJECT, "aud": EXCHANGE_AUDIENCE, "exp": int(time.time()) + lasts}
    return jwt.encode(claims, key, algorithm="RS256")


@pytest.mark.parametrize("auth", ["auto", "workload"])
def test_a_workload_identity(inventory: t.Any, trusted: list[t.Any], key: Key, auth: str) -> None:
    trusted.append(Federation(issuer=ISSUER, subject=SUBJECT, public_key=public(key)))
    (inventory.folder / "token").write_text(federated(key), encoding="utf-8")
    file = {"AZURE_FEDERATED_TOKEN_FILE": str(inventory.folder / "token")}
    assert inventory(variables={**without_secret(inventory), **file}, auth=auth, scale_sets=["cpub"]).hosts


def test_a_workload_identity_whose_token_has_expired(inventory: t.Any, trusted: list[t.Any], key: Key) -> None:
    trusted.append(Federation(issuer=ISSUER, subject=SUBJECT, public_key=public(key)))
    file = inventory.folder / "token"
    file.write_text(federated(key, lasts=-60), encoding="utf-8")
    answer = inventory(variables=without_secret(inventory), auth="workload", federated_token_file=str(file))
    assert answer.status != 0 and "AADSTS700024" in answer.stderr and f"check that {file} is renewed" in answer.stderr


def test_the_azure_cli(inventory: t.Any) -> None:
    """A program in its place, which is told what it must be told and says what it says."""
    endpoint = inventory.azure.environment["GPUFLEET_ARM_ENDPOINT"]
    token = inventory.azure.tokens.issue(endpoint, "user").value
    said = {"accessToken": token, "expires_on": int(time.time()) + 3600, "tokenType": "Bearer"}
    folder = inventory.folder / "bin"
    folder.mkdir()
    program = folder / "az"
    program.write_text(
        f"#!/bin/sh\ncase \"$*\" in *'get-access-token --output json --resource {endpoint} --tenant '*) ;; *) exit 2;; esac\n"
        f"cat <<'EOF'\n{json.dumps(said)}\nEOF\n",
        encoding="utf-8",
    )
    program.chmod(0o700)
    shell = {"PATH": f"{folder}:/usr/bin:/bin"}
    assert inventory(variables=without_secret(inventory), shell=shell, auth="cli", scale_sets=["cpub"]).hosts


@pytest.fixture
def metadata(azure: t.Any, current: Current) -> t.Iterator[str]:
    """IMDS as the first machine of the lab sees it."""
    address = current.fleet.instances[0].primary_address
    app = Imds(current, azure.tokens, address_of=lambda _request: address).application()
    sock = socket.create_server(("127.0.0.1", 0))
    loop = asyncio.new_event_loop()
    runner = web.AppRunner(app, shutdown_timeout=1.0)

    async def start() -> None:
        await runner.setup()
        await web.SockSite(runner, sock).start()

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(start(), loop).result(10)
    yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


@pytest.mark.parametrize("auth", ["auto", "managed"])
def test_a_managed_identity(inventory: t.Any, metadata: str, auth: str) -> None:
    variables = {name: value for name, value in without_secret(inventory).items() if name != "AZURE_CLIENT_ID"}
    shell = {"AZURE_POD_IDENTITY_AUTHORITY_HOST": metadata}
    assert inventory(variables=variables, shell=shell, auth=auth, scale_sets=["cpub"]).hosts


@pytest.mark.parametrize(("auth", "missing"), [("workload", "federated_token_file"), ("environment", "needs a secret or a certificate")])
def test_a_named_way_that_lacks_something(inventory: t.Any, auth: str, missing: str) -> None:
    answer = inventory(variables=without_secret(inventory), auth=auth)
    assert answer.status != 0 and f"auth: {auth} needs" in answer.stderr and missing in answer.stderr


# Several logins


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[served_azure.Azure]:
    """Another Azure: other tenant, application, subscription and authority, one scale set of the same names as the first has."""
    folder = tmp_path_factory.mktemp("second")
    document = {
        "subscription": "5ab00000-0000-4000-8000-000000000002",
        "tenant": "7e4a0000-0000-4000-8000-000000000002",
        "vnets": [{"name": "far", "address_space": "10.9.0.0/16", "subnets": [{"name": "nodes", "prefix": "10.9.0.0/20"}]}],
        "scale_sets": [
            {
                "name": "far",
                "kind": "stub",
                "sku": "Standard_D8s_v5",
                "vnet": "far",
                "subnet": "nodes",
                "instances": 2,
                "ip_configurations": 2,
            }
        ],
    }
    file = folder / "fleet.yml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    with served_azure.running(folder, file) as azure:
        yield azure


def entry(azure: served_azure.Azure) -> dict[str, t.Any]:
    known = azure.service.environment
    return {
        "subscription_ids": [azure.subscription],
        "tenant_id": known["AZURE_TENANT_ID"],
        "client_id": known["AZURE_CLIENT_ID"],
        "client_secret": known["AZURE_CLIENT_SECRET"],
        "arm_endpoint": azure.url,
        "authority": azure.url,
        "ca_file": azure.authority_file,
    }


def test_two_subscriptions_with_logins_and_clouds_of_their_own(inventory: t.Any, second: served_azure.Azure) -> None:
    inventory.secrets.add(second.service.principal.secret)
    answer = inventory("--list", scale_sets=["cpub", "far"], logins=[entry(second)])
    assert set(answer.hosts) == {"cpub000000", "far000000", "far000001"}
    assert {host["subscription_id"] for host in answer.hosts.values()} == {
        second.subscription,
        inventory.azure.environment["AZURE_SUBSCRIPTION_ID"],
    }


def test_a_login_in_a_file_of_its_own(inventory: t.Any, second: served_azure.Azure) -> None:
    inventory.secrets.add(second.service.principal.secret)
    text = "".join(f"{name}={value}\n" for name, value in second.service.environment.items())
    (inventory.folder / "second.env").write_text(text, encoding="utf-8")
    variables = {name: value for name, value in inventory.azure.environment.items() if name != "AZURE_SUBSCRIPTION_ID"}
    assert set(inventory(variables=variables, logins=[{"env_file": "second.env"}]).hosts) == {"far000000", "far000001"}


def test_one_login_of_two_that_fails_is_no_smaller_fleet(inventory: t.Any, second: served_azure.Azure) -> None:
    inventory.secrets |= {second.service.principal.secret, second.service.principal.expired_secret}
    wrong = {**entry(second), "client_secret": second.service.principal.expired_secret}
    answer = inventory("--list", "-vvvv", scale_sets=["cpub", "far"], logins=[wrong])
    assert answer.status != 0 and "AADSTS7000222" in answer.stderr and second.url in answer.stderr


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"subscription_ids": None}, "logins, entry 1: no subscription is named"),
        (
            {"subscription_ids": ["5ab00000-0000-4000-8000-000000000001"]},
            "subscription 5ab00000-0000-4000-8000-000000000001 is named twice",
        ),
        ({"client_sceret": "x"}, "logins, entry 1: there is no option client_sceret; did you mean client_secret?"),
        ({"auth": "password"}, "logins, entry 1: auth: password is not known; choose one of auto, environment, workload, managed, cli"),
        ({"env_file": "absent.env"}, "env_file absent.env does not exist"),
        # The first application's secret is not tried for another one.
        ({"client_secret": None, "auth": "environment"}, "auth: environment needs a secret or a certificate"),
    ],
)
def test_an_entry_that_is_wrong(inventory: t.Any, second: served_azure.Azure, changed: dict[str, t.Any], said: str) -> None:
    inventory.secrets.add(second.service.principal.secret)
    answer = inventory(logins=[{**entry(second), **changed}])
    assert answer.status != 0 and said in answer.stderr, answer.stderr
