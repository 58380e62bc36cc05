# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program as a file, and the lists that must name every part of it."""

from __future__ import annotations

import ast
import json
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.node import converge, document, program, registry
from node_fakes import ROOT, TEXTS, FakeNode

FOLDER = ROOT / "plugins/module_utils/node"
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
LIMIT_SECONDS = 60


def _interpreters() -> dict[str, str]:
    """Every other Python that this machine has and that starts."""
    found = {}
    for version in VERSIONS:
        places = [shutil.which(f"python{version}"), *map(str, pathlib.Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))]
        for place in filter(None, places):
            done = subprocess.run([place, "-V"], capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)
            if done.returncode == 0 and done.stdout.startswith(f"Python {version}."):
                found[version] = place
                break
    return found


INTERPRETERS = _interpreters()


def test_the_zipapp_holds_every_source_of_the_folder() -> None:
    assert sorted(program.SOURCES) == sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.py"))


def test_the_module_imports_every_source() -> None:
    """Ansible takes to a node what its module imports, and nothing else; the program there is made of that."""
    package = "ansible_collections.gpufleet.vmss.plugins.module_utils.node"
    asked = f"import sys, {package}.cli, {package}.program; print(*(name for name in sys.modules if name.startswith('{package}')))"
    folders = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", asked], env={"PYTHONPATH": folders}, capture_output=True, text=True, check=True, timeout=60
    )
    wanted = {package + "." + name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in program.SOURCES}
    assert wanted - {f"{package}.__init__"} <= set(done.stdout.split())


def test_the_registry_holds_every_file_of_the_folder() -> None:
    files = sorted(path.stem for path in (FOLDER / "subsystems").glob("*.py") if path.stem != "__init__")
    assert sorted(subsystem.name for subsystem in registry.SUBSYSTEMS) == files


def test_the_order_of_the_registry_is_what_each_subsystem_asks_for() -> None:
    names = [subsystem.name for subsystem in registry.SUBSYSTEMS]
    for number, subsystem in enumerate(registry.SUBSYSTEMS):
        for earlier, reason in subsystem.after.items():
            assert earlier in names[:number], f"{subsystem.name} must come after {earlier}: {reason}"
            assert reason


def test_every_variable_has_its_subsystem_as_prefix_and_a_description() -> None:
    for subsystem in registry.SUBSYSTEMS:
        for parameter in subsystem.parameters:
            assert parameter.name.startswith(f"{subsystem.name}_") and parameter.description.endswith(".")
        for template in subsystem.templates:
            assert (ROOT / "roles" / subsystem.name / "templates" / template).is_file()


def test_no_two_subsystems_claim_one_path() -> None:
    state = document.build([subsystem.name for subsystem in registry.SUBSYSTEMS], {}, lambda name, parameters: TEXTS.get(name, {}))
    claimed: dict[str, str] = {}
    for subsystem, parameters, _ in converge.parse(state):
        for path in subsystem.reads(parameters).files:
            assert path not in claimed, f"{path} is claimed by {claimed.get(path)} and {subsystem.name}"
            claimed[path] = subsystem.name


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_source_is_python_3_10_with_relative_and_standard_imports(path: pathlib.Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 10))
    for part in ast.walk(tree):
        names = [alias.name for alias in part.names] if isinstance(part, ast.Import) else []
        if isinstance(part, ast.ImportFrom) and not part.level:
            names.append(part.module or "")
        for name in names:
            assert name.split(".")[0] in sys.stdlib_module_names, f"{path.name} imports {name}"


def test_the_build_is_found_by_its_digest_and_holds_no_time() -> None:
    content = program.build()
    assert content == program.build() and len(program.digest(content)) == 12


@pytest.fixture
def built(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "node.pyz"
    path.write_bytes(program.build())
    return path


def _run(version: str, *argv: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}
    return subprocess.run(
        [INTERPRETERS[version], "-I", *argv], capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS, env=environment
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_every_python_builds_the_same_bytes_and_runs_them(version: str, built: pathlib.Path, tmp_path: pathlib.Path) -> None:
    if version not in INTERPRETERS:
        pytest.skip(f"there is no Python {version} on this machine")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(tmp_path / "sources")
    rebuild = f"import sys; sys.path.insert(0, {str(tmp_path / 'sources')!r}); from {program.PACKAGE} import program; print(program.digest(program.build()))"
    assert _run(version, "-c", rebuild).stdout.strip() == program.digest(built.read_bytes())
    from_itself = (
        f"import sys; sys.path.insert(0, {str(built)!r}); from {program.PACKAGE} import program; print(program.digest(program.build()))"
    )
    assert _run(version, "-c", from_itself).stdout.strip() == program.digest(built.read_bytes())
    shown = _run(version, str(built), "--help")
    assert shown.returncode == 0 and "converge" in shown.stdout
    # Of a tree only files are looked at: no command of this machine is asked.
    node = FakeNode(tmp_path / f"tree-{version}")
    state = document.build(["node_program", "custom"], {"custom_files": [{"path": "/etc/a", "content": "a"}]}, lambda name, parameters: {})
    converge.converge(state, node, check=False)
    node.path("/etc/a").write_text("b")
    before = node.tree()
    checked = _run(version, str(built), "--root", str(node.root), "converge", "--check")
    assert checked.returncode == 0, checked.stderr
    assert json.loads(checked.stdout)["subsystems"]["custom"]["changes"] == ["file /etc/a: change"]
    assert node.tree() == before
    explained = _run(version, str(built), "--root", str(node.root), "explain", "/etc/a")
    assert "decided by custom_files" in explained.stdout
    wrong = _run(version, str(built), "--root", str(node.root), "explain", "/etc/b")
    assert wrong.returncode == 1 and wrong.stderr.count("\n") == 1 and "set by no subsystem" in wrong.stderr
