# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a runtime says of one container, and what it is told when that cannot be done. Part of the plugin's one file."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

RECORDS = "/run/gpufleet/pods"
# Of the node's end of each pair.
PREFIX = "gfa"


class CniError(Exception):
    """What the runtime shows: ``code`` as the CNI specification numbers errors, own ones from 100."""

    def __init__(self, code: int, message: str, details: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.details = code, message, details


class Call:
    """What the runtime says of the container by environment variables."""

    def __init__(self, config: dict[str, t.Any]) -> None:
        self.container = needed("CNI_CONTAINERID")
        self.interface = needed("CNI_IFNAME")
        self.namespace = os.environ.get("CNI_NETNS", "")
        self.network = config["name"]
        self.records = config.get("records", RECORDS)
        self.host_name = host_name(self.container, self.interface)
        pairs = (pair.partition("=") for pair in os.environ.get("CNI_ARGS", "").split(";"))
        self.arguments = {key: value for key, _sign, value in pairs}

    def open_namespace(self) -> int:
        if not self.namespace:
            raise CniError(4, "CNI_NETNS is not set")
        try:
            return os.open(self.namespace, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise CniError(3, f"the container's network namespace {self.namespace} is gone ({error.strerror})") from error

    @property
    def record(self) -> str:
        return f"{self.records}/{self.container}-{self.interface}.json"


def needed(name: str) -> str:
    value = os.environ.get(name, "")
    # Both become parts of a file's name.
    if not value or "/" in value or value.startswith("."):
        raise CniError(4, f"{name} is {value!r}, where a plain name is needed")
    return value


def host_name(container: str, interface: str) -> str:
    """Found again by every later call from what the runtime says alone; FNV-1a, 44 bits of it, as interface names have 15 characters."""
    number = 0xCBF29CE484222325
    for byte in f"{container}/{interface}".encode():
        number = (number ^ byte) * 0x100000001B3 % (1 << 64)
    return PREFIX + f"{number >> 20:011x}"


def read_all(descriptor: int) -> str:
    found = b""
    while True:
        piece = os.read(descriptor, 1 << 16)
        if not piece:
            return found.decode()
        found += piece
