#!/usr/bin/python
# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: alias_plan
author: the gpufleet maintainers (@gpufleet)
short_description: Plan the networks of a fleet whose pods have alias addresses
version_added: 0.1.0
description:
  - Says whether a wished fleet fits Azure's networks and which subnets and peerings it needs, or names the first limit that it breaks.
  - Every pod address is an address of its node's NIC, single or in an aligned C(/28) block, so what Azure allows for NICs, subnets, VNets and
    groups of peered VNets decides how large a fleet can be.
  - Runs on the controller, reads at most the list of VNets, and changes nothing.
requirements:
  - azure-identity and azure-mgmt-core, for O(subscription_ids) alone
options:
  fleet:
    description: The fleet as it is wished for.
    type: dict
    required: true
    suboptions:
      clusters:
        description: Clusters, each in a VNet of its own. Pods of one cluster reach each other; clusters do not.
        type: list
        elements: dict
        required: true
        suboptions:
          name:
            description: The name of the cluster.
            type: str
            required: true
          virtual_network:
            description: The name or the id of the cluster's VNet.
            type: str
            required: true
          hub:
            description: The name or the id of the VNet from which people reach the cluster. Its peerings are planned too.
            type: str
          scale_sets:
            description: The scale sets of the cluster.
            type: list
            elements: dict
            required: true
            suboptions:
              name:
                description:
                  - The name of the scale set. One that the VNet's document knows keeps its subnet, and its addresses are not counted twice.
                type: str
                required: true
              count:
                description: How many such scale sets. More than one are called C(NAME-01), C(NAME-02) and so on.
                type: int
                default: 1
              size:
                description: The VM size.
                type: str
                required: true
              nodes:
                description: Instances of each scale set.
                type: int
                required: true
              growth:
                description: Further instances to keep room for in each scale set. All limits are checked with them.
                type: int
                default: 0
              pods_per_node:
                description: Pod addresses of a node, besides its own.
                type: int
                required: true
              infiniband:
                description:
                  - Whether jobs of this scale set use InfiniBand, and it so needs a single placement group.
                  - By default whether the size has it, by its name.
                type: bool
              orchestration:
                description: The orchestration mode of the scale set.
                type: str
                choices: [Uniform, Flexible]
                default: Uniform
              fault_domains:
                description: Over how many fault domains a Flexible scale set is spread.
                type: int
                default: 1
              subnet:
                description: The name of an existing subnet. Without it the scale set gets a new one with its own name.
                type: str
              application_security_group:
                description: The name of an application security group that all ipConfigurations of the scale set are in.
                type: str
  virtual_networks:
    description:
      - VNets as Azure Resource Manager returns them, or C(az network vnet list) prints them.
      - A VNet that is still to be made is a document with C(name) and C(addressSpace.addressPrefixes).
      - Given beside O(subscription_ids), they are added to what is read.
    type: list
    elements: dict
    default: []
  subscription_ids:
    description:
      - Subscriptions whose VNets are read. The role Reader is enough.
      - The login is that of the inventory P(gpufleet.vmss.azure_vmss#inventory), from its environment variables or from O(env_file).
    type: list
    elements: str
    default: []
  env_file:
    description:
      - A file of C(NAME=VALUE) lines whose variables are used in place of the environment variables of the same names.
      - An absolute path, or one relative to the folder in which the module runs or to a folder above it, up to the root of the project.
    type: path
  resource_groups:
    description: Read the VNets of these resource groups alone.
    type: list
    elements: str
    default: []
  on_premises:
    description: Address ranges in use on premises, which no VNet may overlap.
    type: list
    elements: str
    default: []
  unlisted_addresses:
    description:
      - How many private addresses are in use in peered VNets whose documents are not at hand, and in what these are peered with.
      - They count for the group of peered VNets. Without this option such a peering is an error.
    type: int
  address_form:
    description:
      - V(single) gives every pod address an ipConfiguration. V(blocks) gives a node aligned C(/28) blocks, each of which Azure counts as one.
      - V(auto) takes blocks only where single addresses do not fit.
    type: str
    choices: [auto, single, blocks]
    default: auto
  largest_job_nodes:
    description: The number of nodes of the largest job. With InfiniBand it must fit one scale set, else one cluster.
    type: int
  infiniband_domain_nodes:
    description: The number of instances that InfiniBand connects in one placement group. Microsoft raises it for some subscriptions.
    type: int
    default: 100
attributes:
  check_mode:
    description: Changes nothing, with check mode or without.
    support: full
  diff_mode:
    description: There is nothing to show.
    support: none
notes:
  - Run it on the controller, with C(delegate_to=localhost) or in a play for localhost. Python 3.11 or newer.
  - IPv4 alone.
"""

EXAMPLES = r"""
- name: Plan 7,500 nodes with 27 pod addresses each, before anything is made
  gpufleet.vmss.alias_plan:
    fleet:
      clusters:
        - name: research
          virtual_network: research
          hub: hub
          scale_sets:
            - {name: gpu, count: 75, size: Standard_ND96isr_H100_v5, nodes: 100, pods_per_node: 27}
    virtual_networks:
      - {name: research, addressSpace: {addressPrefixes: [10.16.0.0/12]}}
      - {name: hub, addressSpace: {addressPrefixes: [10.0.0.0/24]}}
    on_premises: [192.168.0.0/16]
    largest_job_nodes: 100
  delegate_to: localhost
  register: network_plan

- name: Show the plan
  ansible.builtin.debug:
    msg: "{{ network_plan.table }}"

- name: Plan beside the VNets that exist
  gpufleet.vmss.alias_plan:
    fleet: "{{ network_plan_fleet }}"
    subscription_ids: [00000000-0000-0000-0000-000000000000]
    resource_groups: [network]
  delegate_to: localhost
"""

RETURN = r"""
plan:
  description: The plan for machines.
  returned: success
  type: dict
  contains:
    format:
      description: The version of this shape.
      type: int
    address_form:
      description: V(single) or V(blocks).
      type: str
    because:
      description: Why blocks were taken where O(address_form=auto), with what single addresses would need.
      type: str
    totals:
      description: Clusters, scale sets, nodes and growth in all, and the pod addresses and ipConfigurations of both.
      type: dict
    clusters:
      description: Each cluster with its scale sets, each of these with its ipConfigurations, its blocks and its subnet.
      type: list
      elements: dict
    virtual_networks:
      description: The private addresses of each cluster's VNet as Azure counts them, and the limit.
      type: list
      elements: dict
    peered_groups:
      description: The same for each group of peered VNets.
      type: list
      elements: dict
    application_security_groups:
      description: The ipConfigurations of each application security group, and the limit.
      type: list
      elements: dict
    peerings_to_make:
      description: Peerings between hubs and clusters that are missing, each in one direction.
      type: list
      elements: dict
    on_premises_routes:
      description: How many ranges O(on_premises) are, neighbours merged.
      type: int
table:
  description: The plan for people, as text in columns.
  returned: success
  type: str
refused:
  description: The first limit that the fleet breaks. The same in words is the message.
  returned: when the fleet does not fit
  type: dict
  sample:
    limit: nic_addresses
    unit: private addresses of a NIC
    value: 256
    needed: 301
    where: scale set gpu
    source: learn.microsoft.com, Azure subscription and service limits, networking limits
"""

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure import (
    arguments,
    network_document,
    network_limits,
    network_listing,
    network_plan,
    network_table,
    network_wish,
)
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.client import Client
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.errors import AzureError
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.network_refusals import RefusedError
from ansible_collections.gpufleet.vmss.plugins.module_utils.azure.virtual_networks import VirtualNetwork, virtual_network

SCALE_SET: dict[str, t.Any] = {
    "name": {"type": "str", "required": True},
    "count": {"type": "int", "default": 1},
    "size": {"type": "str", "required": True},
    "nodes": {"type": "int", "required": True},
    "growth": {"type": "int", "default": 0},
    "pods_per_node": {"type": "int", "required": True},
    "infiniband": {"type": "bool"},
    "orchestration": {"type": "str", "choices": ["Uniform", "Flexible"], "default": "Uniform"},
    "fault_domains": {"type": "int", "default": 1},
    "subnet": {"type": "str"},
    "application_security_group": {"type": "str"},
}
CLUSTER: dict[str, t.Any] = {
    "name": {"type": "str", "required": True},
    "virtual_network": {"type": "str", "required": True},
    "hub": {"type": "str"},
    "scale_sets": {"type": "list", "elements": "dict", "required": True, "options": SCALE_SET},
}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "fleet": {
                "type": "dict",
                "required": True,
                "options": {"clusters": {"type": "list", "elements": "dict", "required": True, "options": CLUSTER}},
            },
            "virtual_networks": {"type": "list", "elements": "dict", "default": []},
            "subscription_ids": {"type": "list", "elements": "str", "default": []},
            "env_file": {"type": "path"},
            "resource_groups": {"type": "list", "elements": "str", "default": []},
            "on_premises": {"type": "list", "elements": "str", "default": []},
            "unlisted_addresses": {"type": "int"},
            "address_form": {"type": "str", "choices": ["auto", "single", "blocks"], "default": "auto"},
            "largest_job_nodes": {"type": "int"},
            "infiniband_domain_nodes": {"type": "int", "default": network_limits.INFINIBAND_NODES.value},
        },
        supports_check_mode=True,
    )
    try:
        wish = network_wish.wish(module.params)
        plan = network_plan.plan(wish, networks(module.params))
    except RefusedError as error:
        module.fail_json(msg=str(error), refused=error.to_document())
    except AzureError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, plan=network_document.to_document(plan), table=network_table.table(plan))


def networks(parameters: t.Mapping[str, t.Any]) -> list[VirtualNetwork]:
    """The VNets that are given, and those that are read. Raises AzureError."""
    if parameters["resource_groups"] and not parameters["subscription_ids"]:
        raise AzureError("resource_groups: they are named without a subscription to read; name subscription_ids too")
    if not parameters["virtual_networks"] and not parameters["subscription_ids"]:
        raise AzureError("virtual_networks: no VNet is at hand; give their documents, or name subscription_ids to have them read")
    found = [virtual_network(document) for document in parameters["virtual_networks"]]
    if parameters["subscription_ids"]:
        subscriptions = parameters["subscription_ids"]
        given = arguments.read({"env_file": parameters["env_file"], "subscription_id": subscriptions[0]}, os.environ)
        with Client(login=arguments.login(given), cloud=arguments.cloud(given), parallel=1) as client:
            found += network_listing.read(client, subscriptions, parameters["resource_groups"])
    return list({network.key: network for network in found}.values())


if __name__ == "__main__":
    main()
