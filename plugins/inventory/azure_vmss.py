# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: azure_vmss
author: the gpufleet maintainers (@gpufleet)
short_description: The instances of Azure virtual machine scale sets, with all their addresses
version_added: 0.1.0
description:
  - Lists the instances of scale sets, Uniform and Flexible, of one or many subscriptions, with their power state, placement
    and every private address of their network interfaces.
  - No call is made for a single instance. Instances and interfaces come by scale set and page, so 7,500 instances in 75 sets
    cost 152 calls.
  - An answer that is not whole fails the inventory. It never becomes a smaller fleet.
  - The configuration file is called C(azure_vmss.yml), or ends in C(.azure_vmss.yml).
notes:
  - "Host variables, each absent where Azure does not say: C(ansible_host) and C(primary_address) (the primary address of the
    primary interface), C(alias_addresses) (all secondary IPv4 addresses in short, for example C(10.1.0.5-10.1.0.30,10.1.4.16/28),
    expanded by the filter P(gpufleet.vmss.expand_addresses#filter)), C(vm_id) (the identity of the machine), C(scale_set),
    C(instance_id), C(resource_group), C(subscription_id), C(location), C(zone), C(fault_domain), C(placement_group),
    C(orchestration) (V(uniform) or V(flexible)), C(vm_size), C(power_state), C(provisioning_state), C(health_state),
    C(latest_model) and C(protected) (from scale-in or from scale-set actions)."
  - "Groups: C(scale_set_NAME), C(resource_group_NAME), C(location_NAME), C(zone_LOCATION_NUMBER), C(fault_domain_NUMBER),
    C(placement_group_ID), C(size_NAME), C(gpu_MODEL) (for example C(gpu_h100); C(cpu) for sizes without one), C(power_STATE),
    C(health_STATE), C(orchestration_MODE), C(protected), and C(latest_model) or C(outdated_model). Names are lower case, with
    C(_) for every character that a group name cannot hold."
  - "The options O(hostname), O(compose), O(groups) and O(keyed_groups) may also use C(vmss_tags) (the instance's tags),
    C(computer_name), C(instance_name), C(resource_id) and C(gpu_family), which are not kept as host variables."
  - Every option may be a template, for example with the P(ansible.builtin.env#lookup) lookup.
  - "Set C(any_unparsed_is_failed = true) in the section C([inventory]) of C(ansible.cfg). Without it Ansible only warns when an inventory
    fails and goes on without hosts."
requirements:
  - azure-identity
  - azure-mgmt-core
extends_documentation_fragment:
  - constructed
  - inventory_cache
options:
  plugin:
    description: The name of this plugin.
    type: str
    required: true
    choices: [gpufleet.vmss.azure_vmss]
  env_file:
    description:
      - A file of C(NAME=VALUE) lines whose variables are used in place of the environment variables of the same names,
        so that one inventory can mean one Azure whatever the shell has set. The lab writes such a file.
      - An absolute path, or one relative to the folder of this configuration file or to a folder above it, up to the root
        of the project.
      - Options in this configuration file win over it.
    type: str
    env:
      - name: GPUFLEET_AZURE_ENV_FILE
  subscription_ids:
    description: The subscriptions to list.
    type: list
    elements: str
    default: []
    env:
      - name: AZURE_SUBSCRIPTION_ID
  resource_groups:
    description:
      - Names or globs of resource groups. All of them when empty.
      - Where all are names without globs, only these groups are asked, so the right to read them is enough.
    type: list
    elements: str
    default: []
    env:
      - name: GPUFLEET_RESOURCE_GROUPS
  scale_sets:
    description: Names or globs of scale sets. All of them when empty. A name without a glob must exist.
    type: list
    elements: str
    default: []
    env:
      - name: GPUFLEET_SCALE_SETS
  states:
    description:
      - Keep instances in these states. Others are counted in a warning.
      - An instance that is being made or deleted, or whose last operation failed, is V(creating), V(deleting) or V(failed) whatever
        its power state.
    type: list
    elements: str
    default: [running]
    choices: [running, starting, stopping, stopped, deallocating, deallocated, creating, deleting, failed, unknown]
  allow_empty:
    description: Whether a fleet in which no instance is kept is an answer. Otherwise it is an error.
    type: bool
    default: false
  hostname:
    description:
      - A Jinja2 expression for the inventory name of a host. Two instances with one name are an error.
    type: str
    default: computer_name
  full_document:
    description:
      - Keep the raw documents of instance and interfaces in the host variable C(vmss_document).
      - Costs about 25 KB a host with 27 addresses; Ansible then needs minutes and gigabytes for thousands of hosts.
    type: bool
    default: false
  auth:
    description:
      - How to log in.
      - V(environment) is a service principal with a secret or a certificate, from the options below or their variables.
      - V(workload) is a federated token in a file, V(managed) is the identity of the Azure machine this runs on, V(cli) is C(az login).
      - V(auto) tries those of them that are set up, in this order.
    type: str
    default: auto
    choices: [auto, environment, workload, managed, cli]
    env:
      - name: GPUFLEET_AZURE_AUTH
  tenant_id:
    description: The Entra tenant.
    type: str
    env:
      - name: AZURE_TENANT_ID
  client_id:
    description: The application, or the user-assigned managed identity.
    type: str
    env:
      - name: AZURE_CLIENT_ID
  client_secret:
    description: The application's secret. Keep it out of this file; take it from the environment, from O(env_file) or from a lookup.
    type: str
    env:
      - name: AZURE_CLIENT_SECRET
  certificate_path:
    description: A PEM or PKCS12 file with the application's certificate and private key.
    type: str
    env:
      - name: AZURE_CLIENT_CERTIFICATE_PATH
  certificate_password:
    description: The password of O(certificate_path). Keep it out of this file.
    type: str
    env:
      - name: AZURE_CLIENT_CERTIFICATE_PASSWORD
  federated_token_file:
    description: The file with the token of a workload identity.
    type: str
    env:
      - name: AZURE_FEDERATED_TOKEN_FILE
  cloud:
    description: Which public cloud.
    type: str
    default: AzureCloud
    choices: [AzureCloud, AzureChinaCloud, AzureUSGovernment]
    env:
      - name: GPUFLEET_AZURE_CLOUD
  arm_endpoint:
    description:
      - The address of a private Azure Resource Manager, in place of that of O(cloud).
      - Without O(authority) it is asked where to log in.
    type: str
    env:
      - name: GPUFLEET_ARM_ENDPOINT
  authority:
    description: The address of the login service, in place of that of O(cloud).
    type: str
    env:
      - name: AZURE_AUTHORITY_HOST
  audience:
    description: What tokens are asked for. By default what the cloud says, or O(arm_endpoint).
    type: str
    env:
      - name: GPUFLEET_ARM_AUDIENCE
  ca_file:
    description: A PEM file of certificate authorities to trust in place of the built-in ones.
    type: str
    env:
      - name: GPUFLEET_CA_FILE
      - name: REQUESTS_CA_BUNDLE
  ssh_config:
    description:
      - An ssh configuration file for all hosts, for example one that names a bastion. Becomes C(ansible_ssh_common_args) of the group C(all).
      - Connections that ssh keeps open are kept apart from those made with other such files (C(ansible_control_path_dir)),
        since fleets behind different bastions may have the same addresses.
      - An absolute path, or one relative to the folder of this configuration file or to a folder above it.
    type: str
    env:
      - name: GPUFLEET_SSH_CONFIG
  parallel:
    description: How many calls may be under way at once.
    type: int
    default: 16
    env:
      - name: GPUFLEET_ARM_PARALLEL
"""

EXAMPLES = r"""
# Everything from the environment: AZURE_SUBSCRIPTION_ID, and a login.
plugin: gpufleet.vmss.azure_vmss

---
# The GPU sets of two resource groups, with the instances that are stopped, grouped by a tag.
plugin: gpufleet.vmss.azure_vmss
subscription_ids:
  - 00000000-0000-0000-0000-000000000000
resource_groups: [train-west, train-north]
scale_sets: ["gpu-*"]
states: [running, stopped, deallocated]
keyed_groups:
  - key: vmss_tags.cluster
    prefix: cluster
compose:
  rack: placement_group

---
# Two sets of the same computer name prefix.
plugin: gpufleet.vmss.azure_vmss
hostname: scale_set ~ '-' ~ instance_id
"""

import dataclasses
import difflib
import hashlib
import json
import pathlib
import shlex
import typing as t

from ansible.errors import AnsibleError, AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable
from ansible.template import trust_as_template
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import clouds, env_file, fleet, hosts, listing
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.client import Client
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.credentials import Login
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.errors import AzureError

# A cache that an older shape of the records wrote is not read: raise this with every change of fleet.Instance.
CACHE_VERSION = 1
# The options that are evaluated for each host, and so are not templated when they are read.
PER_HOST = frozenset({"hostname", "compose", "groups", "keyed_groups"})
# Two expressions that need no template engine.
PLAIN_NAMES = frozenset({"computer_name", "instance_name"})


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """Options -> query -> populate. What is asked and made of the answers is in module_utils/azure."""

    NAME = "gpufleet.vmss.azure_vmss"

    def verify_file(self, path: str) -> bool:
        """Whether ``path`` is called as this plugin's files are; decided without reading it."""
        return bool(super().verify_file(path)) and path.endswith(("azure_vmss.yml", "azure_vmss.yaml"))

    def parse(self, inventory: t.Any, loader: t.Any, path: str, cache: bool = True) -> None:
        """Fill ``inventory``. Every failure is one AnsibleParserError."""
        super().parse(inventory, loader, path, cache)
        config = self._read_config_data(path)
        login = Login()
        try:
            options = self._options_of(config, path)
            login = Login(source=options["auth"], **{field: options[field] for field in _LOGIN_FIELDS})
            found = self._query(options, login, path, cache)
            self._populate(inventory, found, options)
        except AzureError as error:
            # The cause is in the message already, and a library's own text may be long: one message, no chain.
            raise AnsibleParserError(f"azure_vmss: {path}: {login.redact(str(error))}") from None

    def _options_of(self, config: t.Mapping[str, t.Any], path: str) -> dict[str, t.Any]:
        """Every option of this plugin: from the file, else from env_file, else from the environment, else its default."""
        definitions = self.option_definitions
        for name in config:
            if name not in definitions:
                near = difflib.get_close_matches(str(name), definitions, n=1)
                raise AzureError(
                    f"there is no option {name}"
                    + (f"; did you mean {near[0]}?" if near else "; see: ansible-doc -t inventory gpufleet.vmss.azure_vmss")
                )
        name = self._templated(self.get_option("env_file"))
        variables = env_file.read(env_file.find(name, beside=pathlib.Path(path).absolute().parent)) if name else {}
        options: dict[str, t.Any] = {}
        for option, definition in definitions.items():
            value = self.get_option(option)
            if option not in config:
                sources = [entry["name"] for entry in definition.get("env") or [] if entry["name"] in variables]
                if sources:
                    value = _typed(variables[sources[0]], str(definition.get("type")))
            options[option] = value if option in PER_HOST else self._templated(value)
        unknown = sorted(set(options["states"]) - set(hosts.STATES))
        if unknown:
            raise AzureError(f"states: {', '.join(unknown)} is not a state; known: {', '.join(hosts.STATES)}")
        if options["parallel"] < 1:
            raise AzureError(f"parallel: {options['parallel']} is not a number of calls; at least 1 (default {listing.PARALLEL})")
        if options["ssh_config"]:
            options["ssh_config"] = str(
                env_file.find(options["ssh_config"], beside=pathlib.Path(path).absolute().parent, option="ssh_config")
            )
        if not options["subscription_ids"]:
            raise AzureError("no subscription is named; set subscription_ids, or AZURE_SUBSCRIPTION_ID in the environment or env_file")
        return options

    def _templated(self, value: t.Any) -> t.Any:
        try:
            return self.templar.template(value)
        except AnsibleError as error:
            raise AzureError(f"an option's template fails: {error}") from error

    def _query(self, options: t.Mapping[str, t.Any], login: Login, path: str, may_use_cache: bool) -> tuple[fleet.Instance, ...]:
        """Every instance in scope, from the cache where that is wanted and filled."""
        scope = listing.Scope(
            subscription_ids=tuple(options["subscription_ids"]),
            resource_groups=tuple(options["resource_groups"]),
            scale_sets=tuple(options["scale_sets"]),
            keep_documents=options["full_document"],
            parallel=options["parallel"],
        )
        key = f"{self.get_cache_key(path)}_{_digest(scope, options)}"
        if options["cache"] and may_use_cache:
            cached = self._cache.get(key)
            if cached:
                return tuple(fleet.Instance(**{**record, "alias_addresses": tuple(record["alias_addresses"])}) for record in cached)
        cloud = clouds.choose(
            options["cloud"],
            arm_endpoint=options["arm_endpoint"],
            authority=options["authority"],
            audience=options["audience"],
            ca_file=options["ca_file"],
        )
        with Client(login=login, cloud=cloud, parallel=scope.parallel) as client:
            found = listing.read(client, scope)
        if options["cache"]:
            self._cache[key] = [{field: getattr(instance, field) for field in _INSTANCE_FIELDS} for instance in found]
        return found

    def _populate(self, inventory: t.Any, found: t.Sequence[fleet.Instance], options: t.Mapping[str, t.Any]) -> None:
        kept, left_out = hosts.keep(found, options["states"])
        if not kept and not options["allow_empty"]:
            raise AzureError(
                f"no host: {len(found)} instances are in scope and none is kept"
                + (f" ({left_out})" if left_out else "; correct resource_groups and scale_sets")
                + "; set allow_empty: true if an empty fleet is meant"
            )
        if left_out:
            self.display.warning(f"azure_vmss: {left_out}")
        for line in hosts.blurred(kept):
            self.display.warning(f"azure_vmss: {line}; use resource_groups or scale_sets to tell them apart")
        known = [(instance, hosts.variables(instance), hosts.expression_variables(instance)) for instance in kept]
        named = [(self._name(options["hostname"], variables, extra), instance, variables, extra) for instance, variables, extra in known]
        hosts.check_names((name, instance) for name, instance, _variables, _extra in named)
        if options["ssh_config"]:
            inventory.set_variable("all", "ansible_ssh_common_args", _marked(f"-F {shlex.quote(options['ssh_config'])}"))
            # Ansible finds an open connection by user, address and port alone. A short name: paths of sockets end at 108 bytes.
            kept_apart = hashlib.sha256(options["ssh_config"].encode()).hexdigest()[:8]
            inventory.set_variable("all", "ansible_control_path_dir", _marked(f"~/.ansible/cp/{kept_apart}"))
        for name, instance, variables, extra in sorted(named, key=lambda entry: entry[0]):
            self._add(inventory, name, instance, variables, extra, options)

    def _name(self, expression: str, variables: t.Mapping[str, t.Any], extra: t.Mapping[str, t.Any]) -> str:
        if expression in PLAIN_NAMES:
            return str(extra[expression])
        try:
            return str(self._compose(expression, {**variables, **extra}))
        except AnsibleError as error:
            raise AzureError(f"hostname: {expression!r} cannot be evaluated for {extra['resource_id']}: {error}; correct it") from error

    def _add(
        self,
        inventory: t.Any,
        name: str,
        instance: fleet.Instance,
        variables: dict[str, t.Any],
        extra: t.Mapping[str, t.Any],
        options: t.Mapping[str, t.Any],
    ) -> None:
        inventory.add_host(name)
        for variable, value in variables.items():
            inventory.set_variable(name, variable, _marked(value))
        for group in hosts.groups(instance):
            inventory.add_group(group)
            inventory.add_child(group, name)
        if not (options["compose"] or options["groups"] or options["keyed_groups"]):
            return
        context = {**variables, **extra, "inventory_hostname": name}
        strict = options["strict"]
        self._set_composite_vars(options["compose"], context, name, strict=strict)
        context.update(inventory.get_host(name).get_vars())
        self._add_host_to_composed_groups(options["groups"], context, name, strict=strict, fetch_hostvars=False)
        self._add_host_to_keyed_groups(options["keyed_groups"], context, name, strict=strict, fetch_hostvars=False)


_LOGIN_FIELDS = tuple(field.name for field in dataclasses.fields(Login) if field.name != "source")
_INSTANCE_FIELDS = tuple(field.name for field in dataclasses.fields(fleet.Instance))


def _marked(value: t.Any) -> t.Any:
    """Text that no template engine would touch, marked as such.

    Unmarked text is written as a mapping of its own by ``ansible-inventory --list``, which doubles the output and which
    other readers of it (testinfra) do not understand. Text with a template's brackets stays unmarked, and so stays text.
    """
    return trust_as_template(value) if isinstance(value, str) and "{" not in value else value


def _typed(text: str, kind: str) -> t.Any:
    """A variable of env_file as its option's type. Raises AzureError for a number that is none."""
    if kind == "list":
        return [part.strip() for part in text.split(",") if part.strip()]
    if kind == "int":
        try:
            return int(text)
        except ValueError as error:
            raise AzureError(f"env_file: {text!r} is not a number") from error
    return text


def _digest(scope: listing.Scope, options: t.Mapping[str, t.Any]) -> str:
    """Everything that changes the answer, and nothing secret."""
    parts = {
        "version": CACHE_VERSION,
        "scope": dataclasses.asdict(scope),
        **{name: options[name] for name in ("cloud", "arm_endpoint", "authority", "auth", "tenant_id", "client_id")},
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
