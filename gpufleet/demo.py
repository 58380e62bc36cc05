# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole road in a few minutes: a lab, its nodes converged, a second run that changes nothing, proof from outside."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import time
import typing as t

import click
import rich.box
import rich.console
import rich.table

from . import playbook, traffic_proof
from .lab_access import ROOT, Node

PREFIX = "demo"
LAB = ROOT / "build" / "lab" / PREFIX
ARTIFACTS = ROOT / "build" / "demo"


class DemoError(click.ClickException):
    """A step that did not come out as promised."""


@click.command()
def demo() -> None:
    """Show it all on this machine: lab, converge, second run, verify, traffic."""
    console = rich.console.Console(highlight=False)
    started = time.monotonic()
    # A demo that was killed may have left half a lab; starting from nothing is the one sure way on.
    _step(console, "1/6", "a scale set in an Azure that runs on this machine")
    _lab("down")
    _lab("up")
    environment = {"GPUFLEET_LAB": PREFIX}

    _step(console, "2/6", "what would be changed (ansible-playbook playbooks/site.yml --check)")
    predicted = _play("site.yml", environment, arguments="--check", quiet=True)
    _step(console, "3/6", "converge (ansible-playbook playbooks/site.yml)")
    first = _play("site.yml", environment)
    _must(_changes(predicted) == _changes(first), "the prediction of --check differs from what the run then did")
    _step(console, "4/6", "again: nothing may change")
    second = _play("site.yml", environment, quiet=True)
    _must(second.total_changed == 0, f"the second run changed something, or does not say: {second.changed}")
    _step(console, "5/6", "verify from outside (ansible-playbook playbooks/verify.yml)")
    _play("verify.yml", environment)

    _step(console, "6/6", "traffic")
    proofs = _prove()
    console.print(_table(first, second))
    for line in proofs:
        console.print(f"  [green]✔[/] {line}")
    console.print(f"\nDone in {time.monotonic() - started:.0f} s. The lab is still up:")
    console.print("  gpufleet lab status        its nodes and addresses (in .venv/bin)")
    console.print(f"  ssh -F {_short(LAB / 'ssh_config')} {_addresses()[0]}    a node")
    console.print("  make demo-down             removes all of it")


def _step(console: rich.console.Console, number: str, text: str) -> None:
    console.print(f"\n[bold cyan]{number}[/] [bold]{text}[/]")


def _lab(*command: str) -> None:
    done = subprocess.run([sys.executable, "-m", "gpufleet", "lab", *command, "--prefix", PREFIX], check=False)
    if done.returncode != 0:
        raise DemoError(f"`gpufleet lab {' '.join(command)}` ended with status {done.returncode}; its message is above")


def _play(name: str, environment: dict[str, str], *, arguments: str = "", quiet: bool = False) -> playbook.Run:
    run = playbook.run(name, directory=ARTIFACTS, environment=environment, arguments=arguments, quiet=quiet)
    if run.status != 0:
        hint = f"; see it with GPUFLEET_LAB={PREFIX} ansible-playbook playbooks/{name} {arguments}".rstrip() if quiet else ""
        raise DemoError(f"playbooks/{name} ended with status {run.status}{hint}")
    return run


def _must(right: bool, otherwise: str) -> None:
    if not right:
        raise DemoError(otherwise)


def _changes(run: playbook.Run) -> dict[str, dict[str, set[str]]]:
    return {host: {name: set(part["changes"]) for name, part in parts.items()} for host, parts in run.results.items()}


def _prove() -> list[str]:
    by_cluster: dict[str, list[str]] = {}
    for address in _addresses():
        by_cluster.setdefault(address.rsplit(".", 2)[0], []).append(address)
    lines = []
    for addresses in by_cluster.values():
        first, second = (Node(LAB, address) for address in addresses[:2])
        pods = traffic_proof.pod_to_pod(first, second)
        _must(pods.proven, f"pod traffic did not arrive as sent: {pods}")
        lines.append(
            f"pod {pods.sender} on {first.address} -> pod {pods.receiver} on {second.address}: {pods.received_bytes:,} bytes, source seen {pods.seen_source}"
        )
        internet = traffic_proof.internet_bytes(first)
        _must(internet.proven, f"internet bytes were not counted right: {internet}")
        lines.append(
            f"node {internet.node} fetched {internet.payload:,} bytes from the internet: counter internet-in rose by {internet.counted_in:,}"
        )
    return lines


def _addresses() -> list[str]:
    """Primary addresses of the lab's nodes, from the fleet model that the lab wrote."""
    fleet: dict[str, t.Any] = json.loads((LAB / "fleet.json").read_text(encoding="utf-8"))
    return [item["addresses"][0] for item in fleet["instances"]]


def _table(first: playbook.Run, second: playbook.Run) -> rich.table.Table:
    table = rich.table.Table(title="What was configured", box=rich.box.SIMPLE_HEAD)
    subsystems = list(dict.fromkeys(name for parts in first.results.values() for name in parts))
    for heading in ("node", *subsystems, "second run"):
        table.add_column(heading)
    for host in sorted(first.results):
        cells = [f"{len(part['changes'])} changes" if (part := first.results[host].get(name)) else "-" for name in subsystems]
        table.add_row(host, *cells, f"changed={(second.changed or {}).get(host, '?')}")
    return table


def _short(path: pathlib.Path) -> str:
    return str(path.relative_to(pathlib.Path.cwd())) if path.is_relative_to(pathlib.Path.cwd()) else str(path)
