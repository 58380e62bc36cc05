# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of the node program share."""

from __future__ import annotations

import pathlib

import pytest
from node_fakes import FakeNode


@pytest.fixture
def node(tmp_path: pathlib.Path) -> FakeNode:
    return FakeNode(tmp_path / "root")
