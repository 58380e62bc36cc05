# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes of either kind, container or virtual machine: what both have, and the right program for each step."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import time
import types
import typing as t

from . import container, fabric, image, machine, model, namespace, profile
from .azure.run_command import Output
from .fleet import ADMIN_USER, Fleet, Instance
from .paths import LabError, Paths

# Idle, four containers run after 1.3 s and sixteen after 3.1 s, a virtual machine without acceleration after 20 s;
# loaded machines take many times that.
START_LIMIT_SECONDS = {"container": 120, "machine": 600}
POLL_SECONDS = 0.2
KINDS: dict[str, types.ModuleType] = {"container": container, "machine": machine}


def start(paths: Paths, fleet: Fleet, say: t.Callable[[str], None]) -> None:
    """Start every node and wait until systemd says that each runs."""
    instances = fabric.nodes(fleet)
    for instance in instances:
        prepare(paths, fleet, instance, say)
    for instance in instances:
        launch(paths, instance)
    wait(paths, instances)


def prepare(paths: Paths, fleet: Fleet, instance: Instance, say: t.Callable[[str], None] = lambda _line: None) -> None:
    """Give a node its own writable file system with its host key, its user's key and its hardware."""
    folder = paths.node(instance.computer_name)
    lower = image.ensure(
        model.image(fleet.model_of(instance)), say, kind=instance.kind, more=fleet.scale_set(instance.scale_set).described.packages
    )
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
    if instance.kind == "machine":
        prefix = fleet.subnet_of(fleet.scale_set(instance.scale_set)).prefix
        machine.make_disk(paths, instance, address=f"{instance.primary_address}/{prefix.prefixlen}", router=str(prefix.network_address + 1))


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


def launch(paths: Paths, instance: Instance) -> None:
    """Start a node that was never started."""
    KINDS[instance.kind].launch(paths, instance)


def resume(paths: Paths, instance: Instance) -> None:
    """Start a node that was stopped, on its own file system."""
    KINDS[instance.kind].resume(paths, instance)


def restart(paths: Paths, instance: Instance) -> None:
    KINDS[instance.kind].restart(paths, instance)


def stop(paths: Paths, instance: Instance) -> None:
    """Shut a node down, or cut its power when it does not end in time."""
    KINDS[instance.kind].stop(paths, instance)


def discard(paths: Paths, instance: Instance) -> None:
    """Remove what a stopped node has left: its file system with its host key."""
    KINDS[instance.kind].discard(paths, instance)
    folder = paths.node(instance.computer_name)
    namespace.inside(paths, ["umount", str(folder / "root")], check=False)
    shutil.rmtree(folder)


def run_script(paths: Paths, instance: Instance, script: str) -> Output:
    """Run a shell script as root, whatever state the node's network is in."""
    stdout, stderr = KINDS[instance.kind].run_script(paths, instance.computer_name, script)
    return Output(stdout=stdout, stderr=stderr)


def state(paths: Paths, computer_name: str, kind: str) -> str:
    """What ``systemctl is-system-running`` says on a node, or "absent"."""
    return str(KINDS[kind].state(paths, computer_name))


def wait(paths: Paths, instances: t.Sequence[Instance]) -> None:
    """Wait until systemd says of every node that it runs. Raises LabError with the units that failed."""
    started = time.monotonic()
    waiting = list(instances)
    while waiting:
        waiting = [item for item in waiting if state(paths, item.computer_name, item.kind) != "running"]
        for item in waiting:
            if time.monotonic() - started > START_LIMIT_SECONDS[item.kind]:
                raise LabError(_late(paths, item))
        if waiting:
            time.sleep(POLL_SECONDS)


def _late(paths: Paths, instance: Instance) -> str:
    try:
        failed = run_script(paths, instance, "systemctl list-units --failed --no-legend --plain")
        detail = (failed.stdout or failed.stderr).strip() or "no unit has failed; the machine may be too busy"
    except OSError as error:
        detail = f"it does not answer ({error}); see {paths.node(instance.computer_name) / 'console.log'}"
    seen = state(paths, instance.computer_name, instance.kind)
    return f"node {instance.computer_name} is {seen!r}, not running, after {START_LIMIT_SECONDS[instance.kind]} seconds: {detail}"


def remove_all(paths: Paths) -> None:
    """Remove every node of the lab, whatever state it is in; virtual machines end with the lab's other processes."""
    container.remove_all(paths)
