# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program as one file for the node: a zipapp made from the very sources that are running."""

from __future__ import annotations

import hashlib
import io
import pkgutil
import zipfile

from .spec import NodeError

PACKAGE = "gpufleet_node"
INTERPRETER = "/usr/bin/python3 -I"
# Every source file of the program, by its path in the package; a test compares this with the folder.
SOURCES = (
    "__init__.py",
    "alias_pool.py",
    "alias_rules.py",
    "alias_spec.py",
    "apply.py",
    "cli.py",
    "cni/__init__.py",
    "cni/call.py",
    "cni/conflist.py",
    "cni/gpufleet_alias.py",
    "cni/installed_file.py",
    "cni/ipam.py",
    "cni/launcher.py",
    "cni/plain_json.py",
    "cni/rtnetlink.py",
    "converge.py",
    "desired.py",
    "distributions.py",
    "document.py",
    "explain.py",
    "facts/__init__.py",
    "facts/dpkg.py",
    "facts/imds.py",
    "facts/ip_address.py",
    "facts/iptables_save.py",
    "facts/model.py",
    "facts/os_release.py",
    "facts/pci.py",
    "facts/read.py",
    "facts/systemctl.py",
    "facts/wireserver.py",
    "networkd.py",
    "plan.py",
    "program.py",
    "registry.py",
    "rules.py",
    "spec.py",
    "subsystem.py",
    "subsystems/__init__.py",
    "subsystems/alias_network.py",
    "subsystems/custom.py",
    "subsystems/node_program.py",
    "subsystems/traffic_accounting.py",
    "sysctl_files.py",
    "system.py",
)
_MAIN = f"import sys\nfrom {PACKAGE}.cli import main\nsys.exit(main())\n"


def build() -> bytes:
    """The zipapp. The same sources give the same bytes under every Python: nothing is compressed, no time is stored."""
    buffer = io.BytesIO()
    buffer.write(f"#!{INTERPRETER}\n".encode())
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, "__main__.py", _MAIN.encode())
        for name in SOURCES:
            _add(archive, f"{PACKAGE}/{name}", _source(name))
    return buffer.getvalue()


def digest(content: bytes) -> str:
    """Twelve hexadecimal digits that name a build."""
    return hashlib.sha256(content).hexdigest()[:12]


def _source(name: str) -> bytes:
    content = pkgutil.get_data(__package__ or "", name)
    if content is None:
        raise NodeError(f"the program's own source {name} cannot be read; it was started in a way that hides its files")
    return content


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, date_time=(2020, 1, 1, 0, 0, 0))
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content)
