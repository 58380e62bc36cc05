# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every benchmark leaves: one file of flat figures, and the same as a table with the goal beside each."""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import platform
import typing as t

import rich.box
import rich.console
import rich.table

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "build" / "bench"


def write(name: str, figures: t.Mapping[str, float], runs: t.Mapping[str, t.Any], goals: t.Mapping[str, str]) -> pathlib.Path:
    """Write ``build/bench/NAME.json`` and print it. ``goals`` are for people; nothing is asserted."""
    FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = FOLDER / f"{name}.json"
    document = {
        "name": name,
        "machine": machine(),
        "when": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "figures": dict(figures),
        "runs": dict(runs),
    }
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    table = rich.table.Table(title=name, box=rich.box.SIMPLE_HEAD)
    for heading in ("figure", "value", "goal"):
        table.add_column(heading)
    for key, value in figures.items():
        table.add_row(key, f"{value:,.3g}" if isinstance(value, float) and abs(value) < 1000 else f"{value:,.0f}", goals.get(key, ""))
    console = rich.console.Console()
    console.print(table)
    console.print(", ".join(f"{key} {value}" for key, value in machine().items()))
    console.print(f"written to {path}")
    return path


def machine() -> dict[str, t.Any]:
    """What the figures were measured on."""
    memory = next(line for line in pathlib.Path("/proc/meminfo").read_text(encoding="ascii").splitlines() if line.startswith("MemTotal"))
    models = [
        line.partition(": ")[2]
        for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii").splitlines()
        if line.startswith("model name")
    ]
    return {
        "cpus": os.cpu_count(),
        "cpu": models[0] if models else platform.machine(),
        "memory_gib": round(int(memory.split()[1]) / 1024**2),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }
