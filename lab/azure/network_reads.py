# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading NICs with their ipConfigurations, and VNets."""

from __future__ import annotations

import typing as t

from aiohttp import web

from ..fleet import Fleet, Instance
from . import errors, interfaces, names, paging, virtual_networks
from .context import GROUP, NETWORK, NICS, ONE_INSTANCE, ONE_SET, SUBSCRIPTION, Context, Document, Route, get
from .errors import ArmError

VNETS = f"{NETWORK}/{{_v:(?i:virtualNetworks)}}"


class NetworkReads:
    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def _fleet(self) -> Fleet:
        return self._context.fleet

    def routes(self) -> tuple[Route, ...]:
        return (
            get(f"{ONE_SET}/{NICS}", self.set_interfaces),
            get(f"{ONE_INSTANCE}/{NICS}", self.instance_interfaces),
            get(f"{ONE_INSTANCE}/{NICS}/{{nic}}", self.instance_interface),
            get(f"{ONE_INSTANCE}/{NICS}/{{nic}}/{{_ic:(?i:ipConfigurations)}}", self.ip_configurations),
            get(f"{SUBSCRIPTION}{NETWORK}/{NICS}", self.interfaces),
            get(f"{GROUP}{NETWORK}/{NICS}", self.interfaces),
            get(f"{GROUP}{NETWORK}/{NICS}/{{nic}}", self.interface),
            get(f"{SUBSCRIPTION}{VNETS}", self.virtual_networks),
            get(f"{GROUP}{VNETS}", self.virtual_networks),
            get(f"{GROUP}{VNETS}/{{vnet}}", self.virtual_network),
            get(f"{GROUP}{VNETS}/{{vnet}}/subnets", self.subnets),
            get(f"{GROUP}{VNETS}/{{vnet}}/subnets/{{subnet}}", self.subnet),
        )

    def set_interfaces(self, request: web.Request) -> Document:
        # The lists of a whole set's NICs know Uniform sets only; Azure says that a Flexible one does not exist.
        return self._context.page(
            request,
            self._fleet.instances_of(self._context.uniform_set(request).name),
            lambda item: interfaces.render(self._fleet, item),
            paging.INTERFACES,
        )

    def instance_interfaces(self, request: web.Request) -> Document:
        return {"value": [interfaces.render(self._fleet, self._context.instance(request))]}

    def instance_interface(self, request: web.Request) -> Document:
        item = self._context.instance(request)
        self._named_nic(request, item)
        return interfaces.render(self._fleet, item)

    def ip_configurations(self, request: web.Request) -> Document:
        item = self._context.instance(request)
        self._named_nic(request, item)
        return {"value": [interfaces.ip_configuration(self._fleet, item, number) for number in range(len(item.configurations))]}

    def _named_nic(self, request: web.Request, item: Instance) -> None:
        if request.match_info["nic"].lower() != names.interface(self._fleet, item).rpartition("/")[2].lower():
            raise errors.resource_not_found("networkInterfaces", request.match_info["nic"], self._fleet.description.resource_group)

    def interfaces(self, request: web.Request) -> Document:
        return self._context.page(request, self._context.flexible(), lambda item: interfaces.render(self._fleet, item), paging.INTERFACES)

    def interface(self, request: web.Request) -> Document:
        return interfaces.render(self._fleet, self.owner(request))

    def owner(self, request: web.Request) -> Instance:
        """The instance whose NIC is named."""
        wanted = request.match_info["nic"].lower()
        items = self._context.flexible()
        found = next((item for item in items if names.interface(self._fleet, item).rpartition("/")[2].lower() == wanted), None)
        if found is None:
            raise errors.resource_not_found(
                "Microsoft.Network/networkInterfaces", request.match_info["nic"], self._fleet.description.resource_group
            )
        return found

    def virtual_networks(self, request: web.Request) -> Document:
        return self._context.page(
            request, virtual_networks.all_of(self._fleet), lambda item: virtual_networks.render(self._fleet, item), paging.SMALL
        )

    def _vnet(self, request: web.Request) -> t.Any:
        wanted = request.match_info["vnet"].lower()
        found = next((item for item in virtual_networks.all_of(self._fleet) if item.name.lower() == wanted), None)
        if found is None:
            raise errors.resource_not_found(
                "Microsoft.Network/virtualNetworks", request.match_info["vnet"], self._fleet.description.resource_group
            )
        return found

    def virtual_network(self, request: web.Request) -> Document:
        return virtual_networks.render(self._fleet, self._vnet(request))

    def subnets(self, request: web.Request) -> Document:
        vnet = self._vnet(request)
        return self._context.page(request, vnet.subnets, lambda item: virtual_networks.subnet(self._fleet, vnet, item), paging.SMALL)

    def subnet(self, request: web.Request) -> Document:
        vnet = self._vnet(request)
        wanted = request.match_info["subnet"].lower()
        found = next((item for item in vnet.subnets if item.name.lower() == wanted), None)
        if found is None:
            raise ArmError(404, "NotFound", f"Resource {names.subnet(self._fleet, vnet.name, request.match_info['subnet'])} not found.")
        return virtual_networks.subnet(self._fleet, vnet, found)
