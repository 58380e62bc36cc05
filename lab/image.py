# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Root file systems of nodes: made once for each recipe by mmdebstrap, shared by all labs, never changed."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import typing as t

from .paths import IMAGES, ROOT, LabError

SUITES = ("bookworm", "trixie")
RECIPE = ROOT / "lab" / "images"
# Twenty seconds when the archive answers quickly; ten times that has been seen.
BUILD_LIMIT_SECONDS = 1200


def packages(name: str) -> list[str]:
    """The package names of one list of the recipe."""
    lines = (RECIPE / name).read_text(encoding="utf-8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def digest(more: t.Iterable[str] = ()) -> str:
    """Twelve hexadecimal digits that change with the recipe, and with the packages beyond it."""
    content = b"".join(path.name.encode() + path.read_bytes() for path in sorted(RECIPE.iterdir()))
    return hashlib.sha256(content + " ".join(more).encode()).hexdigest()[:12]


def path(suite: str, kind: str = "container", more: t.Iterable[str] = ()) -> pathlib.Path:
    return IMAGES / f"{suite}-{kind}-{digest(more)}"


def build_argv(suite: str, target: pathlib.Path, kind: str = "container", more_packages: t.Iterable[str] = ()) -> list[str]:
    """The mmdebstrap command line for one root file system."""
    wanted = [*packages("packages.txt"), *(packages("machine-packages.txt") if kind == "machine" else []), *more_packages]
    more = [f'--customize-hook={RECIPE / "customize-machine"} "$1"'] if kind == "machine" else []
    return [
        "mmdebstrap",
        "--quiet",
        "--mode=root",
        "--variant=minbase",
        f"--include={','.join(wanted)}",
        f'--customize-hook={RECIPE / "customize"} "$1" {RECIPE}',
        *more,
        suite,
        str(target),
    ]


def ensure(suite: str, say: t.Callable[[str], None], *, kind: str = "container", more: t.Sequence[str] = ()) -> pathlib.Path:
    """The root file system of a suite, made now if it is not there. A kill while it is made leaves nothing that looks whole.

    ``more`` are packages besides those of the recipe.
    """
    if suite not in SUITES:
        raise LabError(f"image {suite} is not known; known: {', '.join(SUITES)}")
    target = path(suite, kind, more)
    if target.is_dir():
        return target
    IMAGES.mkdir(parents=True, exist_ok=True)
    with _locked(IMAGES / ".lock"):
        if target.is_dir():
            return target
        say(f"making the root file system of {suite} for a {kind} (once; half a minute or more)")
        temporary = IMAGES / f".{target.name}.part"
        shutil.rmtree(temporary, ignore_errors=True)
        log = IMAGES / f"{suite}-{kind}.log"
        with log.open("w", encoding="utf-8") as output:
            try:
                done = subprocess.run(
                    build_argv(suite, temporary, kind, more),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    timeout=BUILD_LIMIT_SECONDS,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise LabError(
                    f"the root file system of {suite} was not ready within {BUILD_LIMIT_SECONDS} seconds; see {log}, then try again"
                ) from error
        if done.returncode != 0:
            last = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:])
            raise LabError(
                f"the root file system of {suite} could not be made; is the Debian archive reachable? The last lines of {log}:\n{last}"
            )
        os.rename(temporary, target)
    return target


@contextlib.contextmanager
def _locked(lock: pathlib.Path) -> t.Iterator[None]:
    with lock.open("w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
