# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading a node: the union of what all subsystems need, once."""

from __future__ import annotations

import typing as t

from ..spec import NodeError
from ..system import System
from . import dpkg, imds, ip_address, iptables_save, os_release, pci, systemctl, wireserver
from .model import Facts, File, Interface, Reads, Rules, Unit

PENDING = "/run/gpufleet/pending.json"


def read(system: System, reads: Reads) -> Facts:
    """Every fact that ``reads`` asks for, and the few that every plan may use."""
    distribution, version = os_release.parse(system.text("/etc/os-release") or "")
    container = system.text("/run/systemd/container") is not None
    pending: dict[str, t.Any] = system.read_json(PENDING) or {}
    instance, problem = imds.read(system) if "instance" in reads.sources else (None, "")
    second, second_problem = wireserver.read(system) if "wireserver" in reads.sources and not _has_secondaries(instance) else (None, "")
    return Facts(
        distribution=distribution,
        distribution_version=version,
        container=container,
        boot_id=(system.text("/proc/sys/kernel/random/boot_id") or "").strip(),
        files=_files(system, reads),
        directories={path: system.names(path) for path in sorted(reads.directories)},
        sysctls={key: system.sysctl(key, container=container) for key in sorted(reads.sysctls)},
        units=_units(system, sorted(reads.units)),
        packages=_packages(system, sorted(reads.packages)),
        tables=_tables(system, sorted(reads.tables)),
        modules={name: system.path(f"/sys/module/{name}").is_dir() for name in sorted(reads.modules)},
        interfaces=_interfaces(system, addresses="addresses" in reads.sources),
        pci=pci.read(system) if "pci" in reads.sources else None,
        instance=instance,
        instance_problem=problem,
        wireserver=second,
        wireserver_problem=second_problem,
        pending_restarts=tuple(pending.get("restarts", ())),
        pending_reboot=tuple(pending.get("reboot", ())),
        pending_reload=bool(pending.get("reload")),
    )


def _units(system: System, names: list[str]) -> dict[str, t.Any]:
    if not names:
        return {}
    done = system.run(["systemctl", "show", f"--property={systemctl.PROPERTIES}", "--", *names])
    if done.returncode == 127:  # not installed: an empty state, so that a plan can be made
        return {name: Unit() for name in names}
    if done.returncode != 0:
        raise NodeError(f"`systemctl show` failed: {done.stderr.strip()}; the node must run systemd, and this must run as root")
    return systemctl.parse(done.stdout, names)


def _packages(system: System, names: list[str]) -> dict[str, str | None]:
    if not names:
        return {}
    # Exit status 1 says that some of the names are unknown; the others are printed all the same.
    done = system.run(["dpkg-query", "-W", "-f", dpkg.FORMAT, *names])
    if done.returncode not in (0, 1, 127):
        raise NodeError(f"dpkg-query failed: {done.stderr.strip()}; repair the package database (`dpkg --audit`) and run again")
    return dpkg.parse(done.stdout, names)


def _has_secondaries(instance: t.Mapping[str, t.Any] | None) -> bool:
    return instance is not None and any(nic.secondary or nic.prefixes for nic in imds.nics(instance))


def _files(system: System, reads: Reads) -> dict[str, File | None]:
    found = {path: system.file(path, digest=path in reads.secret_files) for path in sorted(reads.files | reads.secret_files)}
    for pattern in sorted(reads.contents):
        for path in system.matches(pattern):
            if path not in found:
                item = system.file(path)
                # What a program reads through a link is the text behind it.
                found[path] = File(text=system.text(path)) if item is not None and item.kind == "link" else item
    return found


def _tables(system: System, names: list[str]) -> dict[str, Rules]:
    """All that are wanted by one call."""
    if not names:
        return {}
    argv = ["iptables-save", *(("-t", names[0]) if len(names) == 1 else ())]
    done = system.run(argv)
    if done.returncode == 127:  # not installed: an empty state, so that a plan can be made
        return {name: Rules(available=False) for name in names}
    if done.returncode != 0:
        raise NodeError(f"{' '.join(argv)} failed: {done.stderr.strip()}; run as root on a kernel with netfilter")
    found = iptables_save.parse(done.stdout)
    # A table that nothing has used yet is not printed.
    return {name: found.get(name, Rules()) for name in names}


def _interfaces(system: System, *, addresses: bool) -> dict[str, Interface]:
    owned: dict[str, tuple[str, ...]] = {}
    if addresses:
        done = system.run(ip_address.ARGV)
        if done.returncode != 0:
            raise NodeError(f"`{' '.join(ip_address.ARGV)}` failed: {done.stderr.strip()}; install iproute2, and run as root")
        owned = ip_address.parse(done.stdout)
    found = {}
    for name in system.names("/sys/class/net"):
        mac = (system.text(f"/sys/class/net/{name}/address") or "").strip().lower()
        mtu = (system.text(f"/sys/class/net/{name}/mtu") or "0").strip()
        found[name] = Interface(mac=mac, mtu=int(mtu) if mtu.isdigit() else 0, addresses=owned.get(name, ()))
    return found
