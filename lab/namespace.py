# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lab's private mount namespace: named network namespaces, node file systems and cgroups that the machine never sees.

Removing it removes all of them, after any crash.
"""

from __future__ import annotations

import pathlib
import subprocess
import typing as t

from .paths import LabError, Paths

COMMAND_LIMIT_SECONDS = 120


def create(paths: Paths) -> None:
    """Make the namespace, with an empty /run/netns and a pure cgroup v2 tree where the machine has none."""
    holder = paths.mount_namespace.parent
    holder.mkdir(parents=True, exist_ok=True)
    # A namespace file can be bound only where the mount is private.
    _machine(["mount", "--bind", str(holder), str(holder)])
    _machine(["mount", "--make-private", str(holder)])
    paths.mount_namespace.touch()
    pathlib.Path("/run/netns").mkdir(exist_ok=True)
    _machine(
        [
            "unshare",
            f"--mount={paths.mount_namespace}",
            "--propagation",
            "private",
            "mount",
            "-t",
            "tmpfs",
            "-o",
            "mode=0755",
            "netns",
            "/run/netns",
        ]
    )
    if not pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists():
        # crun refuses the mixed tree of versions 1 and 2; inside the lab there is version 2 alone.
        inside(paths, ["umount", "-R", "/sys/fs/cgroup"])
        inside(paths, ["mount", "-t", "cgroup2", "-o", "nsdelegate", "none", "/sys/fs/cgroup"])


def exists(paths: Paths) -> bool:
    """Whether the namespace is there: its file is then a mount point of its own."""
    return mounted(paths.mount_namespace)


def mounted(place: pathlib.Path) -> bool:
    """Whether something is mounted exactly here; os.path.ismount does not see a bind mount within one file system."""
    with open("/proc/self/mountinfo", encoding="utf-8") as lines:
        return any(line.split()[4] == str(place) for line in lines)


def remove(paths: Paths) -> None:
    """Let go of the namespace; the kernel takes mounts and network namespaces with the last process in it."""
    for place in (paths.mount_namespace, paths.mount_namespace.parent):
        while mounted(place):
            _machine(["umount", str(place)])


def entered(paths: Paths, argv: t.Sequence[str], *, network: str = "") -> list[str]:
    """The command line that runs ``argv`` inside the lab, in one of its network namespaces if named."""
    enter = [] if paths.inside else ["nsenter", f"--mount={paths.mount_namespace}"]
    return [*enter, *(["ip", "netns", "exec", network] if network else []), *argv]


def inside(
    paths: Paths, argv: t.Sequence[str], *, network: str = "", stdin: str | None = None, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run one command inside the lab, with a limit. Raises LabError with the command's own words."""
    return _run(entered(paths, argv, network=network), stdin=stdin, check=check)


def _machine(argv: t.Sequence[str]) -> None:
    _run(argv, stdin=None, check=True)


def _run(argv: t.Sequence[str], *, stdin: str | None, check: bool) -> subprocess.CompletedProcess[str]:
    given: dict[str, t.Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    try:
        done = subprocess.run(
            list(argv), capture_output=True, text=True, errors="replace", timeout=COMMAND_LIMIT_SECONDS, check=False, **given
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"`{' '.join(argv)}` did not end within {COMMAND_LIMIT_SECONDS} seconds; take the lab down and try again") from error
    if check and done.returncode != 0:
        raise LabError(f"`{' '.join(argv)}` failed: {(done.stderr or done.stdout).strip()}")
    return done
