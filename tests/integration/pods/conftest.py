# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Three converged nodes with a container runtime: two of one cluster, one of another."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from runtime_pod import Pods

A, B, OTHER = "gpua000000", "gpua000001", "gpub000000"


@pytest.fixture(scope="session")
def lab(start_lab: t.Callable[..., t.Any], tmp_path_factory: pytest.TempPathFactory) -> t.Any:
    found = start_lab("tpods", "pods")
    assert found.play("fleet.yml", tmp_path_factory.mktemp("runner")).status == 0
    return found


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    return tmp_path_factory.mktemp("runner")


@pytest.fixture
def pods(lab: t.Any) -> t.Iterator[dict[str, Pods]]:
    """The pods of each node, none of which outlives its test."""
    found = {name: Pods(lab.node(name)) for name in (A, B, OTHER)}
    yield found
    for item in found.values():
        item.clear()
