# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules for pods on alias addresses: what leaves under the node's address, and what pods must not reach."""

from __future__ import annotations

import itertools
import typing as t

from .rules import DesiredRules, words

CHAIN_PREFIX = "GPUFLEET-ALIAS-"
MASQUERADE = CHAIN_PREFIX + "MASQ"
POD = CHAIN_PREFIX + "POD"
IMDS = "169.254.169.254"
WIRESERVER = "168.63.129.16"
# Goal states and extension settings, and the host's plugin for them (learn.microsoft.com, "What is IP address 168.63.129.16");
# its DNS stays open.
WIRESERVER_PORTS = "80,32526"


def masquerade(primary: str, nic: str, direct: t.Iterable[str]) -> DesiredRules:
    """Azure sends nothing from a secondary address to the internet, so what leaves for other than ``direct`` takes the primary one."""
    return DesiredRules(
        chains={MASQUERADE: (*(f"-d {network} -j RETURN" for network in direct), "-j MASQUERADE --random-fully")},
        hooks={"POSTROUTING": (f"! -s {primary}/32 -o {nic} -j {MASQUERADE}",)},
        chain_prefix=CHAIN_PREFIX,
        is_ours=is_ours,
    )


def closed() -> DesiredRules:
    """A pod that reaches these has the node's identity and secrets. First of all, since a rule before it could accept."""
    return DesiredRules(
        chains={POD: (f"-d {IMDS}/32 -j DROP", f"-d {WIRESERVER}/32 -p tcp -m multiport --dports {WIRESERVER_PORTS} -j DROP")},
        hooks={"FORWARD": (f"-j {POD}",)},
        hooks_first=True,
        chain_prefix=CHAIN_PREFIX,
        is_ours=is_ours,
    )


def none() -> DesiredRules:
    return DesiredRules(chain_prefix=CHAIN_PREFIX, is_ours=is_ours)


def is_ours(rule: str) -> bool:
    """A jump into one of our chains."""
    parts = words(rule)
    return any(option in ("-j", "-g") and target.startswith(CHAIN_PREFIX) for option, target in itertools.pairwise(parts))
