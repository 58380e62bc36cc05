# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""JSON without ``json``, whose import takes as long as the interpreter's own start. Part of the plugin's one file."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t


def loads(text: str) -> t.Any:
    """A JSON text as data, by the scanner in C that ``json`` itself uses; should a Python have another, ``json`` knows it.

    Raises ValueError for what is no JSON.
    """
    try:
        from _json import make_scanner

        scanner: t.Any = make_scanner
        start = len(text) - len(text.lstrip())
        value, end = scanner(Scanner)(text, start)
    except (ImportError, TypeError, AttributeError):
        import json

        return json.loads(text)
    except StopIteration as error:
        raise ValueError(f"no JSON at character {error.value}") from error
    if text[end:].strip():
        raise ValueError(f"no end of JSON at character {end}")
    return value


class Scanner:
    """What ``json.JSONDecoder`` hands to the scanner."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = parse_constant = float
    parse_int = int
    memo: dict[str, str] = {}


def dumps(value: object) -> str:
    """Plain data as JSON in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(str(key))}: {dumps(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(dumps(item) for item in value) + "]"
    if isinstance(value, str):
        return quoted(value)
    return {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else repr(value)


def quoted(text: str) -> str:
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        from json.encoder import encode_basestring_ascii
    return encode_basestring_ascii(text)
