# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``gpufleet lab``: a local Azure for scale sets."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import typing as t

import click
import rich.box
import rich.console
import rich.table

from lab import control, lifecycle
from lab.azure.scheduled_events import TYPES
from lab.description import DescriptionError
from lab.paths import ROOT, LabError, Paths

DEMO = ROOT / "lab" / "fleets" / "demo.yml"
prefix_option = click.option(
    "--prefix", default="demo", show_default=True, help="Name of the lab; two labs with two names can run at once."
)


class LabGroup(click.Group):
    """Turns a lab's errors into one message and exit status 1."""

    def invoke(self, ctx: click.Context) -> t.Any:
        try:
            return super().invoke(ctx)
        except (LabError, DescriptionError) as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=LabGroup)
def lab() -> None:
    """An Azure for scale sets that runs on this machine."""


@lab.command()
@click.option(
    "-f",
    "--file",
    type=click.Path(path_type=pathlib.Path),
    default=DEMO,
    show_default="the demo's",
    help="Description of the fleet (YAML).",
)
@prefix_option
def up(file: pathlib.Path, prefix: str) -> None:
    """Start a lab and wait until its nodes run."""
    built = lifecycle.up(prefix, file, click.echo)
    paths = Paths(prefix)
    click.echo(
        f"lab {prefix} is up: {len(built.instances)} instances in {len(built.description.scale_sets)} scale sets; its files are in {paths.access}"
    )


@lab.command()
@prefix_option
def down(prefix: str) -> None:
    """Remove a lab and all that it made."""
    click.echo(f"lab {prefix} is gone" if lifecycle.down(prefix) else f"there was no lab {prefix}")


@lab.command()
@prefix_option
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def status(prefix: str, as_json: bool) -> None:
    """Show a lab's nodes and addresses."""
    found = lifecycle.status(prefix)
    if as_json:
        click.echo(json.dumps(dataclasses.asdict(found), indent=1))
        return
    table = rich.table.Table(title=f"lab {prefix}: ARM at {found.arm}", box=rich.box.SIMPLE_HEAD)
    for heading in ("node", "scale set", "address", "alias addresses", "systemd"):
        table.add_column(heading)
    for item in found.instances:
        first, *aliases = item["addresses"]
        table.add_row(
            item["computer_name"],
            item["scale_set"],
            first,
            f"{aliases[0]} … {aliases[-1]}" if aliases else "-",
            found.nodes.get(item["computer_name"], item["kind"]),
        )
    rich.console.Console().print(table)


@lab.command(context_settings={"ignore_unknown_options": True})
@prefix_option
@click.argument("node")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def ssh(prefix: str, node: str, command: tuple[str, ...]) -> None:
    """Log in to a node, or run a command there."""
    config = Paths(prefix).access / "ssh_config"
    if not config.exists():
        raise LabError(f"there is no lab {prefix} on this machine; start one with `gpufleet lab up --prefix {prefix}`")
    instances = json.loads((config.parent / "fleet.json").read_text(encoding="utf-8"))["instances"]
    named = {item["computer_name"]: item["addresses"][0] for item in instances} | {item["name"]: item["addresses"][0] for item in instances}
    if node not in named and node not in named.values():
        raise LabError(f"lab {prefix} has no node {node}; it has: {', '.join(item['computer_name'] for item in instances)}")
    os.execvp("ssh", ["ssh", "-F", str(config), named.get(node, node), *command])  # noqa: S606 - a person's own command


@lab.command()
@prefix_option
@click.option("--clear", is_flag=True, help="Remove all faults.")
@click.argument("settings", nargs=-1)
def fault(prefix: str, clear: bool, settings: tuple[str, ...]) -> None:
    """Make the lab's Azure misbehave, or show how it does.

    SETTINGS are name=value pairs: path and method (patterns), after, times, latency, status, code, retry_after, answer,
    operation. For example: path=virtualMachines status=429 retry_after=2 times=3
    """
    paths = Paths(prefix)
    if clear:
        control.ask(paths, "DELETE", "/faults")
    if settings:
        control.ask(paths, "POST", "/faults", dict(_setting(item) for item in settings))
    for item in control.ask(paths, "GET", "/faults"):
        click.echo(" ".join(f"{key}={value}" for key, value in item.items() if value not in ("", None, 0, 0.0)))


def _setting(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals:
        raise LabError(f"{text!r} is no name=value pair, for example status=503")
    if name in ("path", "method", "code", "answer", "operation"):
        return name, value
    try:
        return name, float(value) if "." in value else int(value)
    except ValueError:
        return name, value


@lab.command()
@prefix_option
@click.option("--notice", type=float, help="Seconds until it starts by itself; 0 at once. [default: the least that Azure gives]")
@click.argument("node")
@click.argument("kind", metavar="TYPE", type=click.Choice(TYPES))
def event(prefix: str, notice: float | None, node: str, kind: str) -> None:
    """Schedule an event of the platform for a node, as its IMDS then shows it."""
    click.echo(json.dumps(control.ask(Paths(prefix), "POST", "/events", {"node": node, "type": kind, "notice": notice}), indent=1))


@lab.command()
@prefix_option
@click.argument("node")
def repair(prefix: str, node: str) -> None:
    """Do to a node what its set's automatic repairs do to a sick one: replace (unless the set says otherwise), reimage or restart."""
    control.ask(Paths(prefix), "POST", "/repairs", {"node": node})
