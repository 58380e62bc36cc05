# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parser for /etc/os-release."""

from __future__ import annotations

import shlex


def parse(text: str) -> tuple[str, str]:
    """Distribution id in lower case and its version, e.g. ("ubuntu", "22.04"); the version is empty for testing releases."""
    values = dict(line.partition("=")[::2] for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return _plain(values.get("ID", "linux")).lower(), _plain(values.get("VERSION_ID", ""))


def _plain(value: str) -> str:
    try:
        words = shlex.split(value)
    except ValueError:  # an open quote
        return ""
    return words[0] if words else ""
