# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes for tests of the CNI plugin."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.cni import installed_file, launcher
from cni_node import CniNode


@pytest.fixture
def node(tmp_path: pathlib.Path) -> t.Iterator[CniNode]:
    plugin = tmp_path / "bin" / "gpufleet-alias"
    plugin.parent.mkdir()
    plugin.write_text(installed_file.text().replace(launcher.CACHE, str(tmp_path / "cache")), encoding="utf-8")
    plugin.chmod(0o755)
    found = CniNode(tmp_path, plugin)
    yield found
    found.close()
