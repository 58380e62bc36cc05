# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which static addresses systemd-networkd would put on a NIC, and the drop-ins without some of them.

cloud-init and netplan write such files from IMDS, with every secondary address in them. Their files stay as they are.
"""

from __future__ import annotations

import posixpath
import typing as t

from .facts.model import Facts

UNIT = "systemd-networkd.service"
DIRECTORIES = ("/etc/systemd/network", "/run/systemd/network", "/usr/lib/systemd/network", "/lib/systemd/network")
DROP_IN = "90-gpufleet-alias.conf"
PATTERNS = frozenset(f"{directory}/*.network" for directory in DIRECTORIES) | {f"/etc/systemd/network/*.network.d/{DROP_IN}"}


def drop_ins(facts: Facts, unwanted: t.Collection[str]) -> dict[str, str | None]:
    """The text of each drop-in by its path; None for one that is there and no longer needed.

    An empty ``Address=`` takes back all static addresses of a file (systemd.network(5)); those that are not ``unwanted`` follow.
    """
    wanted: dict[str, str | None] = dict.fromkeys(facts.matching(f"/etc/systemd/network/*.network.d/{DROP_IN}"))
    for directory in DIRECTORIES:
        for path, file in facts.matching(f"{directory}/*.network").items():
            found = static_addresses(file.text or "")
            kept = [address for address in found if address.partition("/")[0] not in unwanted]
            if kept != found:
                lines = [
                    "# Written by gpufleet.vmss, subsystem alias_network: pods own the other addresses of this file.",
                    "[Network]",
                    "Address=",
                ]
                text = "\n".join([*lines, *(f"Address={address}" for address in kept)]) + "\n"
                wanted[f"/etc/systemd/network/{posixpath.basename(path)}.d/{DROP_IN}"] = text
    return wanted


def static_addresses(text: str) -> list[str]:
    """The values of ``Address=`` in [Network] and [Address], in order; an empty one takes back those before it."""
    section = ""
    found: list[str] = []
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line
        key, sign, value = (part.strip() for part in line.partition("="))
        if sign and key == "Address" and section in ("[Network]", "[Address]"):
            found = [*found, value] if value else []
    return found
