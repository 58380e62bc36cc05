# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wireserver at 168.63.129.16: the addresses of every NIC as the fabric knows them. Goal states are refused.

It knows who asks by address, primary or secondary: unlike IMDS it answers pods too, which is why nodes must close it to them.
"""

from __future__ import annotations

import typing as t
import xml.etree.ElementTree as ElementTree

from aiohttp import web

from ..current import Current
from ..fleet import Fleet, Instance

# The versions that its agents have spoken; today's asks for 2012-11-30 (WALinuxAgent, protocol/wire.py).
SUPPORTED = ("2015-04-05", "2012-11-30", "2012-09-15", "2012-05-15", "2011-12-31")


class Wireserver:
    """``address_of`` tells who asks."""

    def __init__(self, current: Current, *, address_of: t.Callable[[web.Request], str] = lambda request: request.remote or "") -> None:
        self.current = current
        self.address_of = address_of

    def application(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/", self._versions)
        app.router.add_get("/machine/plugins", self._interfaces)
        app.router.add_route("*", "/machine{path:(/.*)?}", self._goal_state)
        return app

    async def _versions(self, request: web.Request) -> web.Response:
        if request.query.get("comp", "").lower() != "versions":
            raise web.HTTPBadRequest
        root = ElementTree.Element("Versions")
        ElementTree.SubElement(ElementTree.SubElement(root, "Preferred"), "Version").text = SUPPORTED[0]
        supported = ElementTree.SubElement(root, "Supported")
        for version in SUPPORTED:
            ElementTree.SubElement(supported, "Version").text = version
        return _xml(root)

    async def _interfaces(self, request: web.Request) -> web.Response:
        if (request.query.get("comp"), request.query.get("type")) != ("nmagent", "getinterfaceinfov1"):
            raise web.HTTPBadRequest
        asking = self.address_of(request)
        fleet = self.current.fleet
        item = next((item for item in fleet.instances if asking in item.addresses), None)
        if item is None:
            raise web.HTTPForbidden
        return _xml(interfaces(fleet, item))

    async def _goal_state(self, request: web.Request) -> web.Response:
        """What configures extensions and certificates on Azure; the lab has none, and says so rather than playing dead."""
        raise web.HTTPGone(text="The lab has no goal states.\n")


def interfaces(fleet: Fleet, item: Instance) -> ElementTree.Element:
    """The NICs of one machine, each with its subnet and addresses, the primary marked."""
    root = ElementTree.Element("Interfaces")
    interface = ElementTree.SubElement(root, "Interface", MacAddress=item.mac.replace(":", "").upper(), IsPrimary="true")
    subnet = ElementTree.SubElement(interface, "IPSubnet", Prefix=str(fleet.subnet_of(fleet.scale_set(item.scale_set)).prefix))
    for number, address in enumerate(item.addresses):
        ElementTree.SubElement(subnet, "IPAddress", Address=address, IsPrimary="true" if number == 0 else "false")
    return root


def _xml(root: ElementTree.Element) -> web.Response:
    return web.Response(body=ElementTree.tostring(root, encoding="utf-8", xml_declaration=True), content_type="text/xml")
