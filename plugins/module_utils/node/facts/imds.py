# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The instance metadata service: who this node is in Azure, and which addresses its NICs own."""

from __future__ import annotations

import json
import typing as t

from ..spec import NodeError
from ..system import System

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


def private_addresses(instance: t.Mapping[str, t.Any], mac: str) -> tuple[str, ...]:
    """The IPv4 addresses of the NIC with this MAC, primary first, as IMDS lists them; empty when it lists no such NIC."""
    for interface in instance["network"].get("interface") or ():
        if mac_with_colons(str(interface.get("macAddress", ""))) == mac:
            entries = (interface.get("ipv4") or {}).get("ipAddress") or ()
            return tuple(str(entry["privateIpAddress"]) for entry in entries if entry.get("privateIpAddress"))
    return ()


def subnet(instance: t.Mapping[str, t.Any], mac: str) -> str | None:
    """The NIC's subnet in CIDR form; None when IMDS names none."""
    for interface in instance["network"].get("interface") or ():
        if mac_with_colons(str(interface.get("macAddress", ""))) == mac:
            for entry in (interface.get("ipv4") or {}).get("subnet") or ():
                if entry.get("address") and entry.get("prefix"):
                    return f"{entry['address']}/{entry['prefix']}"
    return None
