# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``gpufleet inventory freeze``: the same hosts, groups and variables again, or one message and no file."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import typing as t

import pytest
import yaml
from click.testing import CliRunner, Result

from gpufleet.cli import main

FLEET = {
    "all": {
        "vars": {"region": "westus"},
        "children": {
            "gpu": {
                "children": {"gpu_h100": {"hosts": {"gpua000001": {"vm_id": "b"}, "gpua000000": {"vm_id": "a", "tags": {"x": ["é"]}}}}}
            },
            "cpu": {"hosts": {"login": None}, "vars": {"kind": "cpu"}},
        },
    }
}


@pytest.fixture
def fleet(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[..., pathlib.Path]:
    """Writes an inventory of a document, with group_vars beside it that must not be in a frozen one."""
    monkeypatch.setenv("ANSIBLE_INVENTORY_ENABLED", "yaml")
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars" / "all.yml").write_text("password: from-group-vars\n", encoding="utf-8")

    def write(document: t.Any, name: str = "fleet.yml") -> pathlib.Path:
        path = tmp_path / name
        path.write_text(yaml.safe_dump(document), encoding="utf-8")
        return path

    return write


def freeze(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["inventory", "freeze", *map(str, arguments)])


def listed(path: pathlib.Path) -> dict[str, t.Any]:
    program = pathlib.Path(sys.executable).with_name("ansible-inventory")
    done = subprocess.run([str(program), "-i", str(path), "--list", "--export"], capture_output=True, text=True, check=True, timeout=60)
    return dict(json.loads(done.stdout))


def test_frozen_fleet_is_the_same_fleet(fleet: t.Callable[..., pathlib.Path], tmp_path: pathlib.Path) -> None:
    source = fleet(FLEET)
    frozen = tmp_path / "frozen.json"
    done = freeze("-i", source, "-o", frozen)
    assert done.exit_code == 0, done.output
    assert "3 hosts written" in done.output
    assert frozen.stat().st_mode & 0o777 == 0o600
    assert "from-group-vars" not in frozen.read_text(encoding="utf-8")
    before, after = listed(source), listed(frozen)
    assert after["all"]["vars"].pop("fleet_frozen_at")
    assert after == before


def test_limit_freezes_some(fleet: t.Callable[..., pathlib.Path], tmp_path: pathlib.Path) -> None:
    frozen = tmp_path / "frozen.json"
    assert freeze("-i", fleet(FLEET), "-l", "gpu_h100:!gpua000001", "-o", frozen).exit_code == 0
    assert list(json.loads(frozen.read_text(encoding="utf-8"))["all"]["hosts"]) == ["gpua000000"]


@pytest.mark.parametrize(
    ("document", "arguments", "words"),
    [
        ({"all": {}}, [], "no host: nothing is written"),
        (FLEET, ["-l", "nosuch"], "nosuch"),
        ({"all": {"hosts": {"a": None}, "vars": {"azure_vmss_stale": "2026-01-01T00:00:00Z"}}}, [], "2026-01-01T00:00:00Z: run again"),
        ("no inventory", [], "ansible-inventory ended with status 1"),
    ],
)
def test_what_cannot_be_frozen_is_said_and_the_file_stays(
    fleet: t.Callable[..., pathlib.Path], tmp_path: pathlib.Path, document: t.Any, arguments: list[str], words: str
) -> None:
    frozen = tmp_path / "frozen.json"
    frozen.write_text("before", encoding="utf-8")
    done = freeze("-i", fleet(document), "-o", frozen, *arguments)
    assert done.exit_code == 1
    assert words in done.output
    assert frozen.read_text(encoding="utf-8") == "before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fleet.yml", "frozen.json", "group_vars"]


def test_a_file_that_cannot_be_written_is_named(fleet: t.Callable[..., pathlib.Path], tmp_path: pathlib.Path) -> None:
    done = freeze("-i", fleet(FLEET), "-o", tmp_path / "absent" / "frozen.json")
    assert done.exit_code == 1
    assert "absent/frozen.json cannot be written (No such file or directory); name another file" in done.output


def test_no_ansible_is_said(fleet: t.Callable[..., pathlib.Path], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = fleet(FLEET)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    done = freeze("-i", source, "-o", tmp_path / "frozen.json")
    assert done.exit_code == 1
    assert "install ansible-core" in done.output
