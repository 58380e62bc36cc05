# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""ansible-inventory and ansible-playbook many times at the price of one start.

Each line of standard input is a call, made in a process of its own.
A call is {"program": "ansible-...", "arguments": [...], "environment": {...}}, its answer {"status": N, "stdout": "...", "stderr": "..."}.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
import typing as t

import azure.identity
import azure.mgmt.core  # noqa: F401 - what takes long to import is imported once
from ansible.cli import inventory, playbook

PROGRAMS = {"ansible-inventory": inventory.main, "ansible-playbook": playbook.main}


def called(call: dict[str, t.Any], stdout: int, stderr: int) -> t.NoReturn:
    """Become the command."""
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    os.environ.clear()
    os.environ.update(call["environment"])
    status = 1
    try:
        PROGRAMS[call["program"]]([call["program"], *call["arguments"]])
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


for line in sys.stdin:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            called(json.loads(line), out.fileno(), err.fileno())
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for file in (out, err):
            file.seek(0)
        answer = {"status": status, "stdout": out.read().decode(), "stderr": err.read().decode()}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
