# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: expand_addresses
author: the gpufleet maintainers (@gpufleet)
short_description: Every single address of addresses in short
version_added: 0.1.0
description:
  - Expands what the inventory P(gpufleet.vmss.azure_vmss#inventory) keeps in C(alias_addresses).
positional: _input
options:
  _input:
    description: Addresses, ranges (V(10.1.0.5-10.1.0.8)) and blocks (V(10.1.0.16/28)), separated by commas, or a list of such strings.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Show how many pods this node has addresses for
  ansible.builtin.debug:
    msg: "{{ alias_addresses | default('') | gpufleet.vmss.expand_addresses | length }}"
"""

RETURN = r"""
_value:
  description: The addresses, sorted, each once.
  type: list
  elements: str
"""

import typing as t

from ansible.errors import AnsibleFilterError
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import addresses


def expand_addresses(value: t.Any) -> list[str]:
    """Every single address of ``value``. Raises AnsibleFilterError for what is no address, range or block."""
    parts = value if isinstance(value, (list, tuple)) else [value]
    if not all(isinstance(part, str) for part in parts):
        raise AnsibleFilterError(f"expand_addresses wants a string of addresses or a list of them, not {value!r}")
    try:
        return addresses.expand(",".join(parts))
    except ValueError as error:
        raise AnsibleFilterError(f"expand_addresses: {error}") from error


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"expand_addresses": expand_addresses}
