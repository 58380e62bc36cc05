# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program itself on the node: zipapp, ``current`` link, command; all that runs at boot or by timer calls it."""

from __future__ import annotations

import functools
import posixpath

from .. import program
from ..desired import Desired, DesiredFile
from ..facts.model import Facts, Reads
from ..spec import Parameter
from ..subsystem import Parameters, Subsystem, Texts

DIRECTORY = "/usr/local/lib/gpufleet"
CURRENT = f"{DIRECTORY}/current"
PREVIOUS = f"{DIRECTORY}/previous"
COMMAND = "/usr/local/bin/gpufleet-node"

SPEC = (
    Parameter(
        name="node_program_reboot",
        type="str",
        default="never",
        choices=("never", "allowed"),
        description="Whether a run may reboot the node when a change needs it; with never the need is only reported.",
    ),
)


@functools.lru_cache(maxsize=1)
def _build() -> bytes:
    return program.build()


def _path() -> str:
    return f"{DIRECTORY}/node-{program.digest(_build())}.pyz"


def _reads(parameters: Parameters) -> Reads:
    return Reads(
        files=frozenset({_path(), CURRENT, PREVIOUS, COMMAND, DIRECTORY, "/etc/gpufleet", "/etc/gpufleet/state.d"}),
        directories=frozenset({DIRECTORY}),
    )


def _desired(parameters: Parameters, texts: Texts, facts: Facts) -> Desired:
    build = posixpath.basename(_path())
    previous = _previous(build, facts)
    # The build that was current before this one stays, for a way back; older ones go.
    keep = {build, previous}
    old = [name for name in facts.directories.get(DIRECTORY, ()) if name.startswith("node-") and name not in keep]
    return Desired(
        directories={DIRECTORY: 0o755, "/etc/gpufleet": 0o755, "/etc/gpufleet/state.d": 0o700},
        files=(
            DesiredFile(path=_path(), content=_build(), mode=0o755),
            *(DesiredFile(path=f"{DIRECTORY}/{name}") for name in old),
        ),
        links={**({PREVIOUS: previous} if previous else {}), CURRENT: build, COMMAND: CURRENT},
    )


def _previous(build: str, facts: Facts) -> str | None:
    """The build to keep beside ``build``: what is current until this run, or what was so before the last change."""
    current, previous = (found.link if (found := facts.files.get(path)) else None for path in (CURRENT, PREVIOUS))
    return current if current and current != build else previous


SUBSYSTEM = Subsystem(
    name="node_program",
    summary="Install the node program, its command and its stored state.",
    spec=SPEC,
    reads=_reads,
    desired=_desired,
)
