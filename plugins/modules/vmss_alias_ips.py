#!/usr/bin/python
# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: vmss_alias_ips
author: the gpufleet maintainers (@gpufleet)
short_description: Give the instances of an Azure scale set secondary addresses for pods
version_added: 0.1.0
description:
  - Writes secondary ipConfigurations, single addresses or /28 blocks, into the primary NIC of a scale set's model, and brings idle
    instances to it, wave by wave.
  - Instances of a Uniform set are brought to the set's latest model. Those of a Flexible set get the change on their own NIC.
  - Everything else of the model stays as it is. The write is refused if somebody else has changed the set since it was read.
  - The primary ipConfiguration, IPv6 ones, and those with a public address or behind a load balancer are left alone and not counted.
  - What goes goes from the end of the list, and what comes is called C(alias001) or C(block001) and so on, by the lowest number that is free.
  - Runs where Azure can be reached, normally on the controller with C(delegate_to=localhost) and C(run_once).
extends_documentation_fragment:
  - gpufleet.vmss.azure_login.module
options:
  resource_group:
    description: The resource group of the scale set.
    type: str
    required: true
  scale_set:
    description: The name of the scale set.
    type: str
    required: true
  count:
    description:
      - How many secondary addresses each instance has. Blocks that are there go.
      - A NIC has at most 256 addresses, the primary one among them.
    type: int
  blocks:
    description:
      - How many /28 blocks, of 16 addresses each, each instance has. Single addresses that are there go.
      - Experimental. Azure's API for scale sets takes blocks since version 2026-04-01, and no document of an instance with one was at
        hand when this was written.
    type: int
  idle_instances:
    description:
      - The instances that may be changed now, since no job runs on them. No other instance is touched.
      - An instance is named by C(vm_id), C(instance_id) or name. Use C(vm_id), as the inventory P(gpufleet.vmss.azure_vmss#inventory) gives
        it, since Azure gives the instance id of a deleted instance to another one.
      - An instance that does not exist is an error, before anything is changed.
    type: list
    elements: str
    default: []
  batch_size:
    description: How many instances are changed at once.
    type: int
    default: 20
  pause:
    description: Seconds between one wave and the next.
    type: int
    default: 0
  allow_model_drift:
    description:
      - Instances, named as in O(idle_instances), that are brought to the latest model although they differ from it in more than the network.
      - Azure applies all differences at once. A new image or changed disks reimage the instance, a new size or extension restarts it.
      - Other such instances are left as they are, with a warning that names the differences.
    type: list
    elements: str
    default: []
  addresses_in_use:
    description:
      - The addresses that pods hold, one entry each, as the nodes keep them in C(/run/gpufleet/pods).
      - C(address) is compared. C(namespace), C(pod), C(container_id), and C(instance), which you may add, are for the message. Other keys
        are left alone.
      - Needed where addresses go. If one of them is in use, nothing is changed, also not on instances without pods.
    type: list
    elements: dict
  timeout:
    description: Seconds until one operation of Azure must have ended. One that has not goes on in Azure, and the module fails.
    type: int
    default: 1800
attributes:
  check_mode:
    description: Can run in check mode and predict what would be changed, and what would be refused.
    support: full
  diff_mode:
    description: Shows the network profile of the model, and the instances whose addresses change.
    support: full
notes:
  - "Needs the roles Virtual Machine Contributor on the scale set, and Network Contributor on its subnet and, for Flexible sets, on the NICs
    (or the actions C(Microsoft.Compute/virtualMachineScaleSets/write), C(.../manualupgrade/action), C(.../read) and those below it,
    C(Microsoft.Network/virtualNetworks/subnets/join/action), C(Microsoft.Network/networkInterfaces/read) and C(.../write))."
  - A set whose upgrade policy is Automatic or Rolling is refused where its model must be written, since Azure would change all instances at once.
  - Instances with protection from scale set actions are left alone and named.
seealso:
  - plugin: gpufleet.vmss.azure_vmss
    plugin_type: inventory
"""

EXAMPLES = r"""
- name: 26 addresses for pods on the instances without a job
  gpufleet.vmss.vmss_alias_ips:
    resource_group: train-west
    scale_set: gpu-a
    count: 26
    idle_instances: "{{ groups['scale_set_gpu_a'] | intersect(groups['idle'] | default([])) | map('extract', hostvars, 'vm_id') }}"
    batch_size: 10
    pause: 60
  delegate_to: localhost
  run_once: true

- name: The model alone, for instances that are yet to come
  gpufleet.vmss.vmss_alias_ips:
    resource_group: train-west
    scale_set: gpu-a
    count: 26
  delegate_to: localhost
  run_once: true

- name: Fewer addresses, if no pod holds one that would go
  gpufleet.vmss.vmss_alias_ips:
    resource_group: train-west
    scale_set: gpu-a
    count: 10
    idle_instances: "{{ groups['idle'] | map('extract', hostvars, 'vm_id') }}"
    addresses_in_use: "{{ groups['scale_set_gpu_a'] | map('extract', hostvars, 'held') | flatten }}"
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
model_changed:
  description: Whether the scale set's model was written, or would be.
  returned: always
  type: bool
ip_configurations:
  description: The names of the secondary ipConfigurations that the model has for pods. Empty for a Flexible set without a model.
  returned: success
  type: list
  elements: str
  sample: [alias001, alias002]
waves:
  description: The instance ids that were brought to the model, or would be, wave by wave. After a failure the waves that were done whole.
  returned: always
  type: list
  elements: list
  sample: [["0", "1"], ["2"]]
left_alone:
  description:
    - Instances that do not have the wanted addresses and were left alone, with the reason.
    - V(not_idle), V(protected), V(unsettled) (being made or deleted), V(gone) (between two waves), or V(drifted) with the
      properties in C(drift).
  returned: success
  type: list
  elements: dict
  sample: [{"instance_id": "3", "vm_id": "0a1b2c3d-0000-0000-0000-000000000000", "reason": "drifted", "drift": ["storageProfile.imageReference.version"]}]
in_use:
  description: The addresses that pods hold and that would have gone.
  returned: when that is why nothing was changed
  type: list
  elements: dict
  sample: [{"address": "10.1.0.9", "namespace": "train", "pod": "worker-7", "instance": "gpua000003"}]
"""

import dataclasses
import json
import os
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import (
    alias_rollout,
    arguments,
    ip_configurations,
    used_addresses,
)
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.alias_rollout import Plan, Request, Rollout
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.client import Client
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.documents import at
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.errors import AzureError
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.ip_configurations import BLOCK, SINGLE, Aliases
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.waves import Named

# Reads go one after another, and the writes of one wave's NICs side by side in threads of the SDK.
CONNECTIONS = 4
CONTRIBUTOR = "give this identity the roles Virtual Machine Contributor and Network Contributor there"
# By Azure's codes; "" is for all others.
ADVICE = {
    "": "correct the options, or put right in Azure what it says, and run again",
    "SubscriptionNotFound": "correct subscription_id (AZURE_SUBSCRIPTION_ID); `az account list` shows those of this login",
    "InvalidSubscriptionId": "correct subscription_id (AZURE_SUBSCRIPTION_ID): an id is a GUID",
    "AuthorizationFailed": CONTRIBUTOR,
    "LinkedAuthorizationFailed": CONTRIBUTOR,
    "ResourceGroupNotFound": "correct resource_group",
    "ResourceNotFound": "correct scale_set",
    "InvalidAuthenticationTokenTenant": "the login belongs to another tenant than the subscription: correct tenant_id (AZURE_TENANT_ID)",
    "PreconditionFailed": "somebody else has changed it since it was read: run again",
    "SubnetIsFull": "lower the number of addresses, or make the subnet larger",
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            **arguments.SPEC,
            "resource_group": {"type": "str", "required": True},
            "scale_set": {"type": "str", "required": True},
            "count": {"type": "int"},
            "blocks": {"type": "int"},
            "idle_instances": {"type": "list", "elements": "str", "default": []},
            "batch_size": {"type": "int", "default": 20},
            "pause": {"type": "int", "default": 0},
            "allow_model_drift": {"type": "list", "elements": "str", "default": []},
            "addresses_in_use": {"type": "list", "elements": "dict"},
            "timeout": {"type": "int", "default": 1800},
        },
        mutually_exclusive=[("count", "blocks")],
        required_one_of=[("count", "blocks")],
        supports_check_mode=True,
    )
    answer: dict[str, t.Any] = {"changed": False, "model_changed": False, "waves": []}
    redact: t.Callable[[str], str] = str
    try:
        given = arguments.read(module.params, os.environ)
        module.no_log_values.update(given[name] for name in arguments.SECRETS if given[name])
        login = arguments.login(given)
        redact = login.redact
        request = _request(module.params, given["subscription_id"])
        with Client(login=login, cloud=arguments.cloud(given), parallel=CONNECTIONS, caller="vmss_alias_ips", advice=ADVICE) as client:
            answer.update(_converge(module, Rollout(client, request), answer))
    except AzureError as error:
        if isinstance(error, alias_rollout.InUseError):
            answer["in_use"] = [dataclasses.asdict(use) for use in error.held]
        module.fail_json(msg=redact(f"vmss_alias_ips: {error}"), **answer)
    module.exit_json(**answer)


def _request(parameters: t.Mapping[str, t.Any], subscription_id: str) -> Request:
    """What the task asks for. Raises AzureError."""
    for name, least in (("count", 0), ("blocks", 0), ("batch_size", 1), ("pause", 0), ("timeout", 1)):
        if parameters[name] is not None and parameters[name] < least:
            raise AzureError(f"{name}: {parameters[name]} is too small; at least {least}")
    for name in ("resource_group", "scale_set"):
        if not parameters[name] or "/" in parameters[name]:
            raise AzureError(f"{name}: {parameters[name]!r} is not a name")
    blocks = parameters["blocks"] is not None
    group = f"/subscriptions/{subscription_id}/resourceGroups/{parameters['resource_group']}"
    uses = parameters["addresses_in_use"]
    return Request(
        path=f"{group}/providers/Microsoft.Compute/virtualMachineScaleSets/{parameters['scale_set']}",
        wanted=Aliases(count=parameters["blocks" if blocks else "count"], prefix_length=BLOCK if blocks else SINGLE),
        idle=Named.of(parameters["idle_instances"]),
        allow_drift=Named.of(parameters["allow_model_drift"]),
        uses=None if uses is None else used_addresses.parse(uses),
        batch=parameters["batch_size"],
        pause=parameters["pause"],
        timeout=parameters["timeout"],
    )


def _converge(module: AnsibleModule, rollout: Rollout, answer: dict[str, t.Any]) -> dict[str, t.Any]:
    """Plan, and apply where this is no check; the module's answer. ``answer`` is kept true for a failure on the way."""
    plan = rollout.plan()
    skipped = list(plan.skipped)
    done = [[item.instance_id for item in wave] for wave in plan.waves]
    if plan.changes and not module.check_mode:
        try:
            skipped += rollout.apply(plan)
        finally:
            done = [[item.instance_id for item in wave] for wave in rollout.updated]
            answer.update(changed=rollout.wrote_model or rollout.touched, model_changed=rollout.wrote_model, waves=done)
    for item in skipped:
        if item.reason == "drifted":
            module.warn(
                f"instance {item.instance_id} is left as it is, since bringing it to the latest model would also change "
                f"{', '.join(item.drift)}; name it in allow_model_drift if that is meant"
            )
    model = ip_configurations.of_model(plan.after)
    return {
        "changed": plan.writes_model or bool(done),
        "model_changed": plan.writes_model,
        "waves": done,
        "ip_configurations": [item["name"] for item in ip_configurations.aliases(model)] if model else [],
        # Not "skipped": Ansible would take the whole task for skipped.
        "left_alone": [{**dataclasses.asdict(item), "drift": list(item.drift)} for item in skipped],
        "diff": _diff(plan),
    }


def _diff(plan: Plan) -> list[dict[str, str]]:
    """The model's network profile, and the aliases of the instances that are brought to it."""
    name = plan.before.get("name")
    before, after = (_network(document) for document in (plan.before, plan.after))
    found = (
        [{"before_header": f"{name}: model", "after_header": f"{name}: model", "before": before, "after": after}] if before != after else []
    )
    chosen = {item.vm_id for wave in plan.waves for item in wave}
    for member in plan.outdated:
        if member.candidate.vm_id in chosen:
            header = f"{name}: instance {member.candidate.instance_id}"
            texts = {
                key: "".join(f"{_told(*one)}\n" for one in sorted(held))
                for key, held in (("before", member.held), ("after", member.wished))
            }
            found.append({"before_header": header, "after_header": header, **texts})
    return found


def _network(scale_set: t.Mapping[str, t.Any]) -> str:
    return f"{json.dumps(at(scale_set, 'properties', 'virtualMachineProfile', 'networkProfile'), indent=2)}\n"


def _told(name: str, length: int) -> str:
    return name if length == SINGLE else f"{name} (/{length})"


if __name__ == "__main__":
    main()
