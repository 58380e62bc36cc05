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
    C(computer_name), C(instance_name), C(resource_id) and C(gpu_family), which are not kept as host variables. So may O(include) and
    O(exclude)."
  - Every option may be a template, for example with the P(ansible.builtin.env#lookup) lookup.
  - "Set C(any_unparsed_is_failed = true) in the section C([inventory]) of C(ansible.cfg). Without it Ansible only warns when an inventory
    fails and goes on without hosts."
extends_documentation_fragment:
  - gpufleet.vmss.azure_login
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
    description: The subscriptions to list with the login of the options below. More with other logins are named in O(logins).
    type: list
    elements: str
    default: []
    env:
      - name: AZURE_SUBSCRIPTION_ID
  source:
    description:
      - V(arm) reads every scale set from Azure Resource Manager as it is now.
      - V(graph) asks Azure Resource Graph, which needs a tenth of the calls and may be 60 seconds behind. It has no fault domain,
        placement group and health of an instance, and so no groups of these. It says so in a warning.
    type: str
    default: arm
    choices: [arm, graph]
    env:
      - name: GPUFLEET_INVENTORY_SOURCE
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
  exclude_resource_groups:
    description: Names or globs of resource groups to leave out.
    type: list
    elements: str
    default: []
  exclude_scale_sets:
    description: Names or globs of scale sets to leave out.
    type: list
    elements: str
    default: []
  scale_set_tags:
    description:
      - Keep only scale sets that have all these tags. A value may be a glob, with regard to case; V(*) is any value.
      - Sets that are left out by name or tag cost no further call. For the tags of single instances see O(include) and O(exclude).
    type: dict
    default: {}
  include:
    description:
      - Keep only hosts for which one of these Jinja2 expressions is true. They may use what O(hostname) may use.
    type: list
    elements: str
    default: []
  exclude:
    description: Leave out hosts for which one of these Jinja2 expressions is true. It wins over O(include).
    type: list
    elements: str
    default: []
  logins:
    description:
      - Further subscriptions that are read with other logins, or in other clouds.
      - An entry has O(subscription_ids) and any of the options O(auth), O(tenant_id), O(client_id), O(client_secret), O(certificate_path),
        O(certificate_password), O(federated_token_file), O(cloud), O(arm_endpoint), O(authority), O(audience), O(ca_file) and O(env_file),
        of which the last is a file of variables for this entry.
      - What an entry does not give is as in the options of these names. Those from O(client_id) to O(federated_token_file) are taken over
        only together, so that no application is tried with the secret of another one.
    type: list
    elements: dict
    default: []
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
  ssh_config:
    description:
      - An ssh configuration file for all hosts, for example one that names a bastion. Becomes C(ansible_ssh_common_args) of the group C(all).
      - Connections that ssh keeps open are kept apart from those made with other such files (C(ansible_control_path_dir)),
        since fleets behind different bastions may have the same addresses.
      - An absolute path, or one relative to the folder of this configuration file or to a folder above it.
    type: str
    env:
      - name: GPUFLEET_SSH_CONFIG
  cache_on_failure:
    description:
      - Whether the cached fleet is used, with a warning, when Azure cannot be asked. That is when the login service or Azure Resource
        Manager is not reached, or does not give even the list of scale sets. A login that is refused is an error all the same.
      - Needs O(cache), and a cache plugin that keeps files, since others forget what is older than O(cache_timeout).
    type: bool
    default: false
  on_incomplete:
    description:
      - What happens when Azure answers in part. V(fail) ends with an error. V(use_cache) uses the cached fleet, with a warning, and
        ends with the error where there is none. It needs what O(cache_on_failure) needs.
      - A part of a fleet is never given for the whole.
    type: str
    default: fail
    choices: [fail, use_cache]
  stale_limit:
    description:
      - How old, in seconds, a fleet may be that O(cache_on_failure) or O(on_incomplete) takes from the cache.
      - Its time is then in the variable C(azure_vmss_stale) of the group C(all), so that a play can refuse it.
    type: int
    default: 14400
  refresh:
    description: Whether to ask Azure though the cache is fresh, and renew it. The option C(--flush-cache) of Ansible's commands does it too.
    type: bool
    default: false
    env:
      - name: GPUFLEET_INVENTORY_REFRESH
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
# From the cache for ten minutes, and for four hours when Azure does not answer.
plugin: gpufleet.vmss.azure_vmss
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: ~/.cache/gpufleet
cache_timeout: 600
cache_on_failure: true
on_incomplete: use_cache

---
# Two subscriptions with an identity each, the training sets of ring 0 alone.
plugin: gpufleet.vmss.azure_vmss
logins:
  - subscription_ids: [11111111-1111-1111-1111-111111111111]
    auth: managed
  - subscription_ids: [22222222-2222-2222-2222-222222222222]
    env_file: partner.env
scale_set_tags: {team: training}
exclude_scale_sets: ["*-test"]
include: [vmss_tags.ring | default('') == '0']

---
# To look at much and often: a minute behind, for a tenth of the calls.
plugin: gpufleet.vmss.azure_vmss
source: graph

---
# Two sets of the same computer name prefix.
plugin: gpufleet.vmss.azure_vmss
hostname: scale_set ~ '-' ~ instance_id
"""

import datetime
import hashlib
import shlex
import time
import typing as t

from ansible.errors import AnsibleError, AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable
from ansible.template import trust_as_template
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import fleet, graph, hosts
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.errors import AzureError, IncompleteError, UnavailableError
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.query import Query
from ansible_collections.gpufleet.vmss.plugins.plugin_utils import inventory_options
from ansible_collections.gpufleet.vmss.plugins.plugin_utils.fleet_cache import FleetCache, Kept

# Two expressions that need no template engine.
PLAIN_NAMES = frozenset({"computer_name", "instance_name"})

Known = dict[str, t.Any]
Fleet = tuple[fleet.Instance, ...]


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """Options -> query -> fleet, from Azure or the cache -> hosts. What is asked and made of the answers is in module_utils/azure."""

    NAME = "gpufleet.vmss.azure_vmss"

    def verify_file(self, path: str) -> bool:
        """Whether ``path`` is called as this plugin's files are; decided without reading it."""
        return bool(super().verify_file(path)) and path.endswith(("azure_vmss.yml", "azure_vmss.yaml"))

    def parse(self, inventory: t.Any, loader: t.Any, path: str, cache: bool = True) -> None:
        """Fill ``inventory``. Every failure is one AnsibleParserError."""
        super().parse(inventory, loader, path, cache)
        config = self._read_config_data(path)
        query: Query | None = None
        try:
            options = inventory_options.read(self, config, path)
            query = inventory_options.query(options)
            found, stale = self._fleet(query, options, path, cache)
            if stale:
                inventory.set_variable("all", "azure_vmss_stale", _marked(stale))
            self._populate(inventory, found, options)
        except AzureError as error:
            # The cause is in the message already, and a library's own text may be long: one message, no chain.
            said = query.redact(str(error)) if query else str(error)
            raise AnsibleParserError(f"azure_vmss: {path}: {said}") from None

    # From Azure or the cache

    def _fleet(self, query: Query, options: Known, path: str, may_use_cache: bool) -> tuple[Fleet, str]:
        """Every instance in scope, and the time of the fleet where it is a stale one."""
        if not options["cache"]:
            return query.ask(), ""
        kept = FleetCache(options, f"{self.get_cache_key(path)}_{query.digest}", self._warn)
        fresh = kept.fresh(time.time()) if may_use_cache and not options["refresh"] else None
        if fresh:
            return fresh.instances, ""
        # Taken before the first call: what is read may be that old.
        now = time.time()
        try:
            found = query.ask()
        except UnavailableError as error:
            return self._stale(kept, options, error, wanted=options["cache_on_failure"])
        except IncompleteError as error:
            return self._stale(kept, options, error, wanted=options["on_incomplete"] == "use_cache")
        kept.keep(Kept(instances=found, read_at=now))
        return found, ""

    def _stale(self, kept: FleetCache, options: Known, error: AzureError, *, wanted: bool) -> tuple[Fleet, str]:
        """The cached fleet in place of an answer; raises ``error`` where that is not wanted or there is none."""
        now = time.time()
        found = kept.within(options["stale_limit"], now) if wanted else None
        if found is None:
            if wanted:
                raise type(error)(f"{error}; and the cache holds no fleet younger than {options['stale_limit']} s (stale_limit)")
            raise error
        when = datetime.datetime.fromtimestamp(found.read_at, datetime.UTC).isoformat(timespec="seconds")
        self._warn(
            f"THE FLEET OF {when} IS USED, {(now - found.read_at) / 60:.0f} minutes old, because Azure gives no whole answer: {error}"
        )
        return found.instances, when

    def _warn(self, line: str) -> None:
        self.display.warning(f"azure_vmss: {line}")

    # Hosts

    def _populate(self, inventory: t.Any, found: t.Sequence[fleet.Instance], options: Known) -> None:
        if options["source"] == "graph":
            missing = ", ".join(graph.MISSING)
            self._warn(f"this fleet is from Resource Graph, which may be {graph.BEHIND_SECONDS} s behind and does not know {missing}")
        kept, left_out = hosts.keep(found, options["states"])
        known = [(instance, hosts.variables(instance), hosts.expression_variables(instance)) for instance in kept]
        chosen = [entry for entry in known if self._wanted(entry, options)]
        if not chosen and not options["allow_empty"]:
            raise AzureError(
                f"no host: {len(found)} instances are in scope and none is kept"
                + (f" ({left_out})" if left_out else "")
                + f"; {_why_none(found, kept)}; set allow_empty: true if an empty fleet is meant"
            )
        if left_out:
            self._warn(left_out)
        for line in hosts.blurred([instance for instance, _variables, _extra in chosen]):
            self._warn(f"{line}; use resource_groups or scale_sets to tell them apart")
        named = [(self._name(options["hostname"], variables, extra), instance, variables, extra) for instance, variables, extra in chosen]
        hosts.check_names((name, instance) for name, instance, _variables, _extra in named)
        if options["ssh_config"]:
            inventory.set_variable("all", "ansible_ssh_common_args", _marked(f"-F {shlex.quote(options['ssh_config'])}"))
            # Ansible finds an open connection by user, address and port alone. A short name: paths of sockets end at 108 bytes.
            kept_apart = hashlib.sha256(options["ssh_config"].encode()).hexdigest()[:8]
            inventory.set_variable("all", "ansible_control_path_dir", _marked(f"~/.ansible/cp/{kept_apart}"))
        for name, instance, variables, extra in sorted(named, key=lambda entry: entry[0]):
            self._add(inventory, name, instance, variables, extra, options)

    def _wanted(self, entry: tuple[fleet.Instance, Known, Known], options: Known) -> bool:
        """Whether ``include`` and ``exclude`` keep this host."""
        instance, variables, extra = entry
        for option, decides in (("exclude", False), ("include", True)):
            for expression in options[option]:
                try:
                    self.templar.available_variables = {**variables, **extra}
                    true = self.templar.evaluate_conditional(expression)
                except AnsibleError as error:
                    raise AzureError(
                        f"{option}: {expression!r} cannot be evaluated for {instance.resource_id}: {error}; correct it"
                    ) from error
                if true:
                    return decides
        return not options["include"]

    def _name(self, expression: str, variables: Known, extra: Known) -> str:
        if expression in PLAIN_NAMES:
            return str(extra[expression])
        try:
            return str(self._compose(expression, {**variables, **extra}))
        except AnsibleError as error:
            raise AzureError(f"hostname: {expression!r} cannot be evaluated for {extra['resource_id']}: {error}; correct it") from error

    def _add(self, inventory: t.Any, name: str, instance: fleet.Instance, variables: Known, extra: Known, options: Known) -> None:
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


def _why_none(found: t.Sequence[fleet.Instance], kept: t.Sequence[fleet.Instance]) -> str:
    if not found:
        return "correct resource_groups, scale_sets and scale_set_tags"
    return "correct include and exclude" if kept else "correct states"


def _marked(value: t.Any) -> t.Any:
    """Text that no template engine would touch, marked as such.

    Unmarked text is written as a mapping of its own by ``ansible-inventory --list``, which doubles the output and which
    other readers of it (testinfra) do not understand. Text with a template's brackets stays unmarked, and so stays text.
    """
    return trust_as_template(value) if isinstance(value, str) and "{" not in value else value
