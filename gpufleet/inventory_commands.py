# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``gpufleet inventory``: what there is, at one moment."""

from __future__ import annotations

import datetime
import pathlib

import click

from . import frozen


@click.group()
def inventory() -> None:
    """Fleets, as they are listed."""


@inventory.command()
@click.option("-i", "--inventory", "source", help="An inventory as for ansible-playbook; by default that of ansible.cfg.")
@click.option("-l", "--limit", help="A pattern of hosts, as for ansible-playbook.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=pathlib.Path),
    help="The file to write, for example fleet.json.",
)
def freeze(source: str | None, limit: str | None, output: pathlib.Path) -> None:
    """Write the fleet of this moment as a static inventory, each host with the vm_id of its machine."""
    try:
        document = frozen.freeze(frozen.listed(source, limit), now=datetime.datetime.now(datetime.UTC))
        frozen.write(document, output)
    except frozen.FreezeError as error:
        raise click.ClickException(str(error)) from error
    count = len(document["all"]["hosts"])
    click.echo(
        f"{count} host{'s' * (count != 1)} written to {output}; use it with ANSIBLE_INVENTORY_ENABLED=yaml ansible-playbook -i {output}"
    )
