# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The CNI plugin as the one file that lies on a node: the launcher, and in it as text the program's parts one after another."""

from __future__ import annotations

import ast
import functools
import hashlib
import pkgutil
import types

from ..spec import NodeError
from . import call, gpufleet_alias, ipam, launcher, plain_json, rtnetlink

# Imported, and not named by their files: Ansible takes to a node what is imported.
PARTS = (plain_json, rtnetlink, call, ipam, gpufleet_alias)
# Isolated, and without site: neither a user's modules nor an administrator's .pth files come between a pod and its network.
INTERPRETER = "/usr/bin/python3 -IS"


@functools.lru_cache(maxsize=1)
def text() -> str:
    """The whole file. The plugin needs no other, so an upgrade of this program never leaves it half there."""
    program = "from __future__ import annotations\n" + "\n".join(_without_imports_of_each_other(_source(part)) for part in PARTS)
    digest = hashlib.sha256(program.encode()).hexdigest()[:12]
    start = _source(launcher).replace('DIGEST = ""', f'DIGEST = "{digest}"')
    # A raw literal: the program holds no three single quotes, which a test looks at.
    return f"#!{INTERPRETER}\n" + start.replace('SOURCE = ""', f"SOURCE = r'''\n{program}'''")


def _source(module: types.ModuleType) -> str:
    name = module.__name__.rpartition(".")[2] + ".py"
    content = pkgutil.get_data(__package__ or "", name)
    if content is None:
        raise NodeError(f"the program's own source cni/{name} cannot be read; it was started in a way that hides its files")
    return content.decode()


def _without_imports_of_each_other(source: str) -> str:
    lines = source.splitlines(keepends=True)
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.ImportFrom) and (statement.level or statement.module == "__future__"):
            for number in range(statement.lineno - 1, statement.end_lineno or statement.lineno):
                lines[number] = ""
    return "".join(lines)
