# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory's options: each from its file, else from env_file, else from the environment, else its default; then the query they make."""

from __future__ import annotations

import dataclasses
import difflib
import pathlib
import typing as t

from ansible.errors import AnsibleError

from ..module_utils.azure import env_file, hosts, listing
from ..module_utils.azure.credentials import Login
from ..module_utils.azure.errors import AzureError
from ..module_utils.azure.query import Access, Query
from ..module_utils.azure.scope import Scope

Options = dict[str, t.Any]

# The options that are evaluated for each host, and so are not templated when they are read.
PER_HOST = frozenset({"hostname", "include", "exclude", "compose", "groups", "keyed_groups"})
CLOUD = ("cloud", "arm_endpoint", "authority", "audience", "ca_file")
# Those of one application: an entry of logins takes all of them over or none.
APPLICATION = ("client_id", "client_secret", "certificate_path", "certificate_password", "federated_token_file")
LOGIN = ("auth", "tenant_id", *APPLICATION)
ENTRY = ("subscription_ids", "env_file", *LOGIN, *CLOUD)


def read(plugin: t.Any, config: t.Mapping[str, t.Any], path: str) -> Options:
    """Every option of an inventory plugin whose configuration file ``config`` is at ``path``. Raises AzureError."""
    return _Reader(plugin, pathlib.Path(path).absolute().parent).read(config)


def query(options: Options) -> Query:
    """What the options ask for."""
    own = [_access(options)] if options["subscription_ids"] else []
    return Query(
        accesses=(*own, *(_access(entry) for entry in options["logins"])),
        scope=Scope(
            resource_groups=tuple(options["resource_groups"]),
            scale_sets=tuple(options["scale_sets"]),
            exclude_resource_groups=tuple(options["exclude_resource_groups"]),
            exclude_scale_sets=tuple(options["exclude_scale_sets"]),
            tags={str(tag): str(value) for tag, value in sorted(options["scale_set_tags"].items())},
        ),
        source=options["source"],
        keep_documents=options["full_document"],
        parallel=options["parallel"],
    )


def _access(options: Options) -> Access:
    fields = [field.name for field in dataclasses.fields(Login) if field.name != "source"]
    return Access(
        subscription_ids=tuple(options["subscription_ids"]),
        login=Login(source=options["auth"], **{name: options[name] for name in fields}),
        **{name: options[name] for name in CLOUD},
    )


class _Reader:
    """``beside`` is the folder of the configuration file, from which relative paths start."""

    def __init__(self, plugin: t.Any, beside: pathlib.Path) -> None:
        self._plugin = plugin
        self._definitions: dict[str, t.Any] = plugin.option_definitions
        self._beside = beside

    def read(self, config: t.Mapping[str, t.Any]) -> Options:
        for name in config:
            if name not in self._definitions:
                hint = _nearest(name, self._definitions) or "see: ansible-doc -t inventory gpufleet.vmss.azure_vmss"
                raise AzureError(f"there is no option {name}; {hint}")
        variables = self._variables(self._templated(self._plugin.get_option("env_file")))
        options: Options = {}
        for option in self._definitions:
            value = self._plugin.get_option(option)
            if option not in config:
                found = self._of_variables(option, variables)
                value = value if found is None else found
            options[option] = value if option in PER_HOST else self._templated(value)
        self._check(options)
        options["logins"] = [self._entry(number, entry, options) for number, entry in enumerate(options["logins"], start=1)]
        if not options["subscription_ids"] and not options["logins"]:
            raise AzureError("no subscription is named; set subscription_ids, or AZURE_SUBSCRIPTION_ID in the environment or env_file")
        _check_subscriptions(options)
        return options

    def _check(self, options: Options) -> None:
        unknown = sorted(set(options["states"]) - set(hosts.STATES))
        if unknown:
            raise AzureError(f"states: {', '.join(unknown)} is not a state; known: {', '.join(hosts.STATES)}")
        if options["parallel"] < 1:
            raise AzureError(f"parallel: {options['parallel']} is not a number of calls; at least 1 (default {listing.PARALLEL})")
        for name in ("cache_on_failure", "on_incomplete"):
            if options[name] in (True, "use_cache") and not options["cache"]:
                raise AzureError(
                    f"{name}: {str(options[name]).lower()} needs a cache; set cache: true, with cache_plugin and cache_connection"
                )
        if options["full_document"] and options["source"] == "graph":
            raise AzureError("full_document: Resource Graph has no full documents; use source: arm")
        if options["ssh_config"]:
            options["ssh_config"] = str(env_file.find(options["ssh_config"], beside=self._beside, option="ssh_config"))

    def _entry(self, number: int, entry: t.Mapping[str, t.Any], options: Options) -> Options:
        """One of ``logins``, whole."""
        where = f"logins, entry {number}"
        for name in entry:
            if name not in ENTRY:
                raise AzureError(f"{where}: there is no option {name}; {_nearest(name, ENTRY) or 'known: ' + ', '.join(ENTRY)}")
        variables = self._variables(entry.get("env_file"))
        given = {name: entry.get(name, self._of_variables(name, variables)) for name in ENTRY if name != "env_file"}
        if not isinstance(given["subscription_ids"], list) or not given["subscription_ids"]:
            raise AzureError(f"{where}: no subscription is named; set subscription_ids to a list of them")
        own_application = any(given[name] is not None for name in APPLICATION)
        for name in (*LOGIN, *CLOUD):
            if given[name] is None and not (own_application and name in APPLICATION):
                given[name] = options[name]
        for name, allowed in (("auth", self._definitions["auth"]["choices"]), ("cloud", self._definitions["cloud"]["choices"])):
            if given[name] not in allowed:
                raise AzureError(f"{where}: {name}: {given[name]} is not known; choose one of {', '.join(allowed)}")
        return given

    def _variables(self, name: str | None) -> dict[str, str]:
        return env_file.read(env_file.find(name, beside=self._beside)) if name else {}

    def _of_variables(self, option: str, variables: t.Mapping[str, str]) -> t.Any:
        """An option's value in a file of variables; None where that says nothing."""
        definition = self._definitions[option]
        names = [entry["name"] for entry in definition.get("env") or [] if entry["name"] in variables]
        return _typed(variables[names[0]], str(definition.get("type")), names[0]) if names else None

    def _templated(self, value: t.Any) -> t.Any:
        try:
            return self._plugin.templar.template(value)
        except AnsibleError as error:
            raise AzureError(f"an option's template fails: {error}") from error


def _check_subscriptions(options: Options) -> None:
    named = [*options["subscription_ids"], *(each for entry in options["logins"] for each in entry["subscription_ids"])]
    twice = sorted({each for each in named if [other.lower() for other in named].count(each.lower()) > 1})
    if twice:
        raise AzureError(f"subscription {twice[0]} is named twice; name it once, in subscription_ids or in one entry of logins")


def _nearest(name: object, known: t.Iterable[str]) -> str:
    near = difflib.get_close_matches(str(name), list(known), n=1)
    return f"did you mean {near[0]}?" if near else ""


def _typed(text: str, kind: str, name: str) -> t.Any:
    """A variable of env_file as its option's type. Raises AzureError for what is none."""
    if kind == "list":
        return [part.strip() for part in text.split(",") if part.strip()]
    if kind == "int":
        try:
            return int(text)
        except ValueError as error:
            raise AzureError(f"env_file: {name} is {text!r}, not a number") from error
    if kind == "bool":
        if text.lower() not in ("true", "false", "yes", "no", "1", "0"):
            raise AzureError(f"env_file: {name} is {text!r}; write true or false")
        return text.lower() in ("true", "yes", "1")
    return text
