# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line's groups; each lives in a file of its own."""

from __future__ import annotations

import click

from .demo import demo
from .inventory_commands import inventory
from .lab_commands import lab
from .node_commands import node


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Large GPU fleets on Azure scale sets: a local Azure to try on, and plans to look at."""


main.add_command(demo)
main.add_command(inventory)
main.add_command(lab)
main.add_command(node)
