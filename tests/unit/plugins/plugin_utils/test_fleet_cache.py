# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import json

import documents as arm
import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import fleet
from ansible_collections.gpufleet.vmss.plugins.plugin_utils import fleet_cache

FOUND = dataclasses.replace(
    fleet.instance(fleet.scale_set(arm.scale_set()), arm.uniform(0)),
    primary_address="10.1.0.4",
    alias_addresses=("10.1.0.5", "10.1.0.16/28"),
)
TEXT = fleet_cache.encode(fleet_cache.Kept(instances=(FOUND,), read_at=17.5))


def test_what_is_kept_is_what_was_read() -> None:
    assert fleet_cache.decode(TEXT) == fleet_cache.Kept(instances=(FOUND,), read_at=17.5)


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        7,
        [],
        "",
        "not json",
        TEXT[:-20],
        "{}",
        json.dumps({**json.loads(TEXT), "fields": ["name"]}),
        json.dumps({**json.loads(TEXT), "instances": [[1]]}),
        json.dumps({**json.loads(TEXT), "instances": None}),
        json.dumps({**json.loads(TEXT), "read_at": None}),
        json.dumps({name: value for name, value in json.loads(TEXT).items() if name != "read_at"}),
    ],
)
def test_anything_else_is_nothing(wrong: object) -> None:
    assert fleet_cache.decode(wrong) is None
