# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parser for ``dpkg-query -W -f '${Package}\\t${db:Status-Status}\\t${Version}\\n' PACKAGE ...``."""

from __future__ import annotations

import typing as t

FORMAT = "${Package}\t${db:Status-Status}\t${Version}\n"


def parse(text: str, names: t.Iterable[str]) -> dict[str, str | None]:
    """Package to installed version; None when it is absent, removed, or only half installed."""
    versions: dict[str, str | None] = dict.fromkeys(names)
    for line in text.splitlines():
        name, status, version = [*line.split("\t"), "", ""][:3]
        if status == "installed" and name in versions:
            versions[name] = version
    return versions
