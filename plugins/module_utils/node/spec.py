# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Typed parameters: the one source of role argument_specs, module documentation and validation."""

from __future__ import annotations

import dataclasses
import difflib
import re
import typing as t

Type = t.Literal["bool", "int", "str", "list", "dict"]
_PYTHON_TYPES: dict[str, type] = {"bool": bool, "int": int, "str": str, "list": list, "dict": dict}
_INTEGER = re.compile(r"-?[0-9]+")


class NodeError(Exception):
    """The one error of the node program; its message says what is wrong, where, and what to do."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Parameter:
    """One public variable of a subsystem.

    ``name`` is the whole variable name, subsystem prefix included, or the bare key of a nested option.
    ``default`` is a literal; None together with ``required`` means that the user must give a value.
    ``elements`` types the items of a list; ``options`` types the keys of a dict, or of each dict of a list.
    ``minimum`` and ``maximum`` bound an int, both included.
    ``secret`` keeps the value out of every diff, result and log; ``secret_if`` names a bool beside it that decides the same.
    """

    name: str
    type: Type
    description: str
    default: t.Any = None
    required: bool = False
    choices: tuple[t.Any, ...] = ()
    elements: Type | None = None
    options: tuple[Parameter, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    secret: bool = False
    secret_if: str = ""


Spec = tuple[Parameter, ...]


def validate(spec: Spec, given: t.Mapping[str, t.Any], *, where: str) -> dict[str, t.Any]:
    """Return every parameter of ``spec`` with its checked value, defaults filled in.

    Raises NodeError for the first value that cannot be used, or for a name that the spec does not have.
    """
    known = {parameter.name: parameter for parameter in spec}
    for name in given:
        if name not in known:
            raise NodeError(f"{where}: there is no variable {name}{nearest(name, known)}")
    return {name: _value(parameter, given.get(name), where=where) for name, parameter in known.items()}


def nearest(name: str, known: t.Iterable[str]) -> str:
    """A hint that ends an 'unknown name' message: the closest known name, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]}?" if close else f"; known: {', '.join(names) or 'none'}"


def _value(parameter: Parameter, value: t.Any, *, where: str) -> t.Any:
    name = parameter.name
    if value is None:
        if parameter.required:
            raise NodeError(f"{where}: {name} is missing; {parameter.description}")
        return parameter.default
    value = _typed(parameter.type, value, name=name, where=where)
    shown = "(secret)" if parameter.secret else repr(value)
    if parameter.choices and value not in parameter.choices:
        choices = ", ".join(str(choice) for choice in parameter.choices)
        raise NodeError(f"{where}: {name} is {shown}, but must be one of: {choices}")
    if parameter.minimum is not None and value < parameter.minimum:
        raise NodeError(f"{where}: {name} is {shown}, but must be at least {parameter.minimum}")
    if parameter.maximum is not None and value > parameter.maximum:
        raise NodeError(f"{where}: {name} is {shown}, but must be at most {parameter.maximum}")
    if parameter.type == "dict" and parameter.options:
        return validate(parameter.options, value, where=f"{where}: {name}")
    if parameter.type == "list" and parameter.options:
        return [
            validate(parameter.options, _typed("dict", item, name=f"{name}[{index}]", where=where), where=f"{where}: {name}[{index}]")
            for index, item in enumerate(value)
        ]
    if parameter.type == "list" and parameter.elements:
        return [_typed(parameter.elements, item, name=f"{name}[{index}]", where=where) for index, item in enumerate(value)]
    return value


def _typed(wanted: Type, value: t.Any, *, name: str, where: str) -> t.Any:
    # Variables given with -e NAME=VALUE are always strings: the plain spellings of bool and int are taken.
    if wanted == "bool" and isinstance(value, str) and value.lower() in ("true", "false", "yes", "no"):
        return value.lower() in ("true", "yes")
    if wanted == "int" and isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if wanted == "str" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    right = isinstance(value, _PYTHON_TYPES[wanted]) and not (wanted == "int" and isinstance(value, bool))
    if not right:
        raise NodeError(f"{where}: {name} must be of type {wanted}, but is {type(value).__name__}")
    return value


def has_secrets(spec: Spec, values: t.Mapping[str, t.Any]) -> bool:
    """Whether a secret was given, as far as the spec can tell one."""
    return bool(secret_places(spec, values))


def secret_places(spec: Spec, values: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Every given secret by its place in the parameters, e.g. "custom_files/0/content"."""
    places: dict[str, t.Any] = {}
    for parameter in spec:
        value = values.get(parameter.name)
        if value is None:
            continue
        if parameter.secret or (parameter.secret_if and values.get(parameter.secret_if)):
            places[parameter.name] = value
        elif parameter.options:
            items = enumerate(value) if parameter.type == "list" else [("", value)]
            for index, item in items:
                prefix = f"{parameter.name}/{index}/" if parameter.type == "list" else f"{parameter.name}/"
                places.update({prefix + place: secret for place, secret in secret_places(parameter.options, item).items()})
    return places
