# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which file decides a kernel parameter at boot, by the rules of sysctl.d(5)."""

from __future__ import annotations

import fnmatch
import posixpath
import typing as t

from .facts.model import Facts

# The earlier hides a file of the same name in the later; the names of all together are gone through in order.
DIRECTORIES = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d")
# systemd-sysctl does not read it but by a link from a directory; ``sysctl --system`` of procps reads it last.
OLD_FILE = "/etc/sysctl.conf"
PATTERNS = frozenset(f"{directory}/*.conf" for directory in DIRECTORIES) | {OLD_FILE}


def winners(facts: Facts, own: str, wanted: t.Mapping[str, str]) -> tuple[str, ...]:
    """A sentence for each of the ``wanted`` parameters that another file than ``own`` sets otherwise, after it."""
    later = [(path, text) for path, text in _in_order(facts) if path == OLD_FILE or posixpath.basename(path) > posixpath.basename(own)]
    notes = []
    for key, value in wanted.items():
        for path, text in reversed(later):
            said = _setting(text, key)
            if said is None:
                continue
            if said.split() != value.split():
                notes.append(f"sysctl {key}: {path} is read after {own} and sets {said} instead of {value}; remove its line")
            break
    return tuple(notes)


def _in_order(facts: Facts) -> list[tuple[str, str]]:
    names: dict[str, tuple[str, str]] = {}
    for directory in DIRECTORIES:
        for path, file in facts.matching(f"{directory}/*.conf").items():
            names.setdefault(posixpath.basename(path), (path, file.text or ""))
    old = facts.files.get(OLD_FILE)
    return [names[name] for name in sorted(names)] + ([(OLD_FILE, old.text or "")] if old is not None else [])


def _setting(text: str, key: str) -> str | None:
    """The last value that a file gives a parameter, None for none. A leading dash only says that errors do not matter."""
    found = None
    for line in text.splitlines():
        name, sign, value = line.strip().removeprefix("-").partition("=")
        if sign and name and name[0] not in "#;" and fnmatch.fnmatchcase(key, name.strip().replace("/", ".")):
            found = value.strip()
    return found
