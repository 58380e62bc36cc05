# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""In what an instance differs from the model of its set, its network aside."""

from __future__ import annotations

import copy
import typing as t

import pytest
from alias_documents import configuration, network, scale_set, storage
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import model_drift

HELD = [configuration("primary", primary=True)]
WANTED = [*HELD, configuration("alias001")]
EXTENSION = {"name": "agent", "properties": {"publisher": "P", "type": "T", "typeHandlerVersion": "1.0", "protectedSettings": {"key": "x"}}}


def instance(
    *, latest: bool = False, extensions: t.Any = None, sku: str = "standard_nd96isr_h100_v5", **properties: t.Any
) -> dict[str, t.Any]:
    """An instance with all that ARM adds to a model's words: ids, names, exact versions, states."""
    held = storage(dataDisks=[])
    held["imageReference"] |= {"exactVersion": "1.0.0"}
    held["osDisk"] |= {"name": "gpu_0_os", "managedDisk": {**held["osDisk"]["managedDisk"], "id": "/disks/gpu_0_os"}}
    found: dict[str, t.Any] = {
        "instanceId": "0",
        "sku": {"name": sku, "tier": "Standard"},
        "properties": {
            "latestModelApplied": latest,
            "storageProfile": held,
            "osProfile": {"computerName": "gpu000000", "adminUsername": "azureuser", "secrets": [], "allowExtensionOperations": True},
            "networkProfileConfiguration": network(HELD),
            **properties,
        },
    }
    if extensions is not None:
        found["resources"] = extensions
    return found


def of(path: str, value: t.Any, **given: t.Any) -> dict[str, t.Any]:
    """A set whose model has another value at a path below virtualMachineProfile."""
    document = scale_set(WANTED, **given)
    inside = document["properties"]["virtualMachineProfile"]
    *folders, last = path.split(".")
    for folder in folders:
        inside = inside.setdefault(folder, {})
    inside[last] = value
    return document


def test_only_the_network_differs() -> None:
    assert model_drift.between(instance(), scale_set(WANTED)) == ()


def test_arms_own_word_comes_first() -> None:
    """An instance that has the latest model is not compared: ARM shows less of it than it compares itself."""
    assert model_drift.between(instance(latest=True), of("storageProfile.imageReference.version", "2.0.0")) == ()


def test_a_difference_that_is_nowhere_to_be_seen_is_one() -> None:
    assert model_drift.between(instance(), scale_set(HELD)) == (model_drift.UNSEEN,)
    other = scale_set(HELD)
    other["properties"]["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"][0]["properties"]["enableFpga"] = True
    assert model_drift.between(instance(), other) == ()


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (of("storageProfile.imageReference.version", "2.0.0"), "storageProfile.imageReference.version"),
        (of("storageProfile.imageReference", {"id": "/images/new"}), "storageProfile.imageReference.id"),
        (of("storageProfile.osDisk.diskSizeGB", 128), "storageProfile.osDisk.diskSizeGB"),
        (
            of("storageProfile.osDisk.managedDisk.storageAccountType", "Standard_LRS"),
            "storageProfile.osDisk.managedDisk.storageAccountType",
        ),
        (of("storageProfile.dataDisks", [{"lun": 0, "diskSizeGB": 4}]), "storageProfile.dataDisks[0]"),
        (of("osProfile.adminUsername", "other"), "osProfile.adminUsername"),
        (of("securityProfile.encryptionAtHost", True), "securityProfile.encryptionAtHost"),
        (of("licenseType", "RHEL_BYOS"), "licenseType"),
        (of("extensionProfile.extensions", [EXTENSION]), "extensionProfile[agent]"),
        ({**scale_set(WANTED), "sku": {"name": "Standard_ND96isr_H200_v5", "capacity": 9}}, "sku.name"),
    ],
)
def test_what_differs(document: dict[str, t.Any], expected: str) -> None:
    assert model_drift.between(instance(), document) == (expected,)


def test_what_a_model_says_and_azure_says_otherwise_is_no_difference() -> None:
    """What is off and what is left out; a prefix in place of a name; what is never shown; words in another case."""
    document = of("osProfile.customData", "c2VjcmV0")
    profile = document["properties"]["virtualMachineProfile"]
    profile["securityProfile"] = {"encryptionAtHost": False}
    profile["hardwareProfile"] = {}
    profile["userData"] = "aGk="
    profile["storageProfile"]["imageReference"]["publisher"] = "p"
    assert model_drift.between(instance(), document) == ()


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ([{"lun": 0, "diskSizeGB": 4, "name": "given"}], ()),
        ([{"lun": 0, "diskSizeGB": 8}], ("storageProfile.dataDisks[0].diskSizeGB",)),
        ([{"lun": 0, "diskSizeGB": 4}, {"lun": 1, "diskSizeGB": 4}], ("storageProfile.dataDisks[1]",)),
    ],
)
def test_disks_are_the_same_by_their_lun(held: list[t.Any], expected: tuple[str, ...]) -> None:
    document = of("storageProfile.dataDisks", [{"lun": 0, "diskSizeGB": 4}])
    assert model_drift.between(instance(storageProfile=storage(dataDisks=held)), document) == expected


def test_a_disk_that_the_model_no_longer_has_would_go() -> None:
    held = storage(dataDisks=[{"lun": 0, "diskSizeGB": 4}])
    assert model_drift.between(instance(storageProfile=held), scale_set(WANTED)) == ("storageProfile.dataDisks[0]",)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ()),
        ({"typeHandlerVersion": "1.1"}, ("extensionProfile[agent].properties.typeHandlerVersion",)),
    ],
)
def test_extensions_are_the_same_by_their_name(change: dict[str, str], expected: tuple[str, ...]) -> None:
    held = copy.deepcopy(EXTENSION)
    del held["properties"]["protectedSettings"]  # never shown
    held |= {"name": "gpu_0/agent", "id": "/x/extensions/agent"}
    held["properties"] |= {"provisioningState": "Succeeded", **change}
    assert model_drift.between(instance(extensions=[held]), of("extensionProfile.extensions", [EXTENSION])) == expected


def test_an_extension_that_the_model_no_longer_has_would_go() -> None:
    assert model_drift.between(instance(extensions=[EXTENSION]), scale_set(WANTED)) == ("extensionProfile[agent]",)
