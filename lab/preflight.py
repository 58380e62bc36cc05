# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a machine must have before a lab is started, found first and named, so that nothing is half made."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil

from . import fabric, image, profile
from .fleet import Fleet
from .paths import LabError

# A node takes 10 to 24 MiB when idle and some 100 MiB while Ansible works on it; the daemon takes 100 MiB.
NODE_MEMORY_MIB = 150
BASE_MEMORY_MIB = 300
# 512 MiB of guest memory and QEMU itself.
MACHINE_MEMORY_MIB = 800
# systemd and its services hold about five inotify instances a node; without them nodes hang silently.
NODE_INOTIFY_INSTANCES = 5
# Each command that the lab calls, and the Debian package that brings it.
TOOLS = {
    "podman": "podman",
    "crun": "crun",
    "conmon": "conmon",
    "mmdebstrap": "mmdebstrap",
    "ip": "iproute2",
    "nft": "nftables",
    "nc": "netcat-openbsd",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "sysctl": "procps",
    "ssh-keygen": "openssh-client",
}
# Those that virtual machines need besides.
MACHINE_TOOLS = {"qemu-system-x86_64": "qemu-system-x86", "mke2fs": "e2fsprogs"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Machine:
    """What was read of the machine. Memory in MiB."""

    root: bool
    memory_free: int
    inotify_instances: int
    missing_tools: tuple[str, ...]
    cgroup2: bool = True


def read() -> Machine:
    memory = dict(line.split(":")[:2] for line in pathlib.Path("/proc/meminfo").read_text(encoding="ascii").splitlines())
    return Machine(
        root=os.geteuid() == 0,
        memory_free=int(memory["MemAvailable"].split()[0]) // 1024,
        inotify_instances=int(pathlib.Path("/proc/sys/fs/inotify/max_user_instances").read_text(encoding="ascii")),
        cgroup2="cgroup2" in pathlib.Path("/proc/filesystems").read_text(encoding="ascii").split(),
        missing_tools=tuple(sorted(tool for tool in TOOLS | MACHINE_TOOLS if shutil.which(tool) is None)),
    )


def check(machine: Machine, fleet: Fleet) -> None:
    """Raises LabError with the first thing that is missing, and what to do."""
    need_root(machine.root)
    wanted = TOOLS | (MACHINE_TOOLS if any(item.kind == "machine" for item in fleet.description.scale_sets) else {})
    missing = [tool for tool in machine.missing_tools if tool in wanted]
    if missing:
        packages = " ".join(sorted({wanted[tool] for tool in missing}))
        raise LabError(f"missing on this machine: {', '.join(missing)}; install with: apt-get install {packages}")
    for scale_set in fleet.description.scale_sets:
        if scale_set.kind != "stub":
            profile.load(scale_set.profile)
            if scale_set.image not in image.SUITES:
                raise LabError(
                    f"scale set {scale_set.name} has image {scale_set.image}, which is not known; known: {', '.join(image.SUITES)}"
                )
    if not machine.cgroup2:
        raise LabError("this machine's kernel has no cgroup version 2, which systemd in containers needs; use a kernel of 4.5 or later")
    nodes = fabric.nodes(fleet)
    count, machines = len(nodes), sum(item.kind == "machine" for item in nodes)
    memory = BASE_MEMORY_MIB + (count - machines) * NODE_MEMORY_MIB + machines * MACHINE_MEMORY_MIB
    if machine.memory_free < memory:
        raise LabError(
            f"{count} nodes need {memory} MiB of free memory, this machine has {machine.memory_free} MiB; describe fewer instances"
        )
    instances = (count - machines) * NODE_INOTIFY_INSTANCES
    if machine.inotify_instances < instances:
        raise LabError(
            f"{count} nodes need about {instances} inotify instances, fs.inotify.max_user_instances is {machine.inotify_instances}; "
            f"raise it (sysctl fs.inotify.max_user_instances={instances * 2}) or describe fewer instances"
        )


def need_root(root: bool) -> None:
    """Raises LabError for anybody else."""
    if not root:
        raise LabError("a lab is made of network namespaces and containers, which needs root; run it again with sudo")
