# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cache: what it spares, what makes it another one, and when an old fleet is better than none."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import time
import typing as t

import pytest

ROOT = pathlib.Path(__file__).parents[4]
PROGRAM = pathlib.Path(sys.executable).parent / "ansible-inventory"
# A fault that only counts.
COUNTED = {"latency": 0.001, "times": 10**6}


@pytest.fixture
def options(inventory: t.Any) -> dict[str, t.Any]:
    (inventory.folder / "cache").mkdir()
    return {
        "scale_sets": ["cpub"],
        "cache": True,
        "cache_plugin": "ansible.builtin.jsonfile",
        "cache_connection": str(inventory.folder / "cache"),
    }


def files(inventory: t.Any) -> list[pathlib.Path]:
    return sorted((inventory.folder / "cache").iterdir())


def age(inventory: t.Any, seconds: float) -> None:
    """Make what the cache holds older."""
    for file in files(inventory):
        # Ansible wraps what it keeps, and what this keeps is one text.
        wrapped = json.loads(file.read_text(encoding="utf-8"))
        document = json.loads(json.loads(wrapped["__payload__"]))
        document["read_at"] -= seconds
        file.write_text(json.dumps({**wrapped, "__payload__": json.dumps(json.dumps(document))}), encoding="utf-8")
        os.utime(file, (time.time() - seconds, time.time() - seconds))


def test_a_run_within_the_cache_s_time_asks_nothing(inventory: t.Any, options: dict[str, t.Any], fault: t.Any) -> None:
    met = fault(**COUNTED)
    first = inventory(**options)
    asked, tokens = met.seen, len(inventory.azure.tokens._given)
    assert asked > 0
    again = inventory(**options)
    assert again.stdout == first.stdout and again.hosts and "azure_vmss_stale" not in again.hosts["cpub000000"]
    assert (met.seen, len(inventory.azure.tokens._given)) == (asked, tokens)


@pytest.mark.parametrize("arguments", [("--list", "--flush-cache"), ("--list",)])
def test_a_refresh_asks_and_renews(inventory: t.Any, options: dict[str, t.Any], fault: t.Any, arguments: tuple[str, ...]) -> None:
    met = fault(**COUNTED)
    inventory(**options)
    age(inventory, 60)
    before, asked = files(inventory)[0].read_text(encoding="utf-8"), met.seen
    assert inventory(*arguments, **options, refresh="--flush-cache" not in arguments).hosts
    assert met.seen == 2 * asked and files(inventory)[0].read_text(encoding="utf-8") != before


def test_what_is_too_old_is_asked_again(inventory: t.Any, options: dict[str, t.Any], fault: t.Any) -> None:
    met = fault(**COUNTED)
    inventory(**options)
    asked = met.seen
    age(inventory, 3601)
    inventory(**options)
    assert met.seen == 2 * asked


def test_another_scope_is_another_key(inventory: t.Any, options: dict[str, t.Any]) -> None:
    inventory(**options)
    assert set(inventory(**{**options, "scale_sets": ["gpua"]}).hosts) == {"gpua000000", "gpua000001"}
    assert len(files(inventory)) == 2


def test_what_is_made_of_the_answer_is_not(inventory: t.Any, options: dict[str, t.Any], fault: t.Any) -> None:
    met = fault(**COUNTED)
    inventory(**options)
    asked = met.seen
    changed = {"hostname": "instance_name", "compose": {"x": "1"}, "parallel": 2, "exclude": ["false"], "states": ["running", "stopped"]}
    assert inventory(**options, **changed).hosts
    assert met.seen == asked


@pytest.mark.parametrize("wrong", ['{"__payload__": "[]"}', "half a docum", "[]"])
def test_what_another_version_or_a_crash_left_is_ignored(inventory: t.Any, options: dict[str, t.Any], wrong: str) -> None:
    expected = inventory(**options).hosts
    files(inventory)[0].write_text(wrong, encoding="utf-8")
    answer = inventory(**options)
    assert answer.hosts == expected and "Traceback" not in answer.stderr
    assert inventory(**options).hosts == expected


def test_no_secret_is_in_the_cache(inventory: t.Any, options: dict[str, t.Any]) -> None:
    inventory(**options)
    (file,) = files(inventory)
    assert not any(secret in file.name + file.read_text(encoding="utf-8") for secret in inventory.secrets)


def test_two_runs_at_once_do_not_harm_each_other(inventory: t.Any, options: dict[str, t.Any]) -> None:
    """And a third that reads all the while what they write."""
    expected = inventory(**options).stdout
    environment = {"PATH": os.environ["PATH"], "HOME": str(inventory.folder), "ANSIBLE_NOCOLOR": "1"}
    argv = [str(PROGRAM), "-i", str(inventory.folder / "azure_vmss.yml"), "--list"]
    runs = [
        subprocess.Popen([*argv, *more], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for more in (["--flush-cache"], ["--flush-cache"])
    ]
    while any(run.poll() is None for run in runs):
        assert inventory(**options).stdout == expected
    for run in runs:
        stdout, stderr = run.communicate(timeout=60)
        assert (run.returncode, stdout) == (0, expected), stderr
    assert inventory(**options).stdout == expected


# An old fleet in place of none


@pytest.mark.parametrize("answer", [{"status": 403}, {"answer": "null_list"}])
def test_a_part_of_an_answer(inventory: t.Any, options: dict[str, t.Any], fault: t.Any, answer: dict[str, t.Any]) -> None:
    expected = inventory(**options).hosts
    age(inventory, 4000)
    fault(path="expand=instanceView", times=100, **answer)
    refused = inventory(**options)
    assert refused.status != 0 and "_meta" not in refused.stdout
    allowed = inventory(**options, on_incomplete="use_cache")
    hosts = allowed.hosts
    assert all(host.pop("azure_vmss_stale").startswith("20") for host in hosts.values())
    assert hosts == expected
    assert "THE FLEET OF 20" in allowed.stderr and "67 minutes old, because Azure gives no whole answer" in allowed.stderr
    # The other option is about another failure.
    assert inventory(**options, cache_on_failure=True).status != 0


def test_no_answer(inventory: t.Any, options: dict[str, t.Any], fault: t.Any) -> None:
    expected = inventory(**options).hosts
    age(inventory, 4000)
    fault(path="/virtualMachineScaleSets", times=100, answer="cut")
    assert inventory(**options, on_incomplete="use_cache").status != 0
    allowed = inventory(**options, cache_on_failure=True)
    assert set(allowed.hosts) == set(expected) and "THE FLEET OF 20" in allowed.stderr


def test_a_fleet_that_is_too_old_is_none(inventory: t.Any, options: dict[str, t.Any], fault: t.Any) -> None:
    inventory(**options)
    age(inventory, 4000)
    fault(path="expand=instanceView", times=100, status=403)
    answer = inventory(**options, on_incomplete="use_cache", stale_limit=3900)
    assert answer.status != 0 and "the cache holds no fleet younger than 3900 s (stale_limit)" in answer.stderr
    assert "AuthorizationFailed" in answer.stderr


def test_a_login_that_is_refused_is_no_reason_for_an_old_fleet(inventory: t.Any, options: dict[str, t.Any]) -> None:
    inventory(**options)
    age(inventory, 4000)
    variables = {**inventory.azure.environment, "AZURE_CLIENT_SECRET": inventory.azure.principal.expired_secret}
    answer = inventory(variables=variables, **options, on_incomplete="use_cache", cache_on_failure=True)
    assert answer.status != 0 and "AADSTS7000222" in answer.stderr and "THE FLEET" not in answer.stderr


@pytest.mark.parametrize(("option", "value"), [("on_incomplete", "use_cache"), ("cache_on_failure", True)])
def test_an_old_fleet_needs_a_cache(inventory: t.Any, option: str, value: t.Any) -> None:
    answer = inventory(**{option: value})
    assert answer.status != 0 and f"{option}: {str(value).lower()} needs a cache; set cache: true" in answer.stderr
