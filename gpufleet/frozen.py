# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet as it is at one moment, as a static inventory: what a rollout or a pipeline works through, however the fleet changes.

Only what the inventory itself says of hosts and groups: variables from group_vars and host_vars lie beside the frozen file
again when it is used, and may be secrets.
"""

from __future__ import annotations

import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import typing as t

Document = dict[str, t.Any]
LIMIT_SECONDS = 900
# The groups that Ansible makes itself.
OWN_GROUPS = frozenset({"all", "ungrouped", "_meta"})


class FreezeError(Exception):
    """One message: what cannot be frozen, and what to do."""


def listed(inventory: str | None, limit: str | None) -> Document:
    """What ``ansible-inventory --list --export`` says, without vars plugins. Raises FreezeError with Ansible's own words."""
    arguments = ["--list", "--export"]
    arguments += ["-i", inventory] if inventory else []
    arguments += ["--limit", limit] if limit else []
    environment = {
        **os.environ,
        "PATH": f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "ANSIBLE_VARS_ENABLED": "",
        # One that fails in part must not become a smaller list.
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
        "ANSIBLE_NOCOLOR": "1",
    }
    # Not by ansible-runner, which keeps a file of every line that a command says: 15 s more at 7,500 hosts.
    try:
        done = subprocess.run(
            ["ansible-inventory", *arguments], env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS
        )
    except FileNotFoundError as error:
        raise FreezeError("there is no ansible-inventory beside this command or in PATH; install ansible-core") from error
    except subprocess.TimeoutExpired as error:
        raise FreezeError(f"ansible-inventory did not end within {LIMIT_SECONDS} s") from error
    if done.returncode != 0:
        raise FreezeError(f"ansible-inventory ended with status {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    sys.stderr.write(done.stderr)
    return dict(json.loads(done.stdout))


def freeze(document: Document, *, now: datetime.datetime) -> Document:
    """The static inventory of what ``ansible-inventory --list --export`` said, sorted. Raises FreezeError."""
    variables = document["_meta"]["hostvars"]
    stale = document.get("all", {}).get("vars", {}).get("azure_vmss_stale")
    if stale:
        raise FreezeError(f"the fleet is an old one, of {_plain(stale, 'all', 'azure_vmss_stale')}: run again when Azure answers")
    # A host without any variable has no entry of its own.
    hosts = sorted({*variables, *(host for group in document.values() for host in group.get("hosts", ()))})
    if not hosts:
        raise FreezeError("no host: nothing is written; correct the inventory or the limit")
    groups = {name: group for name, group in document.items() if name not in OWN_GROUPS}
    return {
        "all": {
            "vars": {
                **_all_plain(document.get("all", {}).get("vars", {}), "all"),
                "fleet_frozen_at": now.astimezone(datetime.UTC).isoformat(timespec="seconds"),
            },
            "hosts": {host: _all_plain(variables.get(host, {}), host) for host in hosts},
        },
        # Beside all, not below it, so that a group within another is no child of all too.
        **{name: _group(name, groups) for name in sorted(groups)},
    }


def write(document: Document, path: pathlib.Path) -> None:
    """Write it whole or not at all, for its owner alone. Raises FreezeError."""
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    try:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.absolute().parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                file.write(text)
                file.close()
                pathlib.Path(file.name).replace(path)
            except BaseException:
                pathlib.Path(file.name).unlink()
                raise
    except OSError as error:
        raise FreezeError(f"{path} cannot be written ({error.strerror}); name another file") from error


def _group(name: str, groups: t.Mapping[str, Document]) -> Document:
    group = groups[name]
    made: Document = {}
    if group.get("hosts"):
        made["hosts"] = dict.fromkeys(sorted(group["hosts"]))
    if group.get("children"):
        made["children"] = dict.fromkeys(sorted(group["children"]))
    if group.get("vars"):
        made["vars"] = _all_plain(group["vars"], name)
    return made


def _all_plain(variables: t.Mapping[str, t.Any], owner: str) -> Document:
    return {name: _plain(value, owner, name) for name, value in sorted(variables.items())}


def _plain(value: t.Any, owner: str, name: str) -> t.Any:
    """Without the marks of text from outside. Raises FreezeError for text that a static inventory would run as a template."""
    if isinstance(value, dict) and set(value) == {"__ansible_unsafe"}:
        text = str(value["__ansible_unsafe"])
        if "{{" in text or "{%" in text:
            raise FreezeError(f"variable {name} of {owner} holds {text!r}, which a static inventory would run as a template; leave it out")
        return text
    if isinstance(value, dict):
        return {key: _plain(item, owner, name) for key, item in value.items()}
    return [_plain(item, owner, name) for item in value] if isinstance(value, list) else value
