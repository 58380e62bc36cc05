# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virtual machine that goes away while it is asked."""

from __future__ import annotations

import pathlib
import socket
import threading

import pytest

from lab import machine
from lab.paths import Paths


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> Paths:
    monkeypatch.setattr(Paths, "run", property(lambda _self: tmp_path))
    return Paths("tnone")


def test_a_machine_that_ends_in_the_middle_is_absent_at_once(paths: Paths) -> None:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(paths.run / "node.agent"))
    server.listen()

    def serve() -> None:
        for _ in range(2):
            connection, _address = server.accept()
            connection.recv(1000)
            connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert machine.state(paths, "node") == "absent"
    with pytest.raises(OSError, match="has ended"):
        machine.run_script(paths, "node", "true")
    thread.join(5)


def test_a_machine_that_was_never_there_is_absent(paths: Paths) -> None:
    assert machine.state(paths, "node") == "absent"
