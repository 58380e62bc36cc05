# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wireserver: the addresses of every NIC as the fabric knows them, in XML. It is what Azure's own CNI plugin asks."""

from __future__ import annotations

from xml.etree import ElementTree

from ..spec import NodeError
from ..system import System
from .imds import mac_with_colons
from .model import Nic

URL = "http://168.63.129.16/machine/plugins?comp=nmagent&type=getinterfaceinfov1"
LIMIT_SECONDS = 5.0


def read(system: System) -> tuple[tuple[Nic, ...] | None, str]:
    """The NICs, or None and why there are none."""
    try:
        return parse(system.http_get(URL, {}, limit=LIMIT_SECONDS).decode(errors="replace")), ""
    except NodeError as error:
        return None, str(error)


def parse(text: str) -> tuple[Nic, ...]:
    """Raises NodeError for what is no such document. An address with a prefix length is a block."""
    if "<!DOCTYPE" in text or "<!ENTITY" in text:  # no such document has them, and entities can be made to fill all memory
        raise NodeError(f"{URL} answered with a document type, which its answers do not have")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314 - no document type, see above
    except ElementTree.ParseError as error:
        raise NodeError(f"{URL} answered what is not XML ({error})") from error
    return tuple(_nic(interface) for interface in root.iter("Interface"))


def _nic(interface: ElementTree.Element) -> Nic:
    entries = [entry for entry in interface.iter("IPAddress") if entry.get("Address") and ":" not in entry.get("Address", "")]
    primary = [entry.get("Address", "") for entry in entries if entry.get("IsPrimary", "").lower() == "true"]
    others = [address for entry in entries if (address := entry.get("Address", "")) not in primary]
    return Nic(
        mac=mac_with_colons(interface.get("MacAddress", "")),
        primary=primary[0] if primary else "",
        secondary=tuple(address for address in others if "/" not in address),
        prefixes=tuple(address for address in others if "/" in address),
        subnets=tuple(prefix for subnet in interface.iter("IPSubnet") if (prefix := subnet.get("Prefix", "")) and ":" not in prefix),
        ipv6=tuple(address for entry in interface.iter("IPAddress") if ":" in (address := entry.get("Address", ""))),
    )
