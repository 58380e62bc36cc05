# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node for tests: a temporary tree, and small models of systemd, dpkg and iptables behind the commands."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
import typing as t

from ansible_collections.gpufleet.vmss.plugins.module_utils.node.facts.model import Rules
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.plan import rules_after
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.spec import NodeError
from ansible_collections.gpufleet.vmss.plugins.module_utils.node.system import Completed, System

ROOT = pathlib.Path(__file__).parents[5]
UNITS = {"traffic_accounting": "gpufleet-accounting.service", "alias_network": "gpufleet-alias-network.service"}
TEXTS = {name: {unit: (ROOT / f"roles/{name}/templates/{unit}.j2").read_text(encoding="utf-8")} for name, unit in UNITS.items()}
BUILT_IN = {
    "mangle": ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"),
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
}
MAC = "00:0d:3a:11:22:33"
SYSCTLS = {
    "net/ipv4/ip_forward": "0",
    "net/ipv4/conf/all/promote_secondaries": "0",
    "net/ipv4/neigh/default/gc_thresh1": "128",
    "net/ipv4/neigh/default/gc_thresh2": "512",
    "net/ipv4/neigh/default/gc_thresh3": "1024",
    "net/core/somaxconn": "4096",
    "kernel/pid_max": "32768",
}


class Killed(BaseException):
    """The process ends here, as by SIGKILL: nothing catches it."""


def instance(*, primary: str = "10.1.0.4", secondary: t.Sequence[str] = ("10.1.0.5", "10.1.0.6"), mac: str = MAC) -> dict[str, t.Any]:
    """An IMDS document as Azure writes it: strings only, the MAC without separators."""
    addresses = [{"privateIpAddress": address, "publicIpAddress": ""} for address in (primary, *secondary)]
    return {
        "compute": {"name": "node_0", "vmScaleSetName": "node", "vmSize": "Standard_ND96isr_H100_v5"},
        "network": {
            "interface": [
                {
                    "ipv4": {"ipAddress": addresses, "subnet": [{"address": "10.1.0.0", "prefix": "16"}]},
                    "ipv6": {"ipAddress": []},
                    "macAddress": mac.replace(":", "").upper(),
                }
            ]
        },
    }


@dataclasses.dataclass
class FakeUnit:
    """``loaded`` is the unit file's text when systemd last read it."""

    enabled: bool = False
    active: bool = False
    loaded: str | None = None


class FakeNode(System):
    """Every change goes through ``step``, so that a test can count changes, and kill the run at one of them."""

    def __init__(self, root: pathlib.Path) -> None:
        super().__init__(str(root))
        self.tables = {table: Rules(chains=dict.fromkeys(chains, ())) for table, chains in BUILT_IN.items()}
        self.addresses = {"lo": ["127.0.0.1/8"], "eth0": ["10.1.0.4/16", "fe80::20d:3aff:fe11:2233/64"]}
        self.units: dict[str, FakeUnit] = {}
        self.packages = {"iptables": "1.8.9-2", "containernetworking-plugins": "1.1.1+ds1-3+b4"}
        self.instance: dict[str, t.Any] | None = instance()
        self.wireserver: str | None = None
        self.steps: list[str] = []
        self.kill_at: int | None = None
        self.failing: set[tuple[str, ...]] = set()
        self.restarted_with: dict[str, str] = {}
        self._place("/etc/os-release", 'ID=debian\nVERSION_ID="12"\n')
        self._place("/proc/sys/kernel/random/boot_id", "0b1c\n")
        self._place("/sys/class/net/eth0/address", MAC + "\n")
        self._place("/sys/class/net/eth0/mtu", "1500\n")
        for key, value in SYSCTLS.items():
            self._place(f"/proc/sys/{key}", value + "\n")

    def _place(self, path: str, text: str) -> None:
        place = self.path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")

    # What a test looks at

    def tree(self) -> dict[str, str]:
        """Every file, link and folder with its mode and content, but for the lock."""
        found = {}
        for place in sorted(self.root.rglob("*")):
            name = "/" + str(place.relative_to(self.root))
            if name == "/run/gpufleet/lock":
                continue
            mode = f"{place.lstat().st_mode & 0o7777:04o}"
            if place.is_symlink():
                found[name] = f"link {place.readlink()}"
            elif place.is_dir():
                found[name] = f"directory {mode}"
            else:
                found[name] = f"file {mode} {hashlib.sha256(place.read_bytes()).hexdigest()}"
        return found

    def state(self) -> tuple[t.Any, ...]:
        """All that a run can change, but for what systemd remembers of units that are gone."""
        units = {name: dataclasses.astuple(unit) for name, unit in self.units.items() if unit != FakeUnit()}
        return self.tree(), self.tables, units, self.addresses

    # Changes

    def step(self, what: str, change: t.Callable[[], t.Any]) -> t.Any:
        """Two instants for each change: just before it and just after it."""
        self._instant()
        self.steps.append(what)
        result = change()
        self._instant()
        return result

    def _instant(self) -> None:
        if self.kill_at is not None:
            self.kill_at -= 1
            if self.kill_at < 0:
                self.kill_at = None
                raise Killed

    def write(self, path: str, content: bytes, *, mode: int) -> None:
        self.step(f"write {path}", lambda: System.write(self, path, content, mode=mode))

    def directory(self, path: str, *, mode: int) -> None:
        self.step(f"directory {path}", lambda: System.directory(self, path, mode=mode))

    def link(self, path: str, target: str) -> None:
        self.step(f"link {path}", lambda: System.link(self, path, target))

    def remove(self, path: str) -> None:
        self.step(f"remove {path}", lambda: System.remove(self, path))

    def set_sysctl(self, key: str, value: str) -> None:
        self.step(f"sysctl {key}", lambda: System.set_sysctl(self, key, value))

    def http_get(self, url: str, headers: t.Mapping[str, str], *, limit: float) -> bytes:
        if "168.63.129.16" in url and self.wireserver is not None:
            return self.wireserver.encode()
        assert ("169.254.169.254" in url) == (headers == {"Metadata": "true"})
        if self.instance is None or "168.63.129.16" in url:
            raise NodeError(f"{url} did not answer within {limit:g} seconds (timed out)")
        return json.dumps(self.instance).encode()

    # Commands

    def run(self, argv: t.Sequence[str], *, stdin: str = "", limit: float = 1.0) -> Completed:
        if tuple(argv) in self.failing:
            return Completed(returncode=1, stdout="", stderr="it does not want to")
        if list(argv[:2]) == ["systemctl", "show"]:
            return self._said("\n\n".join(self._show(name) for name in argv[argv.index("--") + 1 :]))
        if argv[0] == "systemctl":
            self.step(" ".join(argv), lambda: self._systemctl(argv[1], *argv[2:]))
            return self._said("")
        if argv[0] == "dpkg-query":
            found = [name for name in argv[4:] if name in self.packages]
            text = "".join(f"{name}\tinstalled\t{self.packages[name]}\n" for name in found)
            return Completed(returncode=0 if len(found) == len(argv) - 4 else 1, stdout=text, stderr="")
        if argv[0] in ("ip", "modprobe"):
            return self._kernel(list(argv))
        if argv[0] == "iptables-save" and "iptables" in self.packages:
            return self._said("".join(self._saved(table) for table in ([argv[2]] if len(argv) > 1 else self.tables)))
        if argv[0] == "iptables-save":
            return Completed(returncode=127, stdout="", stderr="iptables-save: not found")
        if list(argv) == ["iptables-restore", "--noflush", "-w", "60"]:
            table, *lines, commit = stdin.splitlines()
            assert commit == "COMMIT"
            self.step(f"rules {stdin}", lambda: self._restore(table.removeprefix("*"), lines))
            return self._said("")
        raise AssertionError(f"nobody knows the command {argv}")

    def _kernel(self, argv: list[str]) -> Completed:
        if argv == ["ip", "-json", "address", "show"]:
            found = []
            for name, owned in self.addresses.items():
                pairs = [address.split("/") for address in owned]
                found.append({"ifname": name, "addr_info": [{"local": local, "prefixlen": int(length)} for local, length in pairs]})
            return self._said(json.dumps(found))
        if argv[:3] == ["ip", "address", "delete"]:
            self.step(" ".join(argv), lambda: self.addresses[argv[5]].remove(argv[3]))
        elif argv == ["modprobe", "nf_conntrack"]:
            self.step(" ".join(argv), self._modprobe)
        else:
            raise AssertionError(f"nobody knows the command {argv}")
        return self._said("")

    @staticmethod
    def _said(text: str) -> Completed:
        return Completed(returncode=0, stdout=text, stderr="")

    def _modprobe(self) -> None:
        self.path("/sys/module/nf_conntrack").mkdir(parents=True)
        for key, value in (("buckets", "65536"), ("max", "262144")):
            self._place(f"/proc/sys/net/netfilter/nf_conntrack_{key}", value + "\n")

    def _restore(self, table: str, lines: list[str]) -> None:
        self.tables[table] = rules_after(self.tables[table], lines)

    def _saved(self, table: str) -> str:
        chains = self.tables[table].chains
        names = "".join(f":{chain} ACCEPT [0:0]\n" for chain in chains)
        return f"*{table}\n{names}" + "".join(f"-A {chain} {rule}\n" for chain, rules in chains.items() for rule in rules) + "COMMIT\n"

    def _unit_file(self, name: str) -> str | None:
        return self.text(f"/etc/systemd/system/{name}")

    def _show(self, name: str) -> str:
        unit = self.units.get(name, FakeUnit())
        state = ("enabled" if unit.enabled else "disabled") if self._unit_file(name) is not None else ""
        # systemd reads the file of a unit that it does not hold; one that it holds it compares.
        stale = unit.loaded is not None and unit.loaded != self._unit_file(name)
        active = "active" if unit.active else "inactive"
        return f"Id={name}\nNames={name}\nUnitFileState={state}\nActiveState={active}\nNeedDaemonReload={'yes' if stale else 'no'}"

    def _systemctl(self, verb: str, *names: str) -> None:
        if verb == "daemon-reload":
            for name, unit in self.units.items():
                unit.loaded = self._unit_file(name) if unit.loaded is not None else None
            return
        (name,) = names
        assert self._unit_file(name) is not None, f"systemctl {verb} {name}: no such unit"
        unit = self.units.setdefault(name, FakeUnit())
        if verb in ("enable", "disable"):
            unit.enabled = verb == "enable"
        elif verb in ("start", "restart"):
            unit.active = True
            unit.loaded = self._unit_file(name) if unit.loaded is None else unit.loaded
            self.restarted_with[name] = json.dumps({path: item for path, item in self.tree().items() if path.startswith("/etc/")})
        elif verb == "stop":
            unit.active = False
        else:
            raise AssertionError(f"nobody knows systemctl {verb}")
