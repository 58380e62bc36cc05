# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A lab from nothing to running and back, also after a crash at any moment of either."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import typing as t

from . import access, description, fabric, fleet, namespace, node, preflight
from .paths import ROOT, LabError, Paths

Say = t.Callable[[str], None]
DAEMON_LIMIT_SECONDS = 60
KILL_LIMIT_SECONDS = 20
POLL_SECONDS = 0.05


def up(prefix: str, file: pathlib.Path, say: Say) -> fleet.Fleet:
    """Bring a lab up. Raises LabError before anything is made when the machine or the description does not allow it."""
    paths = Paths(prefix)
    described = description.load(file)
    preflight.check(preflight.read(), fleet.build(described, prefix=prefix, public_key=""))
    if paths.ready.exists() and namespace.exists(paths) and _daemon(paths)[1]:
        raise LabError(
            f"lab {prefix} is already up; look at it with `gpufleet lab status --prefix {prefix}`, or take it down first with `gpufleet lab down --prefix {prefix}`"
        )
    if leftover(paths):
        say(f"lab {prefix} was left half made, or its Azure has died; removing it first")
        down(prefix)
    try:
        return _make(paths, file, described, say)
    except BaseException:
        down(prefix)
        raise


def _make(paths: Paths, file: pathlib.Path, described: description.Description, say: Say) -> fleet.Fleet:
    for folder in (paths.run, paths.state):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    built = fleet.build(described, prefix=paths.prefix, public_key=access.key_pair(paths))
    namespace.create(paths)
    fabric.build(paths, built)
    _start_daemon(paths, file)
    node.start(paths, built, say)
    access.write(paths, built)
    access.private(paths.ready, json.dumps({"description": str(file.resolve())}) + "\n")
    return built


def _start_daemon(paths: Paths, file: pathlib.Path) -> None:
    answer = paths.run / "daemon.json"
    log = paths.access / "daemon.log"
    argv = namespace.entered(paths, [sys.executable, "-m", "lab.daemon", "--prefix", paths.prefix, "--description", str(file.resolve())])
    with open(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
        # Entering a mount namespace starts at its root, so the package is found by path, not by folder.
        process = subprocess.Popen(
            argv,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    deadline = time.monotonic() + DAEMON_LIMIT_SECONDS
    while not answer.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            last = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:])
            raise LabError(f"the lab's Azure did not start; the last lines of {log}:\n{last}")
        time.sleep(POLL_SECONDS)


def leftover(paths: Paths) -> bool:
    """Whether anything of this lab is on the machine."""
    return paths.run.exists() or paths.state.exists()


def down(prefix: str) -> bool:
    """Remove all that a lab made. Returns whether there was anything. Works on half a lab, and twice."""
    paths = Paths(prefix)
    preflight.need_root(os.geteuid() == 0)
    found = leftover(paths)
    paths.ready.unlink(missing_ok=True)
    if namespace.exists(paths):
        with contextlib.suppress(LabError):
            node.remove_all(paths)
        _kill(paths)
    namespace.remove(paths)
    for folder in (paths.run, paths.state):
        if folder.exists():
            shutil.rmtree(folder)
    shutil.rmtree(paths.access, ignore_errors=True)
    return found


def _kill(paths: Paths) -> None:
    """End every process in the lab's namespaces; what podman could not remove goes here."""
    deadline = time.monotonic() + KILL_LIMIT_SECONDS
    while members := processes(paths):
        for member in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(member, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise LabError(
                f"processes of lab {paths.prefix} do not end: {', '.join(map(str, members))}; end them, then take the lab down again"
            )
        time.sleep(POLL_SECONDS)


def processes(paths: Paths) -> list[int]:
    """Processes in the lab's mount namespace or in one of its network namespaces."""
    listed = namespace.inside(paths, ["sh", "-c", "stat -c %i /run/netns/*"], check=False)
    inodes = {int(word) for word in listed.stdout.split() if word.isdigit()} | {os.stat(paths.mount_namespace).st_ino}
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if {os.stat(entry / "ns" / "mnt").st_ino, os.stat(entry / "ns" / "net").st_ino} & inodes:
                    found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Status:
    """What a lab looks like now. ``nodes`` maps computer name to what systemd says there."""

    up: bool
    arm: str
    nodes: dict[str, str]
    instances: list[dict[str, t.Any]]


def status(prefix: str) -> Status:
    """Look at a lab. Raises LabError when there is none."""
    paths = Paths(prefix)
    if not leftover(paths):
        raise LabError(f"there is no lab {prefix} on this machine; start one with `gpufleet lab up --prefix {prefix}`")
    preflight.need_root(os.geteuid() == 0)
    if not paths.ready.exists() or not namespace.exists(paths):
        raise LabError(f"lab {prefix} is half made; take it down with `gpufleet lab down --prefix {prefix}` and start it again")
    arm, alive = _daemon(paths)
    instances = json.loads((paths.access / "fleet.json").read_text(encoding="utf-8"))["instances"]
    return Status(
        up=alive,
        arm=arm if alive else "not running",
        nodes={
            item["computer_name"]: node.state(paths, item["computer_name"], item["kind"]) for item in instances if item["kind"] != "stub"
        },
        instances=instances,
    )


def _daemon(paths: Paths) -> tuple[str, bool]:
    """ARM's address, and whether the process that serves it is alive; another may have its number by now."""
    try:
        said = json.loads((paths.run / "daemon.json").read_text(encoding="utf-8"))
        command = pathlib.Path(f"/proc/{said['pid']}/cmdline").read_bytes()
    except (OSError, ValueError):
        return "", False
    return str(said["arm"]), b"lab.daemon" in command
