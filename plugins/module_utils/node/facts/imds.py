# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The instance metadata service: who this node is in Azure, and which addresses its NICs own."""

from __future__ import annotations

import json
import typing as t

from ..spec import NodeError
from ..system import System
from .model import Nic

# 2023-11-15 is the first version with physicalZone, and old enough for every cloud
# (learn.microsoft.com, "Azure Instance Metadata Service", supported API versions).
URL = "http://169.254.169.254/metadata/instance?api-version=2023-11-15"
LIMIT_SECONDS = 5.0


def read(system: System) -> tuple[dict[str, t.Any] | None, str]:
    """The instance document, or None and why there is none."""
    try:
        document = json.loads(system.http_get(URL, {"Metadata": "true"}, limit=LIMIT_SECONDS))
    except NodeError as error:
        return None, str(error)
    except ValueError as error:
        return None, f"{URL} answered what is not JSON ({error})"
    if not isinstance(document, dict) or not all(isinstance(document.get(part), dict) for part in ("network", "compute")):
        return None, f"{URL} answered without compute and network"
    return document, ""


def mac_with_colons(mac: str) -> str:
    """IMDS writes twelve hexadecimal digits; the kernel wants colons and lower case."""
    digits = mac.lower().replace(":", "").replace("-", "")
    return ":".join(digits[index : index + 2] for index in range(0, len(digits), 2))


def nics(instance: t.Mapping[str, t.Any]) -> tuple[Nic, ...]:
    """The NICs of an instance document. IMDS marks no address as the primary one: it is the first.

    An address may carry a prefix length: then it is a block (no document with one has been seen; guarded for).
    """
    return tuple(_nic(interface) for interface in instance["network"].get("interface") or ())


def _nic(interface: t.Mapping[str, t.Any]) -> Nic:
    ipv4, ipv6 = interface.get("ipv4") or {}, interface.get("ipv6") or {}
    given = [str(entry["privateIpAddress"]) for entry in ipv4.get("ipAddress") or () if entry.get("privateIpAddress")]
    subnets = [
        f"{entry['address']}/{entry['prefix']}" for entry in ipv4.get("subnet") or () if entry.get("address") and entry.get("prefix")
    ]
    return Nic(
        mac=mac_with_colons(str(interface.get("macAddress", ""))),
        primary=given[0] if given else "",
        secondary=tuple(address for address in given[1:] if "/" not in address),
        prefixes=tuple(address for address in given[1:] if "/" in address),
        subnets=tuple(subnets),
        ipv6=tuple(str(entry["privateIpAddress"]) for entry in ipv6.get("ipAddress") or () if entry.get("privateIpAddress")),
    )
