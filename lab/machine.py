# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual machines: QEMU inside the node's network namespace, its NIC a tap on a bridge to the router's cable.

For what a container shares with its machine and a test must have for itself: kernel parameters, modules, a real boot.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import pathlib
import signal
import socket
import time
import typing as t

from . import namespace
from .fleet import Instance
from .paths import LabError, Paths

MEMORY_MIB = 512
DISK = "4G"
# A guest shuts down within some seconds; without acceleration three times that.
STOP_SECONDS = 60
AGENT_SECONDS = 5
SCRIPT_SECONDS = 300
POLL_SECONDS = 0.1


def make_disk(paths: Paths, instance: Instance, *, address: str, router: str) -> None:
    """Turn the prepared file system into a disk, with the addresses that Azure's DHCP would give."""
    folder = paths.node(instance.computer_name)
    network = folder / "upper" / "etc" / "systemd" / "network" / "10-eth0.network"
    network.parent.mkdir(parents=True, exist_ok=True)
    network.write_text(f"[Match]\nName=eth0\n[Network]\nAddress={address}\nGateway={router}\n", encoding="ascii")
    root = folder / "root"
    for name in ("vmlinuz", "initrd.img"):
        # Through the lab's namespace, where alone the file system is mounted.
        namespace.inside(paths, ["cp", _newest(paths, root, name), str(folder / name)])
    namespace.inside(paths, ["mke2fs", "-q", "-t", "ext4", "-E", "root_owner=0:0", "-d", str(root), str(folder / "disk"), DISK])
    namespace.inside(paths, ["umount", str(root)])


def _newest(paths: Paths, root: pathlib.Path, name: str) -> str:
    found = namespace.inside(paths, ["sh", "-c", f"ls {root}/boot/{name}-* | sort -V | tail -n 1"]).stdout.strip()
    if not found:
        raise LabError(f"the image of a virtual machine has no {name}; remove it from /var/lib/gpufleet-lab/images and try again")
    return found


def run_argv(paths: Paths, instance: Instance) -> list[str]:
    """The QEMU command line. Software emulation is there on every machine; KVM inside other virtual machines often hangs at boot."""
    folder = paths.node(instance.computer_name)
    return [
        "qemu-system-x86_64",
        "-name", instance.computer_name,
        "-nodefaults",
        "-nographic",
        "-daemonize",
        "-pidfile", str(folder / "qemu.pid"),
        "-accel", "tcg,thread=multi,tb-size=128",
        "-cpu", "max",
        "-smp", "2",
        "-m", str(MEMORY_MIB),
        "-kernel", str(folder / "vmlinuz"),
        "-initrd", str(folder / "initrd.img"),
        "-append", "root=/dev/vda rw console=ttyS0 net.ifnames=0 quiet",
        "-drive", f"file={folder / 'disk'},if=virtio,format=raw,cache=unsafe",
        "-netdev", "tap,id=nic,ifname=tap0,script=no,downscript=no",
        "-device", f"virtio-net-pci,netdev=nic,mac={instance.mac}",
        "-device", "virtio-rng-pci",
        "-chardev", f"socket,id=agent,path={_socket(paths, instance.computer_name)},server=on,wait=off",
        "-device", "virtio-serial",
        "-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0",
        "-serial", f"file:{folder / 'console.log'}",
    ]  # fmt: skip


def _socket(paths: Paths, computer_name: str) -> pathlib.Path:
    # A socket's path is short; the folder of the node may be long.
    return paths.run / f"{computer_name}.agent"


def launch(paths: Paths, instance: Instance) -> None:
    """Bridge the router's cable to a tap, once, and start the machine on it."""
    name = instance.computer_name
    if namespace.inside(paths, ["ip", "link", "show", "bridge0"], network=name, check=False).returncode != 0:
        lines = [
            "address flush dev eth0",
            "link add bridge0 type bridge stp_state 0 forward_delay 0",
            # The machine inside has the NIC's MAC; its cable may not answer to it.
            "link set eth0 address 02:00:00:00:00:01",
            "link set eth0 master bridge0",
            "link set bridge0 up",
            "tuntap add dev tap0 mode tap",
            "link set tap0 master bridge0",
            "link set tap0 up",
        ]
        namespace.inside(paths, ["ip", "-batch", "-"], network=name, stdin="\n".join(lines) + "\n")
    namespace.inside(paths, run_argv(paths, instance), network=name)


def resume(paths: Paths, instance: Instance) -> None:
    launch(paths, instance)


def restart(paths: Paths, instance: Instance) -> None:
    stop(paths, instance)
    launch(paths, instance)


def stop(paths: Paths, instance: Instance) -> None:
    """Ask the guest to shut down, or cut its power when it does not end in time."""
    pid = _pid(paths, instance.computer_name)
    if not pid:
        return
    try:
        _ask(paths, instance.computer_name, {"execute": "guest-shutdown"}, answer=False)
    except OSError:
        _cut_power(pid)
    deadline = time.monotonic() + STOP_SECONDS
    while _pid(paths, instance.computer_name):
        if time.monotonic() > deadline:
            _cut_power(pid)
        time.sleep(POLL_SECONDS)


def _cut_power(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def discard(paths: Paths, instance: Instance) -> None:
    stop(paths, instance)
    _socket(paths, instance.computer_name).unlink(missing_ok=True)


def state(paths: Paths, computer_name: str) -> str:
    """What ``systemctl is-system-running`` says, or "absent" while nobody answers."""
    try:
        return run_script(paths, computer_name, "systemctl is-system-running")[0].strip() or "absent"
    except (OSError, LabError):
        return "absent"


def run_script(paths: Paths, computer_name: str, script: str) -> tuple[str, str]:
    """Both outputs of a shell script, through the guest's agent, which needs no network.

    Raises OSError when nobody answers, LabError when the script does not end.
    """
    arguments = {"path": "/bin/sh", "arg": ["-s"], "input-data": base64.b64encode(script.encode()).decode(), "capture-output": True}
    begun = _ask(paths, computer_name, {"execute": "guest-exec", "arguments": arguments})
    deadline = time.monotonic() + SCRIPT_SECONDS
    while True:
        found = _ask(paths, computer_name, {"execute": "guest-exec-status", "arguments": {"pid": begun["pid"]}})
        if found["exited"]:
            return _decoded(found.get("out-data", "")), _decoded(found.get("err-data", ""))
        if time.monotonic() > deadline:
            raise LabError(f"a script on {computer_name} did not end within {SCRIPT_SECONDS} seconds")
        time.sleep(POLL_SECONDS)


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode(errors="replace")


def _ask(paths: Paths, computer_name: str, question: dict[str, t.Any], *, answer: bool = True) -> t.Any:
    """One question to the guest's agent. What an earlier, cut off answer has left is read over by a marker."""
    marker = time.monotonic_ns()
    with socket.socket(socket.AF_UNIX) as agent:
        agent.settimeout(AGENT_SECONDS)
        agent.connect(str(_socket(paths, computer_name)))
        lines = agent.makefile("rwb")
        lines.write(b"\xff" + json.dumps({"execute": "guest-sync", "arguments": {"id": marker}}).encode() + b"\n")
        lines.flush()
        while json.loads(_line(lines).strip(b"\xff\n") or b"{}").get("return") != marker:
            pass
        lines.write(json.dumps(question).encode() + b"\n")
        lines.flush()
        if not answer:
            return None
        said = json.loads(_line(lines))
    if "error" in said:
        raise LabError(f"the agent of {computer_name} refuses: {said['error'].get('desc')}")
    return said["return"]


def _line(lines: io.BufferedRWPair) -> bytes:
    """The next line. Raises ConnectionError when the machine is gone, which a socket says by an empty one."""
    line = lines.readline()
    if not line:
        raise ConnectionError("the machine has ended")
    return line


def _pid(paths: Paths, computer_name: str) -> int:
    """The process of a machine that runs, or 0."""
    try:
        pid = int((paths.node(computer_name) / "qemu.pid").read_text(encoding="ascii"))
        command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return 0
    return pid if computer_name.encode() in command.split(b"\0") else 0
