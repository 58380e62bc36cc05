# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Proof from outside that pods reach each other by alias address and that internet bytes are counted."""

from __future__ import annotations

import dataclasses

from .lab_access import Node

PORT = 7500
PAYLOAD_BYTES = 2_000_000
# The lab's host on the internet answers /bytes/N with N bytes.
INTERNET_URL = f"http://203.0.113.10/bytes/{PAYLOAD_BYTES}"
LIMIT_SECONDS = 20

_RECEIVER = f"""
import socket
server = socket.create_server(("", {PORT}))
server.settimeout({LIMIT_SECONDS})
print("listening", flush=True)
connection, peer = server.accept()
connection.settimeout({LIMIT_SECONDS})
size = 0
while block := connection.recv(1 << 16):
    size += len(block)
print(peer[0], size, flush=True)
"""
_SENDER = f"""
import socket, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout={LIMIT_SECONDS})
connection.sendall(bytes(int(sys.argv[3])))
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PodToPod:
    """What the receiving pod saw: the sender's address, and how many bytes came."""

    sender: str
    receiver: str
    seen_source: str
    received_bytes: int

    @property
    def proven(self) -> bool:
        return self.seen_source == self.sender and self.received_bytes == PAYLOAD_BYTES


@dataclasses.dataclass(frozen=True, kw_only=True)
class InternetBytes:
    """How far the internet counters of a node rose while it fetched ``payload`` bytes."""

    node: str
    payload: int
    counted_in: int

    @property
    def proven(self) -> bool:
        # Headers come on top of the payload: 40 of every 1,500 bytes, or less with large segments.
        return self.payload <= self.counted_in <= self.payload * 1.1


def pod_to_pod(first: Node, second: Node) -> PodToPod:
    """Send from a pod on one node to a pod on another. Both pods are removed again."""
    sender = first.add_pod("proof")
    try:
        receiver = second.add_pod("proof")
        try:
            listening = second.start(["ip", "netns", "exec", "proof", "python3", "-c", _RECEIVER])
            try:
                if listening.stdout is None or listening.stdout.readline().strip() != "listening":
                    raise RuntimeError(f"{second.address}: the receiving pod did not start: {listening.communicate()[1].strip()}")
                first.run(["ip", "netns", "exec", "proof", "python3", "-c", _SENDER, receiver, str(PORT), str(PAYLOAD_BYTES)])
                seen, errors = listening.communicate(timeout=LIMIT_SECONDS)
            finally:
                listening.kill()
            if not seen.strip():
                raise RuntimeError(f"{second.address}: the receiving pod heard nothing: {errors.strip()}")
            source, size = seen.split()
            return PodToPod(sender=sender, receiver=receiver, seen_source=source, received_bytes=int(size))
        finally:
            second.delete_pod("proof")
    finally:
        first.delete_pod("proof")


def internet_bytes(node: Node) -> InternetBytes:
    """Fetch from the lab's internet host and read the counters before and after."""
    before = _internet_in(node)
    node.run(["curl", "-fsS", "--max-time", str(LIMIT_SECONDS), "-o", "/dev/null", INTERNET_URL])
    return InternetBytes(node=node.address, payload=PAYLOAD_BYTES, counted_in=_internet_in(node) - before)


def _internet_in(node: Node) -> int:
    return sum(count for (chain, comment), count in node.counters().items() if "INPUT" in chain and comment.endswith("traffic=internet-in"))
