# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state document: what is sent to a node, made on the controller."""

from __future__ import annotations

import copy
import typing as t

from . import registry
from .spec import NodeError, nearest, secret_places, validate

FORMAT = 1
Document = dict[str, t.Any]


def build(
    names: t.Collection[str], variables: t.Mapping[str, t.Any], render: t.Callable[[str, t.Mapping[str, t.Any]], dict[str, str]]
) -> Document:
    """One document for ``names`` from variables that are plain data.

    ``render`` gives a subsystem's texts from its name and checked parameters.
    Raises NodeError for a variable that cannot be used, or that has a subsystem's prefix and no meaning.
    """
    sections = {}
    for name in names:
        subsystem = registry.subsystem(name)
        known = {parameter.name for parameter in subsystem.parameters}
        refuse_misspelt(name, variables, known)
        parameters = validate(subsystem.parameters, {key: variables[key] for key in known if key in variables}, where=name)
        texts = render(name, parameters) if subsystem.templates else {}
        # The paths of templates mean something on the controller only.
        parameters.pop(f"{name}_templates", None)
        sections[name] = {"parameters": parameters, "texts": texts} if texts else {"parameters": parameters}
    return {"format": FORMAT, "subsystems": sections}


def refuse_misspelt(name: str, variables: t.Iterable[str], known: t.Collection[str]) -> None:
    """A variable with a subsystem's prefix that nothing reads is a mistake that would go unnoticed."""
    for variable in sorted(variables):
        if variable.startswith(f"{name}_") and variable not in known:
            raise NodeError(f"{name}: there is no variable {variable}{nearest(variable, known)}")


def without_secrets(document: Document) -> tuple[Document, dict[str, dict[str, t.Any]]]:
    """The document without what is secret, and that: by subsystem, each value by its place in the parameters."""
    sections, secrets = {}, {}
    for name, section in document["subsystems"].items():
        places = secret_places(registry.subsystem(name).parameters, section["parameters"])
        sections[name] = {**section, "parameters": copy.deepcopy(section["parameters"])}
        for place in places:
            holder, key = _holder(sections[name]["parameters"], place)
            del holder[key]
        if places:
            secrets[name] = places
    return {**document, "subsystems": sections}, secrets


def with_secrets(document: t.Mapping[str, t.Any], secrets: t.Mapping[str, t.Mapping[str, t.Any]]) -> Document:
    """The whole document again."""
    whole: Document = copy.deepcopy(dict(document))
    for name, places in secrets.items():
        for place, value in places.items():
            holder, key = _holder(whole["subsystems"][name]["parameters"], place)
            holder[key] = value
    return whole


def _holder(parameters: t.Any, place: str) -> tuple[dict[str, t.Any], str]:
    """The dict that holds the last key of a place."""
    *steps, key = place.split("/")
    for step in steps:
        parameters = parameters[int(step)] if isinstance(parameters, list) else parameters[step]
    return parameters, key
