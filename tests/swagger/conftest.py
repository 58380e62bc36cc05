# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Microsoft's own validator and description of the API, where both can be had."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tarfile
import typing as t

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Published examples and descriptions of Azure's API, beside this repository; it is no part of it.
CORPUS = pathlib.Path(os.environ.get("GPUFLEET_CORPUS", ROOT.parent / "shared" / "corpus")) / "azure"
LIMIT_SECONDS = 300


@pytest.fixture(scope="session")
def corpus() -> pathlib.Path:
    if not CORPUS.is_dir():
        pytest.skip("no corpus of published examples here; GPUFLEET_CORPUS names its folder")
    return CORPUS


@pytest.fixture(scope="session")
def validate(
    corpus: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> t.Callable[[list[dict[str, t.Any]]], list[dict[str, t.Any]]]:
    """Validates exchanges; each result has the ``operation`` of the description and its ``issues``."""
    if shutil.which("npm") is None:
        pytest.skip("no npm here, which brings Microsoft's validator")
    tools = ROOT / "build" / "swagger"
    tools.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, tools / name)
    subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund"], cwd=tools, check=True, timeout=LIMIT_SECONDS)
    specifications = tmp_path_factory.mktemp("swagger")
    with tarfile.open(corpus / "spec-subset.tgz") as archive:
        archive.extractall(specifications, filter="data")

    def run(exchanges: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
        done = subprocess.run(
            ["node", str(HERE / "validate.cjs"), str(specifications / "spec")],
            cwd=tools,
            input=json.dumps(exchanges),
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return t.cast("list[dict[str, t.Any]]", json.loads(done.stdout[done.stdout.index("[{") :]))

    return run
