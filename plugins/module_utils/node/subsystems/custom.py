# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's own files, kernel parameters, units and module options, as checked data."""

from __future__ import annotations

import posixpath
import re
import typing as t

from ..desired import UNIT_DIRECTORY, Desired, DesiredFile, DesiredSysctl, DesiredUnit
from ..facts.model import Facts, Reads
from ..spec import NodeError, Parameter
from ..subsystem import Parameters, Subsystem, Texts

SYSCTL_FILE = "/etc/sysctl.d/98-gpufleet-custom.conf"
MODPROBE = "/etc/modprobe.d/gpufleet-custom-{}.conf"
# What other subsystems own; two owners of one file would undo each other for ever.
OWNED = ("/etc/gpufleet/", "/usr/local/lib/gpufleet/", "/run/gpufleet/", "/usr/local/bin/gpufleet-")
_OWNED_NAME = re.compile(r"(^|[-./])gpufleet([-.]|$)")
# The leading zero is asked for: 0644 without quotes reaches us as 420, and would be taken for other bits.
_MODE = re.compile(r"^0[0-7]{3,4}$")
_SYSCTL = re.compile(r"^[a-z0-9_]+(\.[A-Za-z0-9_-][A-Za-z0-9_/:-]*)+$")
_SYSCTL_VALUE = re.compile(r"^[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?$")
_UNIT = re.compile(r"^[A-Za-z0-9:_.@\\-]+\.(service|timer|socket|mount|path|target|slice)$")
_MODULE_FILE = re.compile(r"^[A-Za-z0-9_-]+$")

SPEC = (
    Parameter(
        name="custom_files",
        type="list",
        default=[],
        description="Files that shall be there with this content, or be absent.",
        options=(
            Parameter(name="path", type="str", required=True, description="Absolute path."),
            Parameter(name="content", type="str", default="", secret_if="secret", description="The whole content."),  # noqa: S106 - a name
            Parameter(name="mode", type="str", default="0644", description="Permission bits in octal, quoted."),
            Parameter(
                name="state", type="str", default="present", choices=("present", "absent"), description="Whether the file shall be there."
            ),
            Parameter(name="restarts", type="list", elements="str", default=[], description="Units to restart when the file changes."),
            Parameter(name="secret", type="bool", default=False, description="Keep the content out of diffs, results and logs."),
        ),
    ),
    Parameter(name="custom_sysctls", type="dict", default={}, description="Kernel parameters by key, running and at boot."),
    Parameter(
        name="custom_units",
        type="list",
        default=[],
        description="Units of systemd.",
        options=(
            Parameter(name="name", type="str", required=True, description="Name with its ending, for example example.service."),
            Parameter(
                name="content", type="str", description="Content of the unit file; without it the unit is one that the system brings."
            ),
            Parameter(name="enabled", type="bool", description="Whether it starts at boot; unset leaves it as it is."),
            Parameter(name="state", type="str", choices=("started", "stopped"), description="Whether it runs; unset leaves it as it is."),
        ),
    ),
    Parameter(
        name="custom_modprobe",
        type="dict",
        default={},
        description=(
            "Lines for modprobe by file name; options of a module that is loaded take effect after a reboot, which is then reported as due."
        ),
    ),
)


def _reads(parameters: Parameters) -> Reads:
    files = [item["path"] for item in parameters["custom_files"]]
    files += [UNIT_DIRECTORY + item["name"] for item in parameters["custom_units"]]
    files += [MODPROBE.format(name) for name in parameters["custom_modprobe"]]
    secret = [item["path"] for item in parameters["custom_files"] if item["secret"]]
    return Reads(
        files=frozenset({*files, SYSCTL_FILE}),
        secret_files=frozenset(secret),
        directories=frozenset({posixpath.dirname(MODPROBE)}),
        sysctls=frozenset(str(key) for key in parameters["custom_sysctls"]),
        units=frozenset(item["name"] for item in parameters["custom_units"]),
        modules=frozenset(module for lines in parameters["custom_modprobe"].values() for module in _modules(lines)),
    )


def _desired(parameters: Parameters, texts: Texts, facts: Facts) -> Desired:
    sysctls = {str(key): _sysctl(str(key), value) for key, value in parameters["custom_sysctls"].items()}
    files = [_file(item) for item in parameters["custom_files"]]
    _no_two(tuple(file.path for file in files), "custom_files")
    units = parameters["custom_units"]
    _no_two(tuple(item["name"] for item in units), "custom_units")
    return Desired(
        files=(
            *files,
            *(_modprobe(name, lines, facts) for name, lines in parameters["custom_modprobe"].items()),
            *_left_over(parameters["custom_modprobe"], facts),
            *(_unit_file(item) for item in units if item["content"] is not None),
            DesiredFile(path=SYSCTL_FILE, text=_sysctl_text(sysctls) if sysctls else None, variables=("custom_sysctls",)),
        ),
        sysctls=tuple(DesiredSysctl(key=key, value=value, variable="custom_sysctls") for key, value in sysctls.items()),
        units=tuple(_unit(item) for item in units),
    )


def _sysctl(key: str, value: t.Any) -> str:
    if not _SYSCTL.match(key):
        raise NodeError(f"custom_sysctls names {key!r}, which is no kernel parameter; write it with dots, for example net.core.somaxconn")
    if isinstance(value, bool) or not isinstance(value, (str, int)) or not _SYSCTL_VALUE.match(str(value)):
        raise NodeError(f"custom_sysctls: {key} is {value!r}; give a number or one line of text, for example 1")
    return str(value)


def _file(item: t.Mapping[str, t.Any]) -> DesiredFile:
    path = item["path"]
    if not path.startswith("/") or posixpath.normpath(path) != path:
        raise NodeError(f"custom_files names {path!r}; give an absolute path without dots or double slashes")
    if path.startswith(OWNED) or _OWNED_NAME.search(posixpath.basename(path)):
        raise NodeError(
            f"custom_files names {path}, which belongs to another subsystem; choose another name, or change that subsystem's variables"
        )
    if not _MODE.match(item["mode"]):
        raise NodeError(f"custom_files: {path} has mode {item['mode']!r}; write it in octal and quoted, for example '0644'")
    present = item["state"] == "present"
    return DesiredFile(
        path=path,
        text=item["content"] if present else None,
        mode=int(item["mode"], 8),
        restarts=tuple(item["restarts"]),
        variables=("custom_files",),
        secret=item["secret"],
    )


def _unit_file(item: t.Mapping[str, t.Any]) -> DesiredFile:
    restarts = (item["name"],) if item["state"] == "started" else ()
    return DesiredFile(path=UNIT_DIRECTORY + item["name"], text=item["content"], restarts=restarts, variables=("custom_units",))


def _unit(item: t.Mapping[str, t.Any]) -> DesiredUnit:
    name = item["name"]
    if not _UNIT.match(name):
        raise NodeError(f"custom_units names {name!r}; give the whole name of a unit, for example example.service")
    if name.startswith("gpufleet-"):
        raise NodeError(f"custom_units names {name}, which belongs to another subsystem; change that subsystem's variables")
    return DesiredUnit(name=name, enabled=item["enabled"], active=None if item["state"] is None else item["state"] == "started")


def _modprobe(name: str, lines: t.Any, facts: Facts) -> DesiredFile:
    if not _MODULE_FILE.match(name):
        raise NodeError(f"custom_modprobe names a file {name!r}; use letters, digits, dashes and underscores")
    if not isinstance(lines, list) or not all(isinstance(line, str) and "\n" not in line for line in lines):
        raise NodeError(f"custom_modprobe: {name} must be a list of lines")
    loaded = [module for module in _modules(lines) if facts.modules.get(module)]
    reboot = f"options of the loaded module {', '.join(loaded)} changed ({MODPROBE.format(name)})" if loaded else ""
    return DesiredFile(
        path=MODPROBE.format(name), text="".join(f"{line}\n" for line in lines), reboot=reboot, variables=("custom_modprobe",)
    )


def _left_over(wanted: t.Collection[str], facts: Facts) -> tuple[DesiredFile, ...]:
    """Files of a name that custom_modprobe held before: the prefix says that they are ours."""
    folder, pattern = posixpath.split(MODPROBE)
    before, after = pattern.split("{}")
    names = [name for name in facts.directories.get(folder, ()) if name.startswith(before) and name.endswith(after)]
    return tuple(
        DesiredFile(path=f"{folder}/{name}", variables=("custom_modprobe",))
        for name in names
        if name[len(before) : -len(after)] not in wanted
    )


def _modules(lines: t.Any) -> tuple[str, ...]:
    """The modules whose options some lines set, as /sys/module names them."""
    if not isinstance(lines, list):
        return ()
    words = [str(line).split() for line in lines]
    return tuple(dict.fromkeys(line[1].replace("-", "_") for line in words if len(line) > 2 and line[0] == "options"))


def _sysctl_text(values: t.Mapping[str, str]) -> str:
    lines = "".join(f"{key} = {value}\n" for key, value in values.items())
    return "# Written by gpufleet.vmss, subsystem custom. Changes here are undone by the next converge.\n" + lines


def _no_two(names: tuple[str, ...], variable: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise NodeError(f"{variable} names {name} twice; leave one of them out")


SUBSYSTEM = Subsystem(
    name="custom",
    summary="Put a user's own files, kernel parameters, units and module options in place.",
    spec=SPEC,
    reads=_reads,
    desired=_desired,
    after={"node_program": "its section of the state is kept by it"},
)
