# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shape of a subsystem."""

from __future__ import annotations

import dataclasses
import typing as t

from .desired import Desired
from .facts.model import Facts, Reads
from .spec import Parameter, Spec

Parameters = t.Mapping[str, t.Any]
Texts = t.Mapping[str, str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Subsystem:
    """One concern of a node, planned by pure functions.

    ``spec`` holds its public variables. ``templates`` names the Jinja2 templates that the controller renders from
    those variables alone; ``desired`` gets them as ``texts``, by name without ``.j2``.
    ``reads`` says what of the node must be read, from the parameters alone.
    ``after`` maps each subsystem that must come earlier to the reason.
    """

    name: str
    summary: str
    spec: Spec
    reads: t.Callable[[Parameters], Reads]
    desired: t.Callable[[Parameters, Texts, Facts], Desired]
    templates: tuple[str, ...] = ()
    after: t.Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def parameters(self) -> Spec:
        """The whole public interface: the spec, and the override of templates where there are any."""
        if not self.templates:
            return self.spec
        names = ", ".join(template.removesuffix(".j2") for template in self.templates)
        return (
            *self.spec,
            Parameter(
                name=f"{self.name}_templates",
                type="dict",
                default={},
                description=f"Templates of your own, by the name of the one that each replaces ({names}), as paths on the controller.",
            ),
        )
