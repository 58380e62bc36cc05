# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command ``gpufleet-node``: the same program at boot, by timer, and in a person's hands."""

from __future__ import annotations

import argparse
import json
import sys
import typing as t

from . import converge, registry
from .explain import explain
from .facts import read as facts_read
from .facts.model import Facts
from .spec import NodeError
from .system import System


def main(argv: t.Sequence[str] | None = None) -> int:
    """Run one command; 0 is success, 1 a failure told in one line, 2 a wrong command line."""
    options = _parser().parse_args(argv)
    system = System(options.root)
    try:
        return int(options.call(options, system))
    except NodeError as error:
        sys.stderr.write(f"gpufleet-node: {error}\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gpufleet-node", description="Read, plan and converge this node.")
    parser.add_argument("--root", default="/", help="work on the tree below this directory (default: /)")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("converge", help="bring the node to its stored state")
    command.add_argument("--check", action="store_true", help="say what would change, and change nothing")
    command.add_argument("--only", action="append", default=[], metavar="SUBSYSTEM", help="this subsystem alone; may be repeated")
    command.set_defaults(call=_converge)

    command = commands.add_parser("facts", help="print the facts that the stored state needs, as JSON")
    command.set_defaults(call=_facts)

    command = commands.add_parser("plan", help="replay a plan from saved facts and state")
    command.add_argument("--facts", required=True, metavar="FILE", help="facts as saved by a failed run, or by `facts`")
    command.add_argument("--state", required=True, metavar="FILE", help="the state document of that run")
    command.set_defaults(call=_plan)

    command = commands.add_parser("explain", help="say which variable set a file or a sysctl")
    command.add_argument("target", metavar="FILE|SYSCTL")
    command.set_defaults(call=_explain)
    return parser


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


def _converge(options: argparse.Namespace, system: System) -> int:
    for name in options.only:
        registry.subsystem(name)
    if options.root != "/" and not options.check:
        # Files would go below the root, but rules and units to the machine that this runs on.
        raise NodeError(f"--root {options.root} works with --check only; converge the node itself without --root")
    result = converge.converge(converge.stored_document(system, options.only), system, check=options.check)
    result.pop("diff")
    _say(json.dumps(result, indent=1))
    if result["needs"]["packages"] and not options.check:
        raise NodeError(f"packages are missing: {', '.join(result['needs']['packages'])}; install them, then run this again")
    return 0


def _facts(options: argparse.Namespace, system: System) -> int:
    facts = facts_read.read(system, converge.reads(converge.stored_document(system)))
    _say(json.dumps(facts.to_document(), indent=1))
    return 0


def _plan(options: argparse.Namespace, system: System) -> int:
    facts = Facts.from_document(_load(options.facts))
    document = _load(options.state)
    _say(json.dumps(converge.result(facts, converge.plan_all(facts, document), check=True), indent=1))
    return 0


def _explain(options: argparse.Namespace, system: System) -> int:
    document = converge.stored_document(system)
    facts = facts_read.read(system, converge.reads(document))
    _say("\n".join(explain(facts, document, options.target)))
    return 0


def _load(path: str) -> t.Any:
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise NodeError(f"{path} cannot be used: {error}") from error
