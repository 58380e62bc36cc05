# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib
import tempfile
import typing as t

import pytest


@pytest.fixture(scope="session")
def lab(start_lab: t.Callable[..., t.Any]) -> t.Any:
    """One node of each image."""
    return start_lab("tsite", "two_nodes")


@pytest.fixture
def home() -> t.Iterator[pathlib.Path]:
    """A home of a run's own. Its path is short: the sockets of ssh lie below it, and their names may not be long."""
    with tempfile.TemporaryDirectory(prefix="home", dir="/tmp") as folder:
        yield pathlib.Path(folder)
