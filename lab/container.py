# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers: systemd on an overlay of a shared root file system, in the namespaces that the fabric wired."""

from __future__ import annotations

import shutil

from . import namespace
from .fleet import Instance
from .paths import Paths

# systemd's services end within a second; Azure, too, cuts the power of what does not shut down.
STOP_SECONDS = 10
# Podman lowers its own limits below what its containers ask for, and then cannot raise them.
ULIMITS = ("nofile=20000:20000", "nproc=32768:32768")


def podman(paths: Paths, *arguments: str) -> list[str]:
    """A podman command line with stores of the lab's own."""
    return [
        "podman",
        f"--root={paths.state / 'podman'}",
        f"--runroot={paths.run / 'podman'}",
        f"--tmpdir={paths.run / 'libpod'}",
        "--runtime=crun",
        "--cgroup-manager=cgroupfs",
        "--events-backend=file",
        *arguments,
    ]


def run_argv(paths: Paths, instance: Instance) -> list[str]:
    """The podman command line that starts one node."""
    folder = paths.node(instance.computer_name)
    return podman(
        paths,
        "run",
        "--detach",
        f"--name={instance.computer_name}",
        f"--hostname={instance.computer_name}",
        "--privileged",
        "--systemd=always",
        f"--network=ns:/run/netns/{instance.computer_name}",
        # systemctl reboot ends the container; podman starts it again on the same file system.
        "--restart=always",
        # The pids controller may belong to the machine's version 1 tree; a limit would then not start at all.
        "--pids-limit=-1",
        *(f"--ulimit={limit}" for limit in ULIMITS),
        f"--volume={folder / 'pci'}:/sys/bus/pci/devices:ro",
        "--no-hosts",
        "--rootfs",
        str(folder / "root"),
        "/usr/local/sbin/lab-init",
    )


def launch(paths: Paths, instance: Instance) -> None:
    """Start a node that was never started."""
    namespace.inside(paths, run_argv(paths, instance))


def resume(paths: Paths, instance: Instance) -> None:
    """Start a node that was stopped, on its own file system."""
    namespace.inside(paths, podman(paths, "start", instance.computer_name))


def restart(paths: Paths, instance: Instance) -> None:
    namespace.inside(paths, podman(paths, "restart", f"--time={STOP_SECONDS}", instance.computer_name))


def stop(paths: Paths, instance: Instance) -> None:
    """Shut a node down, or cut its power when it does not end in time."""
    namespace.inside(paths, podman(paths, "stop", "--ignore", f"--time={STOP_SECONDS}", instance.computer_name))


def discard(paths: Paths, instance: Instance) -> None:
    namespace.inside(paths, podman(paths, "rm", "--force", "--ignore", "--time=0", instance.computer_name))


def run_script(paths: Paths, computer_name: str, script: str) -> tuple[str, str]:
    """Both outputs of a shell script."""
    done = namespace.inside(paths, podman(paths, "exec", "--interactive", computer_name, "sh", "-s"), stdin=script, check=False)
    return done.stdout, done.stderr


def state(paths: Paths, computer_name: str) -> str:
    """What ``systemctl is-system-running`` says on a node, or "absent"."""
    done = namespace.inside(paths, podman(paths, "exec", computer_name, "systemctl", "is-system-running"), check=False)
    return done.stdout.strip() or "absent"


def remove_all(paths: Paths) -> None:
    """Remove every container of the lab, whatever state it is in."""
    if namespace.exists(paths) and shutil.which("podman"):
        namespace.inside(paths, podman(paths, "rm", "--all", "--force", "--time=0"), check=False)
