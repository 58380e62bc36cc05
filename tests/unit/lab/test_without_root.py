# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whoever is not root is told so at once, whatever a lab of root's has left on the machine."""

from __future__ import annotations

import os
import pathlib

import pytest
from click.testing import CliRunner

from gpufleet.cli import main
from lab import lifecycle
from lab.paths import Paths


@pytest.fixture(autouse=True)
def not_root(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(Paths, "run", property(lambda _self: tmp_path))


@pytest.mark.parametrize("arguments", [["up"], ["down"], ["status"], ["fault"], ["event", "node", "Reboot"]])
def test_each_command_of_the_lab_says_that_it_needs_root(arguments: list[str]) -> None:
    answer = CliRunner().invoke(main, ["lab", arguments[0], "--prefix", "tnone", *arguments[1:]])
    assert answer.exit_code == 1
    assert answer.output.count("needs root; run it again with sudo") == 1
    assert "Traceback" not in answer.output


def test_what_is_there_stays(tmp_path: pathlib.Path) -> None:
    (tmp_path / "ready.json").touch()
    with pytest.raises(Exception, match="needs root"):
        lifecycle.down("tnone")
    assert (tmp_path / "ready.json").exists()
