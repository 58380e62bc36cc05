# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes: systemd containers on an overlay of a shared root file system, in the namespaces that the fabric wired."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import time
import typing as t

from . import fabric, image, model, namespace, profile
from .azure.run_command import Output
from .fleet import ADMIN_USER, Fleet, Instance
from .paths import LabError, Paths

# Idle, four nodes run after 1.3 s and sixteen after 3.1 s; loaded machines take many times that.
START_LIMIT_SECONDS = 120
POLL_SECONDS = 0.2
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


def prepare(paths: Paths, fleet: Fleet, instance: Instance, say: t.Callable[[str], None] = lambda _line: None) -> None:
    """Give a node its own writable file system with its host key, its user's key and its hardware."""
    folder = paths.node(instance.computer_name)
    lower = image.ensure(model.image(fleet.model_of(instance)), say)
    for name in ("upper", "work", "root", "pci"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    profile.write(fleet.scale_set(instance.scale_set).described.profile, folder / "pci")
    options = f"lowerdir={lower},upperdir={folder / 'upper'},workdir={folder / 'work'}"
    namespace.inside(paths, ["mount", "-t", "overlay", "overlay", "-o", options, str(folder / "root")])
    _host_key(folder, instance)
    # The overlay is mounted inside the lab's namespace only, so its files are written through upper before a node starts.
    upper = folder / "upper"
    _write(upper / "etc" / "hostname", instance.computer_name + "\n", mode=0o644)
    # Azure's DNS knows every VM by its name; sudo waits for that answer.
    _write(upper / "etc" / "hosts", f"127.0.0.1 localhost\n127.0.1.1 {instance.computer_name}\n", mode=0o644)
    authorized = upper / "home" / ADMIN_USER / ".ssh" / "authorized_keys"
    namespace.inside(
        paths,
        ["install", "-D", "-m", "0600", "/dev/stdin", str(folder / "root" / authorized.relative_to(upper))],
        stdin=fleet.public_key + "\n",
    )
    namespace.inside(paths, ["chroot", str(folder / "root"), "chown", "-R", f"{ADMIN_USER}:{ADMIN_USER}", f"/home/{ADMIN_USER}/.ssh"])


def host_key(paths: Paths, instance: Instance) -> str:
    """The public host key of a node, as known_hosts wants it."""
    return (paths.node(instance.computer_name) / "ssh_host_ed25519_key.pub").read_text(encoding="ascii").strip()


def _host_key(folder: pathlib.Path, instance: Instance) -> None:
    key = folder / "ssh_host_ed25519_key"
    if not key.exists():
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", instance.computer_name, "-f", str(key)],
            check=True,
            stdin=subprocess.DEVNULL,
            timeout=30,
        )
    for name, mode in ((key.name, 0o600), (f"{key.name}.pub", 0o644)):
        _write(folder / "upper" / "etc" / "ssh" / name, (folder / name).read_text(encoding="ascii"), mode=mode)


def _write(path: pathlib.Path, text: str, *, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")
    path.chmod(mode)


def start(paths: Paths, fleet: Fleet, say: t.Callable[[str], None]) -> None:
    """Start every node and wait until systemd says that each runs."""
    instances = fabric.nodes(fleet)
    for instance in instances:
        prepare(paths, fleet, instance, say)
    for instance in instances:
        launch(paths, instance)
    wait(paths, instances)


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
    """Remove a stopped node's container and its file system with its host key."""
    namespace.inside(paths, podman(paths, "rm", "--force", "--ignore", "--time=0", instance.computer_name))
    folder = paths.node(instance.computer_name)
    namespace.inside(paths, ["umount", str(folder / "root")], check=False)
    shutil.rmtree(folder)


def wait(paths: Paths, instances: t.Sequence[Instance]) -> None:
    """Wait until systemd says of every node that it runs. Raises LabError with the units that failed."""
    deadline = time.monotonic() + START_LIMIT_SECONDS
    waiting = list(instances)
    while waiting:
        waiting = [item for item in waiting if state(paths, item.computer_name) != "running"]
        if waiting and time.monotonic() > deadline:
            raise LabError(_late(paths, waiting[0]))
        if waiting:
            time.sleep(POLL_SECONDS)


def run_script(paths: Paths, computer_name: str, script: str) -> Output:
    """Run a shell script as root, whatever state the node's network is in."""
    done = namespace.inside(paths, podman(paths, "exec", "--interactive", computer_name, "sh", "-s"), stdin=script, check=False)
    return Output(stdout=done.stdout, stderr=done.stderr)


def state(paths: Paths, computer_name: str) -> str:
    """What ``systemctl is-system-running`` says on a node, or "absent"."""
    done = namespace.inside(paths, podman(paths, "exec", computer_name, "systemctl", "is-system-running"), check=False)
    return done.stdout.strip() or "absent"


def _late(paths: Paths, instance: Instance) -> str:
    failed = namespace.inside(
        paths, podman(paths, "exec", instance.computer_name, "systemctl", "list-units", "--failed", "--no-legend", "--plain"), check=False
    )
    detail = (failed.stdout or failed.stderr).strip() or "no unit has failed; the machine may be too busy"
    return f"node {instance.computer_name} is {state(paths, instance.computer_name)!r}, not running, after {START_LIMIT_SECONDS} seconds: {detail}"


def remove_all(paths: Paths) -> None:
    """Remove every container of the lab, whatever state it is in."""
    if namespace.exists(paths) and shutil.which("podman"):
        namespace.inside(paths, podman(paths, "rm", "--all", "--force", "--time=0"), check=False)
