# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of the IPAM plugin. Part of the plugin's one file."""

from __future__ import annotations

import os
import select

from .call import CniError, read_all
from .plain_json import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

# host-local answers in milliseconds; one that waits for a lock of a killed process would hold the pod for ever.
IPAM_LIMIT_MS = 60_000
SIGKILL = 9


def program(name: str, code: int = 7) -> str:
    for folder in os.environ.get("CNI_PATH", "").split(":"):
        path = f"{folder}/{name}"
        if folder and "/" not in name and os.access(path, os.X_OK):
            return path
    raise CniError(code, f"the IPAM plugin {name} is not in CNI_PATH ({os.environ.get('CNI_PATH', '')})")


def ipam(command: str, config: dict[str, t.Any]) -> dict[str, t.Any]:
    """Call the IPAM plugin with our own configuration, as the CNI specification says. Returns its result, empty for none."""
    path = program(config["ipam"]["type"])
    # host-local 1.1 knows no 1.1.0, whose results are those of 1.0.0.
    given = {**config, "cniVersion": min(config["cniVersion"], "1.0.0")}
    arguments = os.environ.get("CNI_ARGS", "")
    # The runtime's arguments name the pod, which an IPAM plugin need not understand.
    environment = {
        **os.environ,
        "CNI_COMMAND": command,
        "CNI_ARGS": arguments if "IgnoreUnknown" in arguments or not arguments else "IgnoreUnknown=1;" + arguments,
    }
    source, sink = os.memfd_create("given"), os.memfd_create("said")
    try:
        os.write(source, dumps(given).encode())
        os.lseek(source, 0, os.SEEK_SET)
        process = os.posix_spawn(path, [path], environment, file_actions=[(os.POSIX_SPAWN_DUP2, source, 0), (os.POSIX_SPAWN_DUP2, sink, 1)])
        code = wait(process, path)
        os.lseek(sink, 0, os.SEEK_SET)
        said = read_all(sink)
    finally:
        os.close(source)
        os.close(sink)
    if code == 0:
        return loads(said) if said.strip() else {}
    try:
        document = loads(said)
        message, number = document["msg"], document["code"]
    except (ValueError, KeyError, TypeError):
        message, number = said.strip() or f"ended with status {code}", 100
    raise CniError(number, f"{config['ipam']['type']} {command}: {message}")


def wait(process: int, path: str) -> int:
    ended = os.pidfd_open(process)
    try:
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        if not poll.poll(IPAM_LIMIT_MS):
            os.kill(process, SIGKILL)
            os.waitpid(process, 0)
            raise CniError(11, f"{path} did not end within {IPAM_LIMIT_MS // 1000} seconds")
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    finally:
        os.close(ended)
