# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a user of a lab is given."""

from __future__ import annotations

import typing as t


def test_only_the_owner_reads_what_the_lab_writes(lab: t.Any) -> None:
    folder = lab.paths.access
    assert folder.stat().st_mode & 0o777 == 0o700
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir() if path.suffix not in (".pub", ".pem")}
    assert {"id_ed25519", "known_hosts", "ssh_config", "azure.env"} <= set(modes)
    assert set(modes.values()) == {0o600}, modes


def test_a_node_is_reached_by_ssh_with_its_host_key_checked(lab: t.Any) -> None:
    for instance in lab.instances:
        if instance["kind"] != "stub":
            assert lab.node(instance["computer_name"]).run(["hostname"]).strip() == instance["computer_name"]
