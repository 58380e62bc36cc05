# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

import documents as arm
import pytest
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import fleet
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.errors import AzureError
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.scope import Scope

EVERYTHING = [
    fleet.scale_set({**arm.scale_set(name, group=group), "tags": tags})
    for name, group, tags in (
        ("gpu-a", "train-west", {"cluster": "Big", "team": "x"}),
        ("gpu-b", "train-west", {"cluster": "small"}),
        ("cpu-a", "train-north", {"cluster": "Bigger"}),
        ("gpu-c", "infer", None),
    )
]


@pytest.mark.parametrize(
    ("scope", "names"),
    [
        ({}, ["cpu-a", "gpu-a", "gpu-b", "gpu-c"]),
        ({"scale_sets": ("GPU-*",)}, ["gpu-a", "gpu-b", "gpu-c"]),
        ({"scale_sets": ("gpu-?",), "exclude_scale_sets": ("*-B",)}, ["gpu-a", "gpu-c"]),
        ({"resource_groups": ("train-*",)}, ["cpu-a", "gpu-a", "gpu-b"]),
        ({"exclude_resource_groups": ("train-*",)}, ["gpu-c"]),
        ({"exclude_resource_groups": ("nowhere",), "scale_sets": ("gpu-a",)}, ["gpu-a"]),
        ({"tags": {"cluster": "Big"}}, ["gpu-a"]),
        ({"tags": {"cluster": "Big*"}}, ["cpu-a", "gpu-a"]),
        ({"tags": {"cluster": "*", "team": "*"}}, ["gpu-a"]),
        ({"tags": {"nothing": "*"}}, []),
        ({"resource_groups": ("train-west",), "scale_sets": ("gpu-b",)}, ["gpu-b"]),
    ],
)
def test_choose(scope: dict[str, t.Any], names: list[str]) -> None:
    assert sorted(item.name for item in Scope(**scope).choose(EVERYTHING, ["s"])) == names


@pytest.mark.parametrize(
    ("scope", "said"),
    [
        ({"scale_sets": ("gpu-d",)}, r"there is no scale set gpu-d in subscription s; correct scale_sets \(did you mean gpu-c\?\)"),
        ({"scale_sets": ("zzz",)}, r"correct scale_sets \(there are: cpu-a, gpu-a, gpu-b, gpu-c\)"),
        ({"resource_groups": ("train-east",)}, r"there is no resource group train-east with a scale set in it .*did you mean train-west"),
    ],
)
def test_a_name_that_does_not_exist(scope: dict[str, t.Any], said: str) -> None:
    with pytest.raises(AzureError, match=said):
        Scope(**scope).choose(EVERYTHING, ["s"])


def test_nothing_can_be_read() -> None:
    with pytest.raises(AzureError, match="no scale set is found there; this identity may lack the right to read it"):
        Scope(scale_sets=("gpu-a",)).choose([], ["s"])


@pytest.mark.parametrize(("groups", "only"), [((), ()), (("a", "b"), ("a", "b")), (("a", "b*"), ())])
def test_the_groups_that_are_asked_alone(groups: tuple[str, ...], only: tuple[str, ...]) -> None:
    assert Scope(resource_groups=groups).only_groups() == only
