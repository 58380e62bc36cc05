# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib
import typing as t

import pytest
from served_azure import Azure, running


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Azure]:
    """One for all tests that only read."""
    with running(tmp_path_factory.mktemp("azure")) as found:
        yield found


@pytest.fixture
def fresh_azure(tmp_path: pathlib.Path) -> t.Iterator[Azure]:
    """One of its own for a test that writes, or makes it misbehave."""
    with running(tmp_path) as found:
        yield found
