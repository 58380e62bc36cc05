# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``gpufleet node``: what a node would do, replayed from saved files."""

from __future__ import annotations

import pathlib
import sys
import typing as t

import click

from lab.paths import ROOT


def _program() -> t.Any:
    """The node program: beside this file in a clone, else wherever Ansible finds the collection."""
    for place in (ROOT / "collections", pathlib.Path.home() / ".ansible" / "collections", pathlib.Path("/usr/share/ansible/collections")):
        if (place / "ansible_collections" / "gpufleet" / "vmss").is_dir():
            sys.path.insert(0, str(place))
            from ansible_collections.gpufleet.vmss.plugins.module_utils.node import cli

            return cli
    raise click.ClickException(
        "the collection gpufleet.vmss is not installed; run this in a clone, or: ansible-galaxy collection install gpufleet.vmss"
    )


@click.group()
def node() -> None:
    """Plans of the node program."""


@node.command()
@click.option("--facts", required=True, type=click.Path(path_type=pathlib.Path), help="Facts as a failed run saved them.")
@click.option("--state", required=True, type=click.Path(path_type=pathlib.Path), help="The state document of that run.")
def plan(facts: pathlib.Path, state: pathlib.Path) -> None:
    """Replay a plan anywhere, without the node."""
    sys.exit(_program().main(["plan", "--facts", str(facts), "--state", str(state)]))
