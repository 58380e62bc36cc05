# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of others that know Azure, fetched once into build/peers, each in a virtual environment of its own."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys
import typing as t

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PEERS = ROOT / "build" / "peers"
LIMIT_SECONDS = 900


@pytest.fixture(scope="session")
def environment() -> t.Callable[..., pathlib.Path]:
    """Makes a virtual environment with packages from PyPI, of another Python if named; returns its folder of programs."""

    def make(name: str, packages: list[str], python: str = "") -> pathlib.Path:
        folder, interpreter = PEERS / name, sys.executable
        if python:
            found = subprocess.run([str(ROOT / "scripts" / "find-python"), python], capture_output=True, text=True, check=False)
            if found.returncode != 0:
                pytest.skip(f"no Python {python} here, which {name} needs")
            interpreter = found.stdout.strip()
        stamp = folder / "packages"
        wanted = "\n".join([interpreter, *packages])
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run([interpreter, "-m", "venv", str(folder)], check=True, timeout=LIMIT_SECONDS)
            subprocess.run(
                [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *packages], check=True, timeout=LIMIT_SECONDS
            )
            stamp.write_text(wanted, encoding="utf-8")
        return folder / "bin"

    return make


@pytest.fixture(scope="session")
def debian_package() -> t.Callable[[str], pathlib.Path]:
    """Fetches and unpacks a Debian package, without installing it; returns the folder of its Python modules."""

    def fetch(name: str) -> pathlib.Path:
        if shutil.which("apt-get") is None:
            pytest.skip(f"no apt-get here, which brings {name}")
        folder = PEERS / f"deb-{name}"
        modules = folder / "usr" / "lib" / "python3" / "dist-packages"
        if not modules.is_dir():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fetched = subprocess.run(
                ["apt-get", "download", "--quiet", name], cwd=folder, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
            )
            archives = list(folder.glob("*.deb"))
            if fetched.returncode != 0 or not archives:
                pytest.skip(f"the package {name} cannot be had here: {fetched.stderr.strip().splitlines()[-1:]}")
            subprocess.run(["dpkg-deb", "-x", str(archives[0]), str(folder)], check=True, timeout=LIMIT_SECONDS)
        return modules

    return fetch
