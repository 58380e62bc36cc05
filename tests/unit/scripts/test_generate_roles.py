# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""generate-roles on a copy of the collection: it finds every drift, mends it, and leaves the rest alone."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]
PARTS = ("collections", "playbooks", "plugins", "roles", "scripts")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("clone")
    for part in PARTS:
        shutil.copytree(ROOT / part, folder / part, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "galaxy.yml", folder)
    return folder


def generate(tree: pathlib.Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-B", str(tree / "scripts" / "generate-roles"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def generated(tree: pathlib.Path) -> dict[pathlib.Path, tuple[str, int]]:
    """Every file that the script could touch, with its content and time."""
    files = [path for part in ("roles", "playbooks") for path in (tree / part).rglob("*") if path.is_file()]
    return {path: (path.read_text(encoding="utf-8"), path.stat().st_mtime_ns) for path in files}


def test_the_files_of_the_collection_are_those_of_the_specs(tree: pathlib.Path) -> None:
    before = generated(tree)
    for arguments in (["--check"], []):
        done = generate(tree, *arguments)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert generated(tree) == before


def test_drift_is_named_by_check_and_mended_without_it(tree: pathlib.Path) -> None:
    before = {path: text for path, (text, _time) in generated(tree).items()}
    role = tree / "roles" / "traffic_accounting"
    changed = [role / "defaults" / "main.yml", role / "README.md", tree / "playbooks" / "fleet.yml"]
    for path in changed:
        path.write_text(before[path] + "# by hand\n", encoding="utf-8")
    (role / "meta" / "argument_specs.yml").unlink()
    drifted = generated(tree)
    found = generate(tree, "--check")
    assert found.returncode == 1 and generated(tree) == drifted
    named = found.stderr.partition("differ from the SPECs: ")[2].partition(";")[0].split(", ")
    assert sorted(named) == sorted(str(path.relative_to(tree)) for path in [*changed, role / "meta" / "argument_specs.yml"])
    assert "run scripts/generate-roles and commit" in found.stderr
    assert generate(tree).returncode == 0
    assert {path: text for path, (text, _time) in generated(tree).items()} == before


def test_a_changed_spec_is_a_drift_of_the_files_that_show_it(tree: pathlib.Path) -> None:
    spec = tree / "plugins" / "module_utils" / "node" / "subsystems" / "traffic_accounting.py"
    text = spec.read_text(encoding="utf-8")
    assert text.count('default="openai"') == 1
    spec.write_text(text.replace('default="openai"', 'default="research"'), encoding="utf-8")
    found = generate(tree, "--check")
    spec.write_text(text, encoding="utf-8")
    named = found.stderr.partition("differ from the SPECs: ")[2].partition(";")[0].split(", ")
    assert sorted(named) == [f"roles/traffic_accounting/{name}" for name in ("README.md", "defaults/main.yml", "meta/argument_specs.yml")]
