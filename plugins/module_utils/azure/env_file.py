# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of KEY=VALUE lines that say how to reach an Azure, such as a lab writes for its inventory."""

from __future__ import annotations

import pathlib
import shlex

from .errors import AzureError

# A folder that holds one of these is the root of a project or a collection: a relative path is not looked for above it.
ROOT_MARKS = ("galaxy.yml", "ansible.cfg", ".git")


def find(name: str, *, beside: pathlib.Path, option: str = "env_file") -> pathlib.Path:
    """The file that ``name`` means: absolute, or relative to the folder ``beside`` or one above it up to the project's root.

    Raises AzureError where there is none.
    """
    wanted = pathlib.Path(name).expanduser()
    if wanted.is_absolute():
        candidates = [wanted]
    else:
        candidates = []
        for folder in (beside, *beside.parents):
            candidates.append(folder / wanted)
            if any((folder / mark).exists() for mark in ROOT_MARKS):
                break
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    raise AzureError(
        f"{option} {name} does not exist (last place looked at: {candidates[-1]}); "
        f"a lab writes it when it starts (`gpufleet lab up`): start that lab, name another one in GPUFLEET_LAB, or correct {option}"
    )


def read(path: pathlib.Path) -> dict[str, str]:
    """The variables of one file. Values may be quoted as in a shell; nothing is expanded or run.

    Raises AzureError for a file that cannot be read, and for a line that is no assignment (named by number, its text may be a secret).
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AzureError(f"env_file {path} cannot be read ({error}); make it readable for this user or correct env_file") from error
    variables: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip().removeprefix("export ").lstrip()
        if not stripped or stripped.startswith("#"):
            continue
        key, equals, value = stripped.partition("=")
        try:
            words = shlex.split(value, comments=True)
        except ValueError:
            words = ["", ""]
        if not equals or not key.isidentifier() or len(words) > 1:
            raise AzureError(f"env_file {path}: line {number} is not NAME=VALUE (quote a value that has spaces)")
        variables[key] = words[0] if words else ""
    return variables
