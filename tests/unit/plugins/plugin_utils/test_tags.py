# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which subsystems a run with tags means."""

from __future__ import annotations

import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.spec import NodeError
from ansible_collections.gpufleet.vmss.plugins.plugin_utils import tags

NAMES = ("node_program", "custom", "alias_network", "traffic_accounting")


@pytest.mark.parametrize(
    ("run", "skip", "left"),
    [
        ((), (), NAMES),
        (("all",), (), NAMES),
        (("tagged",), (), NAMES),
        (("always",), (), NAMES),
        (("custom",), (), ("node_program", "custom")),
        (("traffic_accounting", "custom"), (), ("node_program", "custom", "traffic_accounting")),
        (("all",), ("custom", "alias_network"), ("node_program", "traffic_accounting")),
        (("custom",), ("custom",), ("node_program",)),
        (("custom",), ("node_program",), ("custom",)),
        (("node_program",), (), ("node_program",)),
        (("all",), ("all",), ()),
        (("all",), ("tagged",), ()),
        (("all",), ("untagged", "never"), NAMES),
    ],
)
def test_subsystems_that_are_left(run: tuple[str, ...], skip: tuple[str, ...], left: tuple[str, ...]) -> None:
    assert tags.narrow(NAMES, run, skip) == list(left)


@pytest.mark.parametrize(("run", "skip"), [(("custm",), ()), (("all",), ("custm",)), (("custom", "custm"), ())])
def test_a_tag_that_names_nothing_is_an_error_with_the_nearest(run: tuple[str, ...], skip: tuple[str, ...]) -> None:
    with pytest.raises(NodeError, match=r"tag custm names no subsystem; did you mean custom\?"):
        tags.narrow(NAMES, run, skip)
