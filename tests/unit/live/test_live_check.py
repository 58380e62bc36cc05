# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparison with a real Azure, tried on two labs: nothing differs, until one of them is made to differ."""

from __future__ import annotations

import importlib.util
import json
import pathlib
import sys
import typing as t

import pytest
from served_azure import running

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def check() -> t.Any:
    sys.path.insert(0, str(ROOT / "tests" / "live"))
    spec = importlib.util.spec_from_file_location("live_check", ROOT / "tests" / "live" / "check.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_two_labs_are_the_same_and_nothing_private_is_kept(check: t.Any, tmp_path: pathlib.Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with running(tmp_path / "one") as one, running(tmp_path / "two") as two:
        assert not any(check.compare(check.of_lab(one), check.of_lab(two), tmp_path / "kept").values())
        two.service.faults.add({"path": "gpua/virtualMachines", "answer": "null_list"})
        two.service.faults.add({"path": "gpua/skus", "status": 403})
        found = check.compare(check.of_lab(one), check.of_lab(two), tmp_path / "kept")
    assert "/value: Azure has list, the lab has null" in found["uniform-instances"]
    assert found["uniform-skus"][0] == "status: Azure 200, the lab 403" or "status: Azure 200, the lab 403" in found["uniform-skus"]
    kept = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "kept").iterdir())
    assert len(list((tmp_path / "kept").iterdir())) == 2 * len(check.CALLS)
    for private in (one.subscription, "10.1.0.4", "ssh-ed25519", "azureuser", "gpufleet-lab", "gpua000000", one.service.principal.tenant):
        assert private not in kept, private


def test_a_shape_knows_types_and_places(check: t.Any) -> None:
    shapes = sys.modules["shapes"]
    real = json.loads('{"a": 1, "b": [{"c": "x"}, {"d": null}]}')
    assert shapes.differences(real, {"a": "1", "b": [], "e": True}) == [
        "/b/[]: Azure has object, the lab has nothing",
        "/b/[]/c: Azure has text, the lab has nothing",
        "/b/[]/d: Azure has null, the lab has nothing",
        "/e: the lab has truth, Azure has nothing",
        "/a: Azure has number, the lab has text",
    ]
