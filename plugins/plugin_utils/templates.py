# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rendering of a subsystem's templates: plain Jinja2 on the controller, from the subsystem's variables alone."""

from __future__ import annotations

import functools
import pathlib
import typing as t

import jinja2
from ansible_collections.gpufleet.vmss.plugins.module_utils.node import registry
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.spec import NodeError, nearest

ROLES = pathlib.Path(__file__).resolve().parent.parent.parent / "roles"


def render(name: str, parameters: t.Mapping[str, t.Any]) -> dict[str, str]:
    """The texts of one subsystem, by template name without ``.j2``.

    Raises NodeError for an override of a template that does not exist, a file that cannot be read, or an undefined variable.
    """
    subsystem = registry.subsystem(name)
    names = [template.removesuffix(".j2") for template in subsystem.templates]
    own = parameters.get(f"{name}_templates") or {}
    for key in own:
        if key not in names:
            raise NodeError(f"{name}_templates names {key}, which is no template of this role{nearest(key, names)}")
    return {key: _render(pathlib.Path(own.get(key) or ROLES / name / "templates" / f"{key}.j2"), parameters) for key in names}


def _render(path: pathlib.Path, parameters: t.Mapping[str, t.Any]) -> str:
    try:
        return _template(str(path.expanduser())).render(parameters)
    except OSError as error:
        raise NodeError(f"template {path} cannot be read ({error.strerror}); give a path on the controller") from error
    except UnicodeDecodeError as error:
        raise NodeError(f"template {path} is no UTF-8 text ({error.reason} at byte {error.start}); give a text file") from error
    except Exception as error:  # a template is a user's program, and can fail in every way
        raise NodeError(f"template {path}: {error}; a template may use the variables of its own role") from error


@functools.lru_cache(maxsize=64)
def _template(path: str) -> jinja2.Template:
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True, trim_blocks=True, autoescape=False)  # noqa: S701 - configuration files
    return environment.from_string(pathlib.Path(path).read_text(encoding="utf-8"))
