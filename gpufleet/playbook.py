# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running a playbook through ansible-runner, and what it said of each host."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import sys
import time
import typing as t

import ansible_runner

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """One finished playbook: exit status, per host how many tasks changed, and every converge result by host.

    ``changed`` is None for a run without a recap.
    """

    status: int
    changed: dict[str, int] | None
    results: dict[str, dict[str, dict[str, t.Any]]]
    seconds: float

    @property
    def total_changed(self) -> int | None:
        """How many tasks changed something, or None when that is not known."""
        return None if self.changed is None else sum(self.changed.values())


def run(playbook: str, *, directory: pathlib.Path, environment: dict[str, str], arguments: str = "", quiet: bool = False) -> Run:
    """Run a playbook of this collection with the repository's own settings and the lab's inventory.

    ``directory`` takes ansible-runner's artifacts. The output goes to the terminal unless ``quiet``.
    """
    directory.mkdir(parents=True, exist_ok=True)
    results: dict[str, dict[str, dict[str, t.Any]]] = {}
    stats: list[dict[str, t.Any]] = []
    started = time.monotonic()
    # Ansible's commands are those beside this interpreter, whatever the shell would find.
    path = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def note(event: dict[str, t.Any]) -> bool:
        data = event.get("event_data", {})
        if event.get("event") == "playbook_on_stats":
            stats.append(data)
        answer = data.get("res")
        if (
            event.get("event") in ("runner_on_ok", "runner_on_failed")
            and isinstance(answer, dict)
            and isinstance(answer.get("subsystems"), dict)
        ):
            results.setdefault(data["host"], {}).update(answer["subsystems"])
        return False

    runner = ansible_runner.run(
        private_data_dir=str(directory),
        project_dir=str(ROOT),
        playbook=str(ROOT / "playbooks" / playbook),
        inventory=str(ROOT / "inventory" / "lab"),
        envvars={**environment, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "PATH": path},
        cmdline=arguments or None,
        event_handler=note,
        rotate_artifacts=5,
        quiet=quiet,
        suppress_env_files=True,
    )
    # A run that ended before its recap has none; that it changed nothing is then not known, and may not be said.
    recap = stats[-1] if stats else None
    hosts = {host for kind in ("ok", "changed", "failures", "dark") for host in recap.get(kind, {})} if recap else set()
    changed = {host: int(recap.get("changed", {}).get(host, 0)) for host in sorted(hosts)} if recap else None
    return Run(status=int(runner.rc or 0), changed=changed, results=results, seconds=time.monotonic() - started)
