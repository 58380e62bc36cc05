# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Models, instances and NICs in ARM's shape, for the tests of alias ipConfigurations."""

from __future__ import annotations

import typing as t

from hypothesis import strategies as st

Document = dict[str, t.Any]
GROUP = "/subscriptions/s/resourceGroups/rg"
SUBNET = {"id": f"{GROUP}/providers/Microsoft.Network/virtualNetworks/v/subnets/gpu"}
ASG = {"id": f"{GROUP}/providers/Microsoft.Network/applicationSecurityGroups/nodes"}


def configuration(name: str, *, primary: bool | None = False, **more: t.Any) -> Document:
    flag = {} if primary is None else {"primary": primary}
    return {"name": name, "properties": {**flag, "subnet": SUBNET, "privateIPAddressVersion": "IPv4", **more}}


def names(held: t.Iterable[t.Mapping[str, t.Any]]) -> list[str]:
    return [item["name"] for item in held]


def interface(held: list[Document]) -> Document:
    """A Flexible instance's NIC."""
    return {
        "name": "node-nic",
        "id": f"{GROUP}/providers/Microsoft.Network/networkInterfaces/node-nic",
        "etag": 'W/"1"',
        "location": "westeurope",
        "properties": {"primary": True, "enableAcceleratedNetworking": True, "ipConfigurations": held, "auxiliaryMode": "None"},
    }


def network(held: list[Document]) -> Document:
    return {
        "networkInterfaceConfigurations": [
            {"name": "nic", "properties": {"primary": True, "enableIPForwarding": True, "ipConfigurations": held, "dnsSettings": {}}}
        ]
    }


def storage(**more: t.Any) -> Document:
    return {
        "osDisk": {"osType": "Linux", "createOption": "FromImage", "diskSizeGB": 64, "managedDisk": {"storageAccountType": "Premium_LRS"}},
        "imageReference": {"publisher": "P", "offer": "O", "sku": "S", "version": "1.0.0"},
        **more,
    }


def scale_set(held: list[Document], **profile: t.Any) -> Document:
    """A set with properties that this project does not know, and keys in no order."""
    return {
        "name": "gpu",
        "id": f"{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/gpu",
        "zunknown": [1, {"b": None, "a": 2.0}],
        "etag": '"7"',
        "sku": {"name": "Standard_ND96isr_H100_v5", "tier": "Standard", "capacity": 2},
        "properties": {
            "upgradePolicy": {"mode": "Manual"},
            "virtualMachineProfile": {
                "storageProfile": storage(),
                "networkProfile": network(held),
                "osProfile": {"computerNamePrefix": "gpu", "adminUsername": "azureuser", "secrets": []},
                **profile,
            },
            "anUnknownOne": {"x": "y"},
        },
    }


@st.composite
def configurations(draw: st.DrawFn) -> list[Document]:
    """The ipConfigurations of a NIC that somebody else made: one primary anywhere, secondaries of all kinds under any names."""
    kinds = st.sampled_from(
        [{}, {"privateIPAddressVersion": "IPv6"}, {"publicIPAddressConfiguration": {"name": "p"}}, {"privateIPAddressPrefixLength": 28}]
    )
    called = st.sampled_from([f"{prefix}{number:03d}" for prefix in ("alias", "Alias", "block", "ipconfig") for number in range(1, 9)])
    found = [configuration(name, **draw(kinds)) for name in draw(st.lists(called, max_size=12, unique_by=lambda name: name.lower()))]
    found.insert(draw(st.integers(0, len(found))), configuration("primary", primary=True))
    return found
