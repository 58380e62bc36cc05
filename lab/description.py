# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a lab is asked to hold: the YAML description, read and checked before anything is made."""

from __future__ import annotations

import dataclasses
import difflib
import ipaddress
import pathlib
import re
import typing as t

import yaml

Orchestration = t.Literal["Uniform", "Flexible"]
Kind = t.Literal["container", "machine", "stub"]

# Azure: at most 256 private addresses on one NIC, the primary included
# (learn.microsoft.com, "Azure subscription and service limits", networking limits).
ADDRESSES_PER_NIC = 256
# Azure keeps the first four and the last address of every subnet for itself.
RESERVED_AT_START = 4
RESERVED_AT_END = 1
# The lab's own networks. Cluster VNets must not overlap them.
HUB_VNET = ipaddress.IPv4Network("10.0.0.0/24")
STORAGE_SUBNET = ipaddress.IPv4Network("10.0.1.0/24")
INTERNET_NETWORK = ipaddress.IPv4Network("203.0.113.0/24")

_NAME = re.compile(r"^[a-z][a-z0-9-]{0,30}[a-z0-9]$")


class DescriptionError(ValueError):
    """A description that cannot be built; the message says what, where and what to do."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Subnet:
    name: str
    prefix: ipaddress.IPv4Network


@dataclasses.dataclass(frozen=True, kw_only=True)
class VirtualNetwork:
    name: str
    address_space: ipaddress.IPv4Network
    subnets: tuple[Subnet, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScaleSet:
    """One scale set as asked for. ``ip_configurations`` counts the primary too; ``packages`` are what its image holds besides."""

    name: str
    sku: str
    vnet: str
    subnet: str
    instances: int
    ip_configurations: int
    orchestration: Orchestration = "Uniform"
    kind: Kind = "container"
    image: str = "bookworm"
    packages: tuple[str, ...] = ()
    profile: str = "cpu"
    zones: tuple[str, ...] = ()
    tags: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Description:
    subscription: str
    tenant: str
    location: str
    resource_group: str
    vnets: tuple[VirtualNetwork, ...]
    scale_sets: tuple[ScaleSet, ...]


_DEFAULTS: dict[str, str] = {
    "subscription": "5ab00000-0000-4000-8000-000000000001",
    "tenant": "7e4a0000-0000-4000-8000-000000000001",
    "location": "westeurope",
    "resource_group": "gpufleet-lab",
}


def load(path: pathlib.Path) -> Description:
    """Read one YAML description.

    Raises DescriptionError for a file that is absent, is not YAML, or asks for what Azure would refuse.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DescriptionError(
            f"{path}: cannot be read ({error.strerror}); name a lab description, for example lab/fleets/demo.yml"
        ) from error
    except yaml.YAMLError as error:
        raise DescriptionError(f"{path}: is not valid YAML: {error}") from error
    return parse(document, where=str(path))


def parse(document: object, *, where: str = "description") -> Description:
    """Check a description that is already data, and give it types."""
    top = _mapping(document, where)
    _only(top, {*_DEFAULTS, "vnets", "scale_sets"}, where)
    vnets = tuple(_vnet(item, f"{where}: vnets[{index}]") for index, item in enumerate(_sequence(top, "vnets", where)))
    scale_sets = tuple(_scale_set(item, f"{where}: scale_sets[{index}]") for index, item in enumerate(_sequence(top, "scale_sets", where)))
    description = Description(
        **{key: str(top.get(key, default)) for key, default in _DEFAULTS.items()},
        vnets=vnets,
        scale_sets=scale_sets,
    )
    _check_networks(description, where)
    _check_scale_sets(description, where)
    return description


def _vnet(item: object, where: str) -> VirtualNetwork:
    entry = _mapping(item, where)
    _only(entry, {"name", "address_space", "subnets"}, where)
    subnets = []
    for index, raw in enumerate(_sequence(entry, "subnets", where)):
        place = f"{where}.subnets[{index}]"
        subnet = _mapping(raw, place)
        _only(subnet, {"name", "prefix"}, place)
        subnets.append(Subnet(name=_name(subnet, place), prefix=_network(subnet, "prefix", place)))
    return VirtualNetwork(name=_name(entry, where), address_space=_network(entry, "address_space", where), subnets=tuple(subnets))


def _scale_set(item: object, where: str) -> ScaleSet:
    entry = _mapping(item, where)
    _only(entry, {field.name for field in dataclasses.fields(ScaleSet)}, where)
    missing = {"name", "sku", "vnet", "subnet", "instances", "ip_configurations"} - set(entry)
    if missing:
        raise DescriptionError(f"{where}: {', '.join(sorted(missing))} missing; every scale set needs them")
    return ScaleSet(
        name=_name(entry, where),
        sku=str(entry["sku"]),
        vnet=str(entry["vnet"]),
        subnet=str(entry["subnet"]),
        instances=_count(entry, "instances", where, low=0, high=1000),
        ip_configurations=_count(entry, "ip_configurations", where, low=1, high=ADDRESSES_PER_NIC),
        orchestration=_choice(entry, "orchestration", t.get_args(Orchestration), where),
        kind=_choice(entry, "kind", t.get_args(Kind), where),
        image=str(entry.get("image", "bookworm")),
        packages=tuple(str(package) for package in t.cast("list[object]", entry.get("packages", []))),
        profile=str(entry.get("profile", "cpu")),
        zones=tuple(str(zone) for zone in t.cast("list[object]", entry.get("zones", []))),
        tags={str(key): str(value) for key, value in _mapping(entry.get("tags", {}), f"{where}.tags").items()},
    )


def _check_networks(description: Description, where: str) -> None:
    seen: list[tuple[str, ipaddress.IPv4Network]] = [("the lab's hub", HUB_VNET), ("the lab's storage", STORAGE_SUBNET)]
    for vnet in description.vnets:
        for other, space in seen:
            if vnet.address_space.overlaps(space):
                raise DescriptionError(
                    f"{where}: vnet {vnet.name} {vnet.address_space} overlaps {other} {space}; VNets that are peered may not overlap"
                )
        seen.append((f"vnet {vnet.name}", vnet.address_space))
        for subnet in vnet.subnets:
            if not subnet.prefix.subnet_of(vnet.address_space):
                raise DescriptionError(f"{where}: subnet {subnet.name} {subnet.prefix} lies outside vnet {vnet.name} {vnet.address_space}")


def _check_scale_sets(description: Description, where: str) -> None:
    prefixes = {(vnet.name, subnet.name): subnet.prefix for vnet in description.vnets for subnet in vnet.subnets}
    wanted = dict.fromkeys(prefixes, 0)
    names: set[str] = set()
    for scale_set in description.scale_sets:
        if scale_set.name in names:
            raise DescriptionError(f"{where}: scale set {scale_set.name} is there twice; names are unique in a resource group")
        names.add(scale_set.name)
        key = (scale_set.vnet, scale_set.subnet)
        if key not in prefixes:
            known = ", ".join(f"{vnet}/{subnet}" for vnet, subnet in prefixes) or "none"
            raise DescriptionError(
                f"{where}: scale set {scale_set.name} names subnet {'/'.join(key)}, which is not described (known: {known})"
            )
        wanted[key] += scale_set.instances * scale_set.ip_configurations
    for key, count in wanted.items():
        room = prefixes[key].num_addresses - RESERVED_AT_START - RESERVED_AT_END
        if count > room:
            raise DescriptionError(
                f"{where}: subnet {'/'.join(key)} {prefixes[key]} has {room} usable addresses, {count} are asked for; widen it"
            )


def _mapping(value: object, where: str) -> dict[str, t.Any]:
    if not isinstance(value, dict):
        raise DescriptionError(f"{where}: a mapping is wanted, not {type(value).__name__}")
    return t.cast("dict[str, t.Any]", value)


def _sequence(entry: dict[str, t.Any], key: str, where: str) -> list[object]:
    value = entry.get(key)
    if not isinstance(value, list) or not value:
        raise DescriptionError(f"{where}: {key} must be a list with at least one entry")
    return t.cast("list[object]", value)


def _only(entry: dict[str, t.Any], allowed: set[str], where: str) -> None:
    for key in entry:
        if key not in allowed:
            near = difflib.get_close_matches(str(key), sorted(allowed), n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(sorted(allowed))}"
            raise DescriptionError(f"{where}: unknown key {key}{hint}")


def _name(entry: dict[str, t.Any], where: str) -> str:
    name = str(entry.get("name", ""))
    if not _NAME.match(name):
        raise DescriptionError(f"{where}: name {name!r} must be 2 to 32 lower-case letters, digits or dashes, a letter first")
    return name


def _network(entry: dict[str, t.Any], key: str, where: str) -> ipaddress.IPv4Network:
    try:
        return ipaddress.IPv4Network(str(entry.get(key)))
    except ValueError as error:
        raise DescriptionError(f"{where}: {key} {entry.get(key)!r} is not an IPv4 network ({error})") from error


def _count(entry: dict[str, t.Any], key: str, where: str, *, low: int, high: int) -> int:
    value = entry[key]
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise DescriptionError(f"{where}: {key} must be a whole number from {low} to {high}, not {value!r}")
    return value


def _choice(entry: dict[str, t.Any], key: str, choices: tuple[str, ...], where: str) -> t.Any:
    value = entry.get(key, choices[0])
    if value not in choices:
        raise DescriptionError(f"{where}: {key} must be one of {', '.join(choices)}, not {value!r}")
    return value
