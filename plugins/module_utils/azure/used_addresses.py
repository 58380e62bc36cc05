# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses that pods hold, against addresses that are to go. Pure.

A node's CNI plugin writes a record of each pod below /run/gpufleet/pods; a use is such a record, with the node's name besides.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import typing as t

from .addresses import canonical
from .documents import Document
from .errors import AzureError

# A message is one line; all of them are in the module's answer.
NAMED = 10
# Of a container's id, as runtimes show it.
SHORT = 12


@dataclasses.dataclass(frozen=True, kw_only=True)
class Use:
    """One pod's address. ``instance`` is for people, "" where the caller does not say it."""

    address: str
    namespace: str
    pod: str
    instance: str = ""

    def __str__(self) -> str:
        where = f" on {self.instance}" if self.instance else ""
        return f"{self.address} of pod {self.namespace}/{self.pod}{where}"


def parse(entries: t.Iterable[Document]) -> list[Use]:
    """What a caller says. Raises AzureError for an entry without a pod's address; other keys than those of a Use are left alone."""
    found: list[Use] = []
    for number, entry in enumerate(entries, start=1):
        try:
            address = canonical(str(entry.get("address") or ""))
        except ValueError as error:
            raise AzureError(
                f"addresses_in_use, entry {number}: address {entry.get('address')!r} is no IP address; "
                "give the records of /run/gpufleet/pods as they are"
            ) from error
        # A runtime that is not Kubernetes gives neither a namespace nor a pod's name.
        pod = str(entry.get("pod") or "") or str(entry.get("container_id") or "")[:SHORT]
        found.append(Use(address=address, namespace=str(entry.get("namespace") or "-"), pod=pod, instance=str(entry.get("instance") or "")))
    return found


def among(uses: t.Iterable[Use], leaving: t.Iterable[str]) -> list[Use]:
    """The uses of addresses and blocks that are to go, in the order given.

    By address alone, and so also those of another VNet with the same addresses: better one refusal too many.
    """
    singles: set[str] = set()
    blocks: list[ipaddress.IPv4Network] = []
    for text in leaving:
        if "/" in text:
            blocks.append(ipaddress.IPv4Network(text, strict=False))
        else:
            singles.add(canonical(text))
    return [use for use in uses if use.address in singles or any(ipaddress.ip_address(use.address) in block for block in blocks)]


def refusal(held: t.Sequence[Use]) -> str:
    """Why nothing is lowered."""
    more = f" and {len(held) - NAMED} more" if len(held) > NAMED else ""
    return (
        f"{len(held)} addresses that would go are in use: {', '.join(map(str, held[:NAMED]))}{more}; "
        "wait until these pods have ended, or keep the number of addresses"
    )
