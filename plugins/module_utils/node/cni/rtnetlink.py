# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Interfaces, addresses, routes and neighbours of any network namespace, by rtnetlink(7). Part of the plugin's one file."""

from __future__ import annotations

import _socket
import errno
import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import typing as t

    Message = tuple[int, int, bytes]

CLONE_NEWNET = 0x40000000
# linux/rtnetlink.h, linux/if_link.h, linux/neighbour.h
NEWLINK, DELLINK, GETLINK, NEWADDR, GETADDR, NEWROUTE, GETROUTE, NEWNEIGH = 16, 17, 18, 20, 22, 24, 26, 28
REQUEST, ACK, DUMP, CREATE, EXCL, REPLACE = 1, 4, 0x300, 0x400, 0x200, 0x100
IFLA_ADDRESS, IFLA_IFNAME, IFLA_MTU, IFLA_LINKINFO, IFLA_NET_NS_FD = 1, 3, 4, 18, 28
UP = 1


class Netlink:
    """A socket that stays in the network namespace in which it was opened, this process's own or that of ``namespace``."""

    def __init__(self, namespace: int | None = None) -> None:
        if namespace is None:
            self.socket = self._open()
            return
        home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        enter(namespace)
        try:
            self.socket = self._open()
        finally:
            enter(home)
            os.close(home)

    @staticmethod
    def _open() -> _socket.socket:
        opened = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW | _socket.SOCK_CLOEXEC, _socket.NETLINK_ROUTE)
        opened.bind((0, 0))
        return opened

    def talk(self, messages: list[Message]) -> None:
        """Send all at once; raise OSError for the first that the kernel refuses."""
        self.socket.send(b"".join(numbered(item, number) for number, item in enumerate(messages, 1)))
        failed, left = 0, len(messages)
        while left:
            for kind, body in parts(self.socket.recv(1 << 16)):
                if kind == 2:
                    left -= 1
                    failed = failed or -struct.unpack_from("=i", body)[0]
        if failed:
            raise OSError(failed, os.strerror(failed))

    def ask(self, request: Message) -> list[bytes]:
        """The bodies of the answer to one request, of a dump all."""
        self.socket.send(numbered(request, 1))
        found: list[bytes] = []
        while True:
            for kind, body in parts(self.socket.recv(1 << 18)):
                if kind == 3:
                    return found
                if kind == 2:
                    failed = -struct.unpack_from("=i", body)[0]
                    if failed:
                        raise OSError(failed, os.strerror(failed))
                    return found
                found.append(body)

    def link(self, name: str) -> dict[str, int] | None:
        """index, flags and mtu of an interface, or None."""
        try:
            found = self.ask(message(GETLINK, ACK, struct.pack("=BxHiII", 0, 0, 0, 0, 0), attribute(IFLA_IFNAME, name.encode() + b"\0")))
        except OSError as error:
            if error.errno in (errno.ENODEV, errno.ENXIO):
                return None
            raise
        _family, _type, index, flags, _change = struct.unpack_from("=BxHiII", found[0])
        return {"index": index, "flags": flags, "mtu": struct.unpack("=I", attributes(found[0][16:])[IFLA_MTU])[0]}

    def index(self, name: str) -> int:
        found = self.link(name)
        if found is None:
            raise OSError(errno.ENODEV, f"the interface {name} went away while it was set up")
        return found["index"]

    def delete(self, name: str) -> None:
        found = self.link(name)
        if found is not None:
            try:
                self.talk([message(DELLINK, 0, struct.pack("=BxHiII", 0, 0, found["index"], 0, 0))])
            except OSError as error:
                if error.errno != errno.ENODEV:  # the container's end went in the same moment
                    raise

    def veth(self, name: str, mac: str, peer: str, peer_mac: str, mtu: int, namespace: int) -> None:
        """Make a pair of which one end is in ``namespace`` from the start."""
        empty = struct.pack("=BxHiII", 0, 0, 0, 0, 0)
        end = empty + ends(peer, peer_mac, mtu) + attribute(IFLA_NET_NS_FD, struct.pack("=I", namespace))
        pair = attribute(1, b"veth") + attribute(2, attribute(1, end))
        self.talk([message(NEWLINK, CREATE | EXCL, empty, ends(name, mac, mtu), attribute(IFLA_LINKINFO, pair))])

    def addresses(self) -> set[tuple[int, str]]:
        """(index, address) of every IPv4 address."""
        found = set()
        for body in self.ask(message(GETADDR, DUMP, struct.pack("=BBBBI", 2, 0, 0, 0, 0))):
            local = attributes(body[8:]).get(2)
            if local:
                found.add((struct.unpack_from("=BBBBI", body)[4], _socket.inet_ntoa(local)))
        return found

    def routes(self) -> set[tuple[int, str, int, str]]:
        """(index, network, prefix length, gateway) of every IPv4 route of the main table."""
        found = set()
        for body in self.ask(message(GETROUTE, DUMP, struct.pack("=BBBBBBBBI", 2, *[0] * 8))):
            _family, length, _source, _tos, table = struct.unpack_from("=BBBBB", body)
            known = attributes(body[12:])
            if table == 254 and 4 in known:
                gateway = _socket.inet_ntoa(known[5]) if 5 in known else ""
                found.add((struct.unpack("=i", known[4])[0], _socket.inet_ntoa(known.get(1, bytes(4))), length, gateway))
        return found


def enter(namespace: int) -> None:
    """setns(2), which Python has since 3.12. Raises OSError for what is no network namespace."""
    if sys.version_info >= (3, 12):
        os.setns(namespace, CLONE_NEWNET)
        return
    # The core of ctypes: its whole import would take 3 ms.
    import _ctypes

    if _ctypes.call_function(_ctypes.dlsym(_ctypes.dlopen("", os.RTLD_NOW), "setns"), (namespace, CLONE_NEWNET)):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def message(kind: int, flags: int, body: bytes, *attached: bytes) -> Message:
    return (kind, flags | REQUEST | (0 if flags & DUMP == DUMP else ACK), body + b"".join(attached))


def numbered(item: Message, number: int) -> bytes:
    kind, flags, body = item
    return struct.pack("=IHHII", 16 + len(body), kind, flags, number, 0) + body


def parts(data: bytes) -> t.Iterator[tuple[int, bytes]]:
    """(kind, body) of each message of one datagram."""
    start = 0
    while start < len(data):
        length, kind = struct.unpack_from("=IH", data, start)
        yield kind, data[start + 16 : start + length]
        start += (length + 3) & ~3


def attribute(kind: int, value: bytes) -> bytes:
    length = 4 + len(value)
    return struct.pack("=HH", length, kind) + value + bytes(-length % 4)


def attributes(data: bytes) -> dict[int, bytes]:
    found, start = {}, 0
    while start < len(data):
        length, kind = struct.unpack_from("=HH", data, start)
        found[kind & 0x3FFF] = data[start + 4 : start + length]
        start += (length + 3) & ~3
    return found


def ends(name: str, mac: str, mtu: int) -> bytes:
    named = attribute(IFLA_IFNAME, name.encode() + b"\0")
    return named + attribute(IFLA_ADDRESS, hardware(mac)) + attribute(IFLA_MTU, struct.pack("=I", mtu))


def hardware(mac: str) -> bytes:
    return bytes.fromhex(mac.replace(":", ""))


def packed(address: str) -> bytes:
    return _socket.inet_aton(address)


def set_up(index: int) -> Message:
    return message(NEWLINK, 0, struct.pack("=BxHiII", 0, 0, index, UP, UP))


def own_address(index: int, address: str) -> Message:
    """As /32: nothing else is on the link."""
    header = struct.pack("=BBBBI", 2, 32, 0, 0, index)
    return message(NEWADDR, CREATE | EXCL, header, attribute(2, packed(address)), attribute(1, packed(address)))


def neighbour(index: int, address: str, mac: str) -> Message:
    """A permanent entry, which no ARP answer changes."""
    header = struct.pack("=BxHiHBB", 2, 0, index, 0x80, 0, 0)
    return message(NEWNEIGH, CREATE | REPLACE, header, attribute(1, packed(address)), attribute(2, hardware(mac)))


def route(index: int, network: str, length: int, gateway: str = "", scope: int = 0) -> Message:
    """``scope`` 253 is a route to what is on the link itself, 0 one by a gateway (RT_SCOPE_LINK, RT_SCOPE_UNIVERSE)."""
    by = attribute(5, packed(gateway)) if gateway else b""
    header = struct.pack("=BBBBBBBBI", 2, length, 0, 0, 254, 3, scope, 1, 0)
    return message(NEWROUTE, CREATE | REPLACE, header, attribute(1, packed(network)), by, attribute(4, struct.pack("=i", index)))
