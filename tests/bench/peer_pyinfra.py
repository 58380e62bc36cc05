# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""pyinfra as a peer: its environment, made once and apart from the project's, and what its output says."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "peers" / "pyinfra"
VERSION = "3.10.0"
LIMIT_SECONDS = 300


def program() -> pathlib.Path:
    """The program in ``build/peers/pyinfra``. Raises RuntimeError with pip's words where it cannot be had."""
    stamp = FOLDER / "packages"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != VERSION:
        for argv in (
            [sys.executable, "-m", "venv", "--clear", str(FOLDER)],
            [str(FOLDER / "bin" / "python"), "-m", "pip", "install", "--quiet", f"pyinfra=={VERSION}"],
        ):
            done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
            if done.returncode != 0:
                raise RuntimeError(done.stderr.strip())
        stamp.write_text(VERSION, encoding="utf-8")
    return FOLDER / "bin" / "pyinfra"


def command(nodes: list[str], ssh_config: pathlib.Path, settings: pathlib.Path) -> list[str]:
    """``nodes`` are addresses, as the settings name them."""
    data = ["--data", f"ssh_config_file={ssh_config}", "--data", f"bench_settings={settings}"]
    return [str(program()), ",".join(nodes), str(ROOT / "tests" / "bench" / "pyinfra_deploy.py"), "-y", "--sudo", *data]


def changed(output: str, operations: int) -> int:
    """How many operations changed something, summed over nodes. Raises RuntimeError when not all of them came to an answer."""
    found = re.search(r"Grand total +(\S+) +(\S+) +(\S+) +(\S+)", output)
    if not found:
        raise RuntimeError(f"pyinfra's output has no grand total:\n{output}")
    _total, success, failed, same = (0 if word == "-" else int(word.replace(",", "")) for word in found.groups())
    if failed or success + same < operations:
        raise RuntimeError(f"pyinfra failed in {failed} operations, and {success + same} of {operations} ended well:\n{output}")
    return success
