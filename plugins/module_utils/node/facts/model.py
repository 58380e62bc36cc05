# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was read of a node: plain values, one pass, the same on every carrier.

An absent tool or file is an empty state, not an error, so that a plan can be made for a node
on which nothing is installed yet.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import typing as t


@dataclasses.dataclass(frozen=True, kw_only=True)
class File:
    """A file (``text``, or ``sha256`` alone when it is not UTF-8), a directory, or a link (``link`` is its target)."""

    kind: t.Literal["file", "directory", "link"] = "file"
    mode: int = 0o644
    text: str | None = None
    sha256: str | None = None
    link: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sysctl:
    """A kernel parameter: its running value, and whether it can be set from here (not in a container, if kernel-wide)."""

    value: str
    settable: bool = True


@dataclasses.dataclass(frozen=True, kw_only=True)
class Unit:
    """A systemd unit as ``systemctl show`` has it; a unit that does not exist is disabled and inactive.

    ``fixed`` is the state of a unit that can be neither enabled nor disabled ("static", "generated"), else empty.
    """

    enabled: bool = False
    fixed: str = ""
    active: bool = False
    needs_reload: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Interface:
    """A network interface: ``mac`` in lower case with colons, ``mtu`` in bytes, ``addresses`` as "10.1.0.4/16" if they were asked for."""

    mac: str
    mtu: int
    addresses: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Nic:
    """A NIC as Azure describes it to its machine.

    ``primary`` and ``secondary`` are its IPv4 addresses, ``prefixes`` blocks of them in CIDR form, ``subnets`` those that they
    lie in. ``ipv6`` are addresses and blocks of the other family, which pods do not get yet.
    """

    mac: str
    primary: str
    secondary: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    subnets: tuple[str, ...] = ()
    ipv6: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class PciDevice:
    """One device of /sys/bus/pci/devices: hexadecimal ids in lower case without 0x, class in four digits."""

    address: str
    vendor: str
    device: str
    pci_class: str
    numa_node: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rules:
    """One iptables table: chain name to its rules, each as ``iptables-save`` prints it after ``-A CHAIN``."""

    available: bool = True
    chains: t.Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reads:
    """What a subsystem needs read; the union over all subsystems is read once.

    ``sources`` names whole documents: "instance" (IMDS), "wireserver" (asked where IMDS lists no secondary address), "pci",
    "addresses" (those of the interfaces).
    ``directories`` are listed, so that leftovers can be found.
    ``contents`` are patterns of paths (``*`` within one name): every file that matches is read, links followed.
    ``secret_files`` are files of which only the digest is read, so that facts can be saved and shown.
    """

    files: frozenset[str] = frozenset()
    secret_files: frozenset[str] = frozenset()
    directories: frozenset[str] = frozenset()
    contents: frozenset[str] = frozenset()
    sysctls: frozenset[str] = frozenset()
    units: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    tables: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()

    def __or__(self, other: Reads) -> Reads:
        return Reads(**{field.name: getattr(self, field.name) | getattr(other, field.name) for field in dataclasses.fields(self)})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Facts:
    """A node as read. Every mapping holds only what was asked for in a Reads; None is "asked for and absent"."""

    distribution: str = "debian"
    distribution_version: str = ""
    architecture: str = "amd64"
    container: bool = False
    boot_id: str = ""
    files: t.Mapping[str, File | None] = dataclasses.field(default_factory=dict)
    directories: t.Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    sysctls: t.Mapping[str, Sysctl | None] = dataclasses.field(default_factory=dict)
    units: t.Mapping[str, Unit] = dataclasses.field(default_factory=dict)
    packages: t.Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    tables: t.Mapping[str, Rules] = dataclasses.field(default_factory=dict)
    modules: t.Mapping[str, bool] = dataclasses.field(default_factory=dict)
    interfaces: t.Mapping[str, Interface] = dataclasses.field(default_factory=dict)
    pci: tuple[PciDevice, ...] | None = None
    instance: t.Mapping[str, t.Any] | None = None
    instance_problem: str = ""
    wireserver: tuple[Nic, ...] | None = None
    wireserver_problem: str = ""
    pending_restarts: tuple[str, ...] = ()
    pending_reboot: tuple[str, ...] = ()
    pending_reload: bool = False

    def matching(self, pattern: str) -> dict[str, File]:
        """The files by their paths, sorted, that a pattern of ``Reads.contents`` means."""
        found = {path: item for path, item in self.files.items() if item is not None and fits(path, pattern)}
        return dict(sorted(found.items()))

    def to_document(self) -> dict[str, t.Any]:
        """JSON-ready form; ``from_document`` gives an equal value back."""
        return dataclasses.asdict(self)

    @classmethod
    def from_document(cls, document: t.Mapping[str, t.Any]) -> Facts:
        """Rebuild facts that were saved as JSON, for a replay of the plan anywhere."""
        plain = dict(document)
        plain["files"] = {path: item and File(**item) for path, item in plain["files"].items()}
        plain["directories"] = {path: tuple(names) for path, names in plain["directories"].items()}
        plain["sysctls"] = {key: item and Sysctl(**item) for key, item in plain["sysctls"].items()}
        plain["units"] = {name: Unit(**item) for name, item in plain["units"].items()}
        plain["tables"] = {
            name: Rules(available=item["available"], chains={chain: tuple(rules) for chain, rules in item["chains"].items()})
            for name, item in plain["tables"].items()
        }
        plain["interfaces"] = {
            name: Interface(**{**item, "addresses": tuple(item["addresses"])}) for name, item in plain["interfaces"].items()
        }
        plain["wireserver"] = None if plain["wireserver"] is None else tuple(_nic(item) for item in plain["wireserver"])
        plain["pci"] = None if plain["pci"] is None else tuple(PciDevice(**item) for item in plain["pci"])
        plain["pending_restarts"] = tuple(plain["pending_restarts"])
        plain["pending_reboot"] = tuple(plain["pending_reboot"])
        return cls(**plain)


def fits(path: str, pattern: str) -> bool:
    """Whether a path is one that a pattern means; unlike in fnmatch, ``*`` ends at a slash, and no hidden file is meant."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(
        part == want or (fnmatch.fnmatchcase(part, want) and not part.startswith(".")) for part, want in zip(parts, wanted, strict=True)
    )


def _nic(item: t.Mapping[str, t.Any]) -> Nic:
    plain: dict[str, t.Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in item.items()}
    return Nic(**plain)
