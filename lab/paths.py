# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a lab keeps what. Everything carries the lab's prefix, so that removing these removes the lab."""

from __future__ import annotations

import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
IMAGES = pathlib.Path("/var/lib/gpufleet-lab/images")
# Namespaces, containers and folders carry the prefix; a unix socket path of podman must stay short.
_PREFIX = re.compile(r"^[a-z][a-z0-9]{0,11}$")


class LabError(Exception):
    """What stops a lab; its message says what is wrong, where, and what to do."""


@dataclasses.dataclass(frozen=True)
class Paths:
    """The places of one lab. ``inside`` is true in the lab's own daemon, which lives in its mount namespace already."""

    prefix: str
    inside: bool = False

    def __post_init__(self) -> None:
        if not _PREFIX.match(self.prefix):
            raise LabError(f"prefix {self.prefix!r} cannot be used; take 1 to 12 lower-case letters and digits, a letter first")

    @property
    def run(self) -> pathlib.Path:
        """Gone after a reboot, like the namespaces and processes that it names."""
        return pathlib.Path("/run/gpufleet-lab") / self.prefix

    @property
    def state(self) -> pathlib.Path:
        """File systems of the nodes."""
        return pathlib.Path("/var/lib/gpufleet-lab/labs") / self.prefix

    @property
    def access(self) -> pathlib.Path:
        """What a user needs: key, known_hosts, ssh_config, CA, variables."""
        return ROOT / "build" / "lab" / self.prefix

    @property
    def mount_namespace(self) -> pathlib.Path:
        return self.run / "mounts" / "namespace"

    @property
    def daemon_pid(self) -> pathlib.Path:
        return self.run / "daemon.pid"

    @property
    def ready(self) -> pathlib.Path:
        """Written when all of the lab is up; without it a lab is half made."""
        return self.run / "ready.json"

    def node(self, name: str) -> pathlib.Path:
        return self.state / "nodes" / name
