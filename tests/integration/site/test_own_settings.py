# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What users bring themselves: handlers, roles, templates, secrets, module options with a reboot."""

from __future__ import annotations

import json
import os
import pathlib
import pty
import select
import subprocess
import sys
import time
import typing as t

import pytest

from lab.paths import ROOT

SECRET = "hunter2-of-the-fleet"
LIMIT_SECONDS = 120


def write(path: pathlib.Path, text: str) -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def variables(tmp_path: pathlib.Path) -> t.Callable[[dict[str, t.Any]], str]:
    """Extra variables as a file, so that types are kept; returns the argument for ``-e``."""

    def make(values: dict[str, t.Any]) -> str:
        return f"@{write(tmp_path / 'variables.json', json.dumps(values))}"

    return make


HANDLERS = """
- hosts: new000000
  gather_facts: false
  tasks:
    {tasks}
  handlers:
    - name: A handler of the user
      listen: gpufleet custom changed
      ansible.builtin.debug:
        msg: heard it
"""
ROLE = HANDLERS.replace("{tasks}", "- ansible.builtin.import_role: {name: gpufleet.vmss.custom}")
FUSED = HANDLERS.replace("{tasks}", "- gpufleet.vmss.converge: {subsystems: [node_program, custom]}")


@pytest.mark.parametrize(("form", "play"), [("role", ROLE), ("fused", FUSED)])
def test_a_users_handler_hears_of_a_change_once_and_of_none_never(
    lab: t.Any, tmp_path: pathlib.Path, variables: t.Any, form: str, play: str
) -> None:
    book = write(tmp_path / "book.yml", play)
    given = variables({"custom_files": [{"path": f"/etc/example-{form}.conf", "content": "a=1\n"}]})
    first = lab.command("ansible-playbook", str(book), "-e", given)
    assert first.returncode == 0, first.stdout
    assert first.stdout.count("heard it") == 1
    second = lab.command("ansible-playbook", str(book), "-e", given)
    assert second.returncode == 0
    assert "heard it" not in second.stdout and "changed=0" in second.stdout


def test_roles_of_the_user_run_before_and_after_ours(lab: t.Any, tmp_path: pathlib.Path, variables: t.Any) -> None:
    for name in ("first_of_all", "last_of_all"):
        write(tmp_path / "roles" / name / "tasks" / "main.yml", f"- ansible.builtin.debug: {{msg: this is {name}}}\n")
    run = lab.command(
        "ansible-playbook",
        "playbooks/site.yml",
        "--check",
        "--limit=localhost,new000000",
        "-e",
        variables({"pre_roles": ["first_of_all"], "post_roles": ["last_of_all"]}),
        ANSIBLE_ROLES_PATH=str(tmp_path / "roles"),
    )
    assert run.returncode == 0, run.stdout
    places = [run.stdout.index(text) for text in ("this is first_of_all", "TASK [gpufleet.vmss.node_program", "this is last_of_all")]
    assert places == sorted(places)


def test_steps_are_asked_for_one_by_one(lab: t.Any) -> None:
    """--step asks on a terminal; here a pseudo terminal says no to all but the first task."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "GPUFLEET_LAB": lab.prefix, "ANSIBLE_NOCOLOR": "1", "TERM": "dumb"}
    command = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "playbooks/site.yml", "--step", "--limit=localhost,new000000"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=follower, stdout=follower, stderr=follower, close_fds=True)
    os.close(follower)
    seen, answered, deadline = "", 0, time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        ready, _, _ = select.select([leader], [], [], 1.0)
        try:
            seen += os.read(leader, 65536).decode(errors="replace") if ready else ""
        except OSError:  # how a pseudo terminal says that the other side is closed
            break
        while seen.count("(N)o/(y)es/(c)ontinue:") > answered:
            os.write(leader, b"y\n" if answered == 0 else b"n\n")
            answered += 1
    assert process.wait(LIMIT_SECONDS) == 0, seen
    assert answered >= 5
    os.close(leader)


def test_one_template_is_replaced_and_the_others_stay(lab: t.Any, tmp_path: pathlib.Path, variables: t.Any) -> None:
    own = (ROOT / "roles" / "traffic_accounting" / "templates" / "gpufleet-accounting.service.j2").read_text(encoding="utf-8")
    path = write(tmp_path / "mine.j2", own.replace("[Unit]\n", "[Unit]\n# of {{ traffic_accounting_name }}\n"))
    given = variables({"traffic_accounting_templates": {"gpufleet-accounting.service": str(path)}})
    run = lab.command("ansible-playbook", "playbooks/fleet.yml", "--diff", "--limit=localhost,new000000", "-e", given)
    assert run.returncode == 0, run.stdout
    assert "# of openai" in lab.node("new000000").run(["cat", "/etc/systemd/system/gpufleet-accounting.service"])
    back = lab.command("ansible-playbook", "playbooks/fleet.yml", "--limit=localhost,new000000")
    assert back.returncode == 0
    assert "# of openai" not in lab.node("new000000").run(["cat", "/etc/systemd/system/gpufleet-accounting.service"])


def test_a_secret_is_on_the_node_and_nowhere_else(lab: t.Any, home: pathlib.Path, variables: t.Any) -> None:
    node = lab.node("new000000")

    def play(playbook: str, **settings: t.Any) -> tuple[int, str]:
        """A run at its loudest. The file of variables is named on the command line, its content shown by nobody."""
        given = variables(settings)
        run = lab.command(
            "ansible-playbook", f"playbooks/{playbook}", "--diff", "-vvvv", "--limit=localhost,new000000", "-e", given, HOME=str(home)
        )
        assert SECRET not in run.stdout + run.stderr
        return run.returncode, run.stdout

    def token(content: t.Any) -> list[dict[str, t.Any]]:
        return [{"path": "/etc/example.token", "content": content, "mode": "0600", "secret": True}]

    for playbook, content, verb in (("site.yml", SECRET, "create"), ("fleet.yml", f"{SECRET} again", "change")):
        status, output = play(playbook, custom_files=token(content))
        assert status == 0 and f"file /etc/example.token: {verb}" in output, output
        assert node.run(["cat", "/etc/example.token"]) == content
    for playbook in ("site.yml", "fleet.yml"):
        status, output = play(playbook, custom_files=token({"not": SECRET}))
        assert status != 0 and "content must be of type str, but is dict" in output, output
    # A failure on the node saves facts and state, still without it.
    status, output = play("fleet.yml", custom_files=token(SECRET), custom_units=[{"name": "nowhere.service", "enabled": True}])
    assert status != 0 and "Replay the plan with: " in output, output
    saved = list((home / ".ansible" / "gpufleet" / "failures").iterdir())
    assert len(saved) == 2
    assert all("/etc/example.token" in text and SECRET not in text for text in (path.read_text(encoding="utf-8") for path in saved))


def test_a_reboot_that_is_due_is_done_only_where_it_is_allowed(lab: t.Any, variables: t.Any) -> None:
    node = lab.node("new000000")
    boot = node.run(["cat", "/proc/sys/kernel/random/boot_id"])
    loaded = node.run(["sh", "-c", "ls /sys/module | grep -x -e tcp_cubic -e ext4 -e kernel -e overlay -e fuse | head -1"]).strip()
    settings: dict[str, t.Any] = {"custom_modprobe": {"example": [f"options {loaded} example=1"]}}
    asked = lab.command("ansible-playbook", "playbooks/fleet.yml", "--limit=localhost,new000000", "-e", variables(settings))
    assert asked.returncode == 0, asked.stdout
    assert f"options of the loaded module {loaded} changed" in asked.stdout
    assert node.run(["cat", "/proc/sys/kernel/random/boot_id"]) == boot
    settings["node_program_reboot"] = "allowed"
    done = lab.command("ansible-playbook", "playbooks/fleet.yml", "-v", "--limit=localhost,new000000", "-e", variables(settings))
    assert done.returncode == 0, done.stdout
    assert "needs:" in asked.stdout and "needs:" not in done.stdout
    assert node.run(["cat", "/proc/sys/kernel/random/boot_id"]) != boot
    again = lab.command("ansible-playbook", "playbooks/fleet.yml", "--limit=localhost,new000000", "-e", variables(settings))
    assert again.returncode == 0
    assert "changed=0" in again.stdout and "reboot" not in again.stdout


def test_the_newest_ansible_core_converges_the_same_nodes(lab: t.Any) -> None:
    newest = ROOT / ".venv-3.13" / "bin" / "ansible-playbook"
    if not newest.exists():
        pytest.skip("no Python 3.13 with the newest ansible-core here")
    environment = {**os.environ, "GPUFLEET_LAB": lab.prefix, "ANSIBLE_NOCOLOR": "1", "PATH": f"{newest.parent}:{os.environ['PATH']}"}
    command = [str(newest), "playbooks/fleet.yml", "--check", "--limit=localhost,old000000"]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "changed=0" in run.stdout
