# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of alias_network."""

from __future__ import annotations

from .spec import Parameter

# The size of the published cluster whose settings are the defaults.
ARTICLE_NODES = 7500

SPEC = (
    Parameter(
        name="alias_network_state",
        type="str",
        default="present",
        choices=("present", "absent"),
        description="Whether pods shall get alias addresses on this node.",
    ),
    Parameter(
        name="alias_network_name",
        type="str",
        default="alias",
        description="The name of the CNI network, under which its leases are kept. It cannot change while pods hold addresses.",
    ),
    Parameter(
        name="alias_network_cni",
        type="str",
        default="gpufleet",
        choices=("gpufleet", "external"),
        description=(
            "Whose CNI configuration pods get. With external, azure-vnet or one of your own stays in place: no plugin, "
            "no configuration and no masquerading of ours is written, the rest of the node is prepared and looked at."
        ),
    ),
    Parameter(
        name="alias_network_cni_directory",
        type="str",
        default="/usr/lib/cni",
        description=(
            "Where the container runtime looks for CNI plugins. host-local, portmap and tuning come there with the distribution's "
            "package; in another directory, for example /opt/cni/bin, they must be already."
        ),
    ),
    Parameter(
        name="alias_network_prefixes",
        type="list",
        elements="str",
        default=[],
        description=(
            "Blocks of the NIC (ipConfigurations with privateIPAddressPrefixLength), as 10.1.0.16/28, for the case that IMDS does "
            "not list their addresses. Usually set for each host."
        ),
    ),
    Parameter(
        name="alias_network_wireserver",
        type="bool",
        default=False,
        description="Whether the wireserver is asked for the addresses when IMDS lists no secondary one.",
    ),
    Parameter(
        name="alias_network_non_masquerade",
        type="list",
        elements="str",
        default=["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"],
        description=(
            "Networks that pods reach under their own addresses: virtual networks, peered ones, and those on premises. All else "
            "takes the node's address, since Azure sends nothing from a secondary address to the internet."
        ),
    ),
    Parameter(
        name="alias_network_pod_imds",
        type="str",
        default="deny",
        choices=("deny", "allow"),
        description=(
            "Whether pods may reach IMDS and the wireserver, by which they would have the node's identity. Pods on the host's own "
            "network are not covered. DNS of the wireserver is always open."
        ),
    ),
    Parameter(
        name="alias_network_pod_sysctls",
        type="dict",
        default={},
        description="Kernel parameters of every pod's network namespace, for example net.core.somaxconn, set by the CNI plugin tuning.",
    ),
    Parameter(
        name="alias_network_fleet_nodes",
        type="int",
        default=ARTICLE_NODES,
        minimum=1,
        description="How many nodes reach each other; the neighbour table is sized for them.",
    ),
    Parameter(
        name="alias_network_neighbour_thresholds",
        type="list",
        elements="int",
        default=[],
        description=(
            "The sizes of the neighbour table at which the kernel starts to clean up, does so at once, and takes no more entries. "
            "When empty they follow from alias_network_fleet_nodes: 80000, 90000, 100000 at 7,500 nodes."
        ),
    ),
    Parameter(
        name="alias_network_conntrack_max",
        type="int",
        default=1048576,
        minimum=65536,
        description="How many connections the kernel tracks; its hash table gets a quarter of that. A million suits NICs of 100 Gbit/s.",
    ),
    Parameter(
        name="alias_network_rp_filter",
        type="int",
        minimum=0,
        maximum=2,
        description=(
            "Reverse path filtering of all interfaces. Unset leaves it as it is, and pods pass whatever it is; nodes with several "
            "NICs and routing rules need 2."
        ),
    ),
)
