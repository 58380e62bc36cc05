# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Azure allows of a fleet's network, each number beside its source. Data; network_plan judges by it."""

from __future__ import annotations

import dataclasses

_NETWORKING = "learn.microsoft.com, Azure subscription and service limits, networking limits (text of 2022-12-05)"
_PLACEMENT = "learn.microsoft.com, Working with large virtual machine scale sets (text of 2026-05-19)"
_ORCHESTRATION = "learn.microsoft.com, Orchestration modes for Virtual Machine Scale Sets"
_FAQ = "learn.microsoft.com, Azure Virtual Network frequently asked questions: address ranges of VNets and subnets"
_OVERLAP = "learn.microsoft.com, Virtual network peering: requirements and constraints"
_OURS = "the topology of this collection: docs/network-plan.md"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rule:
    """What must be so; ``unit`` says it in words."""

    name: str
    unit: str
    source: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limit(Rule):
    """How many there may be of what ``unit`` says."""

    value: int


# Addresses

# Of an IPv4 subnet of any size: the first four and the last.
RESERVED_AT_START = 4
RESERVED_AT_END = 1
SUBNET_ADDRESSES = Limit(
    name="subnet_addresses",
    value=RESERVED_AT_START + RESERVED_AT_END,
    unit="addresses of every subnet that Azure keeps for itself",
    source=_FAQ,
)
# The smallest subnet that Azure makes; same page.
SMALLEST_SUBNET_LENGTH = 29
# The one length of a block that Azure gives to a NIC (privateIPAddressPrefixLength), and what that makes.
# learn.microsoft.com, "Configure Azure CNI Pod Subnet - Static Block Allocation".
BLOCK_LENGTH = 28
BLOCK_ADDRESSES = 1 << (32 - BLOCK_LENGTH)

# For a NIC no text says that a block counts as one, so all addresses of its blocks are counted.
NIC_ADDRESSES = Limit(name="nic_addresses", value=256, unit="private addresses of a NIC", source=_NETWORKING)
# Here a block counts as one (the page on static block allocation above).
VNET_ADDRESSES = Limit(name="vnet_addresses", value=65_536, unit="private addresses of a VNet", source=_NETWORKING)
# No text says whether spokes of one hub, which are not peered with each other, are one group; they are counted as one.
GROUP_ADDRESSES = Limit(name="group_addresses", value=128_000, unit="private addresses of a group of peered VNets", source=_NETWORKING)
ASG_CONFIGURATIONS = Limit(
    name="asg_configurations", value=4_000, unit="ipConfigurations of an application security group", source=_NETWORKING
)

# VNets

VNET_SUBNETS = Limit(name="vnet_subnets", value=3_000, unit="subnets of a VNet", source=_NETWORKING)
VNET_PEERINGS = Limit(name="vnet_peerings", value=500, unit="peerings of a VNet", source=_NETWORKING)
TABLE_ROUTES = Limit(name="table_routes", value=400, unit="routes of a route table", source=_NETWORKING)
ADDRESS_SPACE = Rule(name="address_space", unit="free ranges of the VNet's address space", source=_FAQ)
OVERLAP = Rule(name="overlap", unit="address ranges that may not overlap", source=_OVERLAP)
CLUSTERS_APART = Rule(name="clusters_apart", unit="clusters that do not reach each other", source=_OURS)

# Scale sets

SET_NODES = Limit(name="set_nodes", value=1_000, unit="instances of a scale set", source=_PLACEMENT)
# N sizes, for which Azure has no memory-preserving updates, over more than one fault domain.
SPREAD_GPU_SET_NODES = Limit(
    name="spread_gpu_set_nodes",
    value=200,
    unit="instances of a Flexible scale set of an N size with several fault domains",
    source=_ORCHESTRATION,
)
# InfiniBand needs a single placement group. Microsoft raises this for some subscriptions, hence infiniband_domain_nodes.
INFINIBAND_NODES = Limit(
    name="infiniband_nodes", value=100, unit="instances that reach each other by InfiniBand (one placement group)", source=_PLACEMENT
)
LARGEST_JOB = Rule(name="largest_job", unit="nodes that a job reaches", source=_PLACEMENT)
SET_SUBNET = Rule(name="set_subnet", unit="one subnet for a scale set", source=_PLACEMENT)
# Subnets of several ranges take one customer address a NIC: azure.microsoft.com/updates, 502583 (2025-09-04).
SUBNET_PREFIXES = Rule(name="subnet_prefixes", unit="one range for a subnet of pods", source="azure.microsoft.com/updates, 502583")
