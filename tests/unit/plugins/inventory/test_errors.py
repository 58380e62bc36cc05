# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user can get wrong: each ends the command with one message that says what to do, and shows no secret."""

from __future__ import annotations

import secrets
import socket
import typing as t

import pytest

ELSEWHERE = "00000000-0000-4000-8000-000000000009"
WRONG = secrets.token_urlsafe(24)


def message(answer: t.Any) -> str:
    """The one thing that the plugin said; fails when the command went well, or said more than that."""
    assert answer.status != 0, answer.stdout
    lines = [line for line in answer.stderr.splitlines() if line.startswith("azure_vmss: ")]
    assert len(set(lines)) == 1, answer.stderr
    assert answer.stderr.count("[WARNING]") == answer.stderr.count("[ERROR]") == 1, answer.stderr
    assert "Traceback" not in answer.stderr and "_meta" not in answer.stdout
    return str(lines[0])


@pytest.fixture
def refusing() -> t.Iterator[str]:
    """The address of a port on which nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"https://127.0.0.1:{bound.getsockname()[1]}"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"subscription_ids": [ELSEWHERE]}, ("SubscriptionNotFound", "correct subscription_ids (AZURE_SUBSCRIPTION_ID)")),
        ({"scale_sets": ["gpuaa"]}, ("there is no scale set gpuaa", "correct scale_sets (did you mean gpua?)")),
        ({"scale_sets": ["nothing*"]}, ("no host: 0 instances are in scope", "correct resource_groups, scale_sets and scale_set_tags")),
        (
            {"resource_groups": ["gpufleet-lob"]},
            (
                "there is no resource group gpufleet-lob",
                "correct resource_groups (no resource group is found there; this identity may lack the right to read it)",
            ),
        ),
        (
            {"resource_groups": ["nothing*"]},
            ("no host: 0 instances are in scope", "correct resource_groups, scale_sets and scale_set_tags"),
        ),
        (
            {"hostname": "scale_set", "scale_sets": ["gpua"]},
            ("host name gpua belongs to two instances", "gpua/virtualMachines/0", "set `hostname`"),
        ),
        ({"hostname": "nowhere", "scale_sets": ["gpua"]}, ("hostname: 'nowhere' cannot be evaluated", "nowhere")),
        (
            {"states": ["deallocated"], "scale_sets": ["gpua"]},
            ("no host: 2 instances are in scope and none is kept", "2 running", "allow_empty: true"),
        ),
        ({"include": ["nowhere"], "scale_sets": ["cpub"]}, ("include: 'nowhere' cannot be evaluated for /subscriptions/", "correct it")),
        ({"exclude": ["vmss_tags.absent == 'x'"], "scale_sets": ["cpub"]}, ("exclude: ", "cannot be evaluated for")),
        ({"parallel": 0}, ("parallel: 0 is not a number of calls",)),
        ({"subscription_id": ELSEWHERE}, ("there is no option subscription_id; did you mean subscription_ids?",)),
        ({"xyzzy": 1}, ("there is no option xyzzy", "ansible-doc -t inventory")),
        ({"env_file": "absent.env"}, ("env_file absent.env does not exist", "gpufleet lab up")),
        ({"scale_sets": ["{{ nowhere }}"]}, ("an option's template fails", "nowhere")),
        ({"client_secret": WRONG}, ("AADSTS7000215", "put the secret's value (not its id) in AZURE_CLIENT_SECRET")),
        ({"tenant_id": ELSEWHERE}, (f"it does not know tenant {ELSEWHERE}", "correct tenant_id")),
        ({"client_id": ELSEWHERE}, (f"has no application {ELSEWHERE}", "correct client_id")),
        ({"arm_endpoint": "http://127.0.0.1"}, ("is not an https address",)),
        ({"ca_file": "/nowhere/ca.pem"}, ("ca_file",)),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_an_option_that_is_wrong(inventory: t.Any, options: dict[str, t.Any], said: tuple[str, ...]) -> None:
    inventory.secrets.add(WRONG)
    text = message(inventory(**options))
    assert text.startswith(f"azure_vmss: {inventory.folder}/azure_vmss.yml: ")
    for part in said:
        assert part in text, text


def test_a_value_that_is_no_choice(inventory: t.Any) -> None:
    """Ansible itself says this one."""
    answer = inventory(states=["runing"])
    assert answer.status != 0 and "Valid values are: running, starting" in answer.stderr


def test_an_expired_secret(inventory: t.Any) -> None:
    environment = {**inventory.azure.environment, "AZURE_CLIENT_SECRET": inventory.azure.principal.expired_secret}
    text = message(inventory(variables=environment))
    assert "AADSTS7000222" in text and "az ad app credential reset" in text


def test_no_subscription(inventory: t.Any) -> None:
    environment = {key: value for key, value in inventory.azure.environment.items() if key != "AZURE_SUBSCRIPTION_ID"}
    assert "no subscription is named; set subscription_ids, or AZURE_SUBSCRIPTION_ID" in message(inventory(variables=environment))


def test_a_line_of_env_file_that_is_no_assignment_is_named_by_number_only(inventory: t.Any) -> None:
    environment = {"AZURE_CLIENT_SECRET": f"{WRONG} {WRONG}"}
    inventory.secrets.add(WRONG)
    assert "line 1 is not NAME=VALUE" in message(inventory(variables=environment))


def test_a_certificate_authority_that_is_not_trusted(inventory: t.Any) -> None:
    environment = {key: value for key, value in inventory.azure.environment.items() if key != "GPUFLEET_CA_FILE"}
    text = message(inventory(variables=environment))
    assert "its certificate is not trusted; set ca_file to the certificate authority of this cloud" in text


def test_an_arm_that_does_not_answer(inventory: t.Any, refusing: str) -> None:
    # The login service is asked for a token of the audience that it knows, so that ARM alone is away.
    text = message(inventory(arm_endpoint=refusing, audience=inventory.azure.environment["GPUFLEET_ARM_ENDPOINT"]))
    assert f"ARM at {refusing} cannot be read: connection refused; check the address, the network and any proxy" in text


def test_a_login_service_that_does_not_answer(inventory: t.Any, refusing: str) -> None:
    text = message(inventory(authority=refusing))
    assert f"logging in at {refusing} failed: connection refused; check the address, the network and any proxy" in text
    assert "secret" not in text


def test_an_answer_that_is_not_whole_is_no_smaller_fleet(inventory: t.Any) -> None:
    # One set of two cannot be read.
    inventory.azure.faults.add({"path": "/gpua/virtualMachines", "status": 403, "times": 100})
    try:
        text = message(inventory(scale_sets=["gpua", "cpub"]))
    finally:
        inventory.azure.faults.clear()
    assert "403" in text and "gpua/virtualMachines" in text and "role Reader" in text


@pytest.mark.parametrize("options", [{}, {"client_secret": WRONG}])
def test_the_loudest_output_shows_no_secret(inventory: t.Any, options: dict[str, str]) -> None:
    inventory.secrets.add(WRONG)
    answer = inventory("--list", "-vvvvv", scale_sets=["gpua"], **options)
    assert (answer.status != 0) == bool(options)
    assert "azure_vmss" in answer.stdout + answer.stderr
