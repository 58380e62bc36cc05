# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Narrowing of the fused form by ``--tags`` and ``--skip-tags``, which name subsystems."""

from __future__ import annotations

import typing as t

from ansible_collections.gpufleet.vmss.plugins.module_utils.node.spec import NodeError, nearest

# Ansible's own words: https://docs.ansible.com/ansible/latest/playbook_guide/playbooks_tags.html (special tags)
EVERYTHING = frozenset({"all", "tagged", "always"})
NOTHING = frozenset({"untagged", "never"})


def narrow(names: t.Sequence[str], run_tags: t.Collection[str], skip_tags: t.Collection[str]) -> list[str]:
    """The subsystems that a run with these tags means.

    ``node_program`` always comes along unless it is skipped by name, since all others are started by it.
    Raises NodeError for a tag that names no subsystem.
    """
    for tag in (*run_tags, *skip_tags):
        if tag not in names and tag not in EVERYTHING | NOTHING:
            raise NodeError(f"tag {tag} names no subsystem{nearest(tag, names)}")
    wanted = set(names) if not run_tags or EVERYTHING & set(run_tags) else {*run_tags, "node_program"}
    skipped = set(names) if {"all", "tagged"} & set(skip_tags) else set(skip_tags)
    return [name for name in names if name in wanted and name not in skipped]
