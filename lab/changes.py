# Copyright: (c) 2026, the gpufleet maintainers
# GNU General Public License v3.0 or later (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a write makes of a fleet: pure functions from one fleet to the next.

Nothing here touches the machine; effects.py compares two fleets and says what has to happen to the nodes.
Instances are named by their vm_id. A function that cannot do what is asked raises ChangeError.
"""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from . import model
from .fleet import Addresses, Fleet, Instance, Power, ScaleSet, SubnetFullError, configure, new_instance
from .model import Document

# Model parts by what bringing an instance to the latest model does to it. Anything else is only noted.
REIMAGING = frozenset({"storageProfile", "osProfile"})
RESTARTING = frozenset({"sku", "hardwareProfile", "securityProfile", "extensionProfile", "priority"})


class ChangeError(Exception):
    """A write that Azure would refuse; ``code`` is Azure's, the status 409 unless said."""

    def __init__(self, code: str, message: str, *, status: int = 409) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


def with_instances(fleet: Fleet, changed: t.Iterable[Instance]) -> Fleet:
    """The fleet with some instances replaced by what they are now."""
    by_id = {item.vm_id: item for item in changed}
    return dataclasses.replace(fleet, instances=tuple(by_id.get(item.vm_id, item) for item in fleet.instances))


def with_set(fleet: Fleet, changed: ScaleSet) -> Fleet:
    """The fleet with a set replaced, models that nothing has any more dropped, and its etag moved on."""
    used = {item.model_version for item in fleet.instances_of(changed.name)} | {changed.version}
    changed = dataclasses.replace(
        changed, etag=changed.etag + 1, models={version: held for version, held in changed.models.items() if version in used}
    )
    return dataclasses.replace(fleet, scale_sets=tuple(changed if item.name == changed.name else item for item in fleet.scale_sets))


def rewrite(fleet: Fleet, name: str, document: Document, latest: Document) -> Fleet:
    """Give a set another body and model. Its instances keep the model that they have; see ``upgrade``."""
    scale_set = fleet.scale_set(name)
    version = scale_set.version + 1 if latest != scale_set.model else scale_set.version
    changed = dataclasses.replace(scale_set, document=document, version=version, models={**scale_set.models, version: latest})
    return with_set(fleet, changed)


def resize(fleet: Fleet, name: str, capacity: int) -> Fleet:
    """Scale out with the current model, or scale in: the newest ids go first, the protected stay."""
    members = fleet.instances_of(name)
    if capacity < len(members):
        free = sorted((item for item in members if not item.protected_from_scale_in), key=lambda item: -item.index)
        leaving = free[: len(members) - capacity]
        if len(leaving) < len(members) - capacity:
            raise ChangeError(
                "OperationNotAllowed", f"Virtual Machine Scale Set '{name}' cannot be scaled in to {capacity}: its instances are protected."
            )
        return delete(fleet, name, [item.vm_id for item in leaving])
    scale_set = fleet.scale_set(name)
    pool = _pool(fleet, scale_set)
    taken = {item.index for item in members}
    # Ids of deleted instances come again.
    indices = (index for index in range(capacity) if index not in taken)
    added = []
    for offset, index in zip(range(capacity - len(members)), indices, strict=False):
        with _addresses_left(fleet, scale_set):
            added.append(new_instance(fleet.prefix, scale_set, index=index, serial=scale_set.created + offset, pool=pool))
    if not added:
        return fleet
    grown = dataclasses.replace(fleet, instances=(*fleet.instances, *added))
    return with_set(grown, dataclasses.replace(scale_set, created=scale_set.created + len(added)))


def delete(fleet: Fleet, name: str, vm_ids: t.Collection[str]) -> Fleet:
    """Remove instances, and with them the set's capacity."""
    kept = dataclasses.replace(fleet, instances=tuple(item for item in fleet.instances if item.vm_id not in vm_ids))
    return with_set(kept, fleet.scale_set(name))


def replace(fleet: Fleet, name: str, vm_ids: t.Collection[str]) -> Fleet:
    """What an automatic repair of kind Replace does: new machines with new vm_ids and addresses in their place."""
    capacity = len(fleet.instances_of(name))
    before = fleet.instances_of(name)
    smaller = delete(fleet, name, vm_ids)
    scale_set = smaller.scale_set(name)
    # The old addresses are free again only after the new machines have theirs.
    pool = Addresses(fleet.subnet_of(scale_set).prefix, _taken(fleet, scale_set))
    free = [index for index in range(capacity + len(vm_ids)) if index not in {item.index for item in before if item.vm_id not in vm_ids}]
    with _addresses_left(fleet, scale_set):
        added = [
            new_instance(fleet.prefix, scale_set, index=index, serial=scale_set.created + number, pool=pool)
            for number, index in enumerate(free[: len(vm_ids)])
        ]
    grown = dataclasses.replace(smaller, instances=(*smaller.instances, *added))
    return with_set(grown, dataclasses.replace(scale_set, created=scale_set.created + len(added)))


def upgrade(fleet: Fleet, name: str, vm_ids: t.Collection[str]) -> Fleet:
    """Bring instances to the latest model: EVERY difference at once, with the reimage or restart that it needs."""
    scale_set = fleet.scale_set(name)
    pool = _pool(fleet, scale_set)
    changed = []
    for item in _chosen(fleet, name, vm_ids):
        parts = model.differences(fleet.model_of(item), scale_set.model)
        with _addresses_left(fleet, scale_set):
            configurations = configure(model.configurations(scale_set.model), item.configurations, pool)
        changed.append(
            dataclasses.replace(
                item,
                model_version=scale_set.version,
                configurations=configurations,
                generation=item.generation + bool(parts & REIMAGING),
                boots=item.boots + bool(parts & RESTARTING and not parts & REIMAGING and item.power == "running"),
            )
        )
    # with_set a second time drops models that no instance has any more.
    upgraded = with_instances(fleet, changed)
    return with_set(upgraded, upgraded.scale_set(name)) if changed else fleet


def reimage(fleet: Fleet, name: str, vm_ids: t.Collection[str]) -> Fleet:
    """Fresh file systems, same names and addresses; an instance that was stopped runs again."""
    return with_instances(
        fleet, (dataclasses.replace(item, generation=item.generation + 1, power="running") for item in _chosen(fleet, name, vm_ids))
    )


def restart(fleet: Fleet, name: str, vm_ids: t.Collection[str]) -> Fleet:
    """Restart what runs; redeploy does the same here, on another host."""
    return with_instances(
        fleet, (dataclasses.replace(item, boots=item.boots + 1) for item in _chosen(fleet, name, vm_ids) if item.power == "running")
    )


def set_power(fleet: Fleet, name: str, vm_ids: t.Collection[str], power: Power) -> Fleet:
    """Start, power off (still paid for), or deallocate."""
    changed = []
    for item in _chosen(fleet, name, vm_ids):
        started = power == "running" and item.power != "running"
        changed.append(dataclasses.replace(item, power=power, boots=item.boots + started))
    return with_instances(fleet, changed)


def reconfigure(fleet: Fleet, vm_id: str, wanted: t.Sequence[model.Configuration]) -> Fleet:
    """Give one NIC other ipConfigurations, as a write to a Flexible instance's own NIC does."""
    item = next(item for item in fleet.instances if item.vm_id == vm_id)
    scale_set = fleet.scale_set(item.scale_set)
    with _addresses_left(fleet, scale_set):
        configurations = configure(wanted, item.configurations, _pool(fleet, scale_set))
    return with_instances(fleet, [dataclasses.replace(item, configurations=configurations)])


def _chosen(fleet: Fleet, name: str, vm_ids: t.Collection[str]) -> t.Iterator[Instance]:
    return (item for item in fleet.instances_of(name) if item.vm_id in vm_ids)


def _taken(fleet: Fleet, scale_set: ScaleSet) -> t.Iterator[str]:
    place = (scale_set.described.vnet, scale_set.described.subnet)
    neighbours = {item.name for item in fleet.scale_sets if (item.described.vnet, item.described.subnet) == place}
    return (address for item in fleet.instances if item.scale_set in neighbours for address in item.addresses)


def _pool(fleet: Fleet, scale_set: ScaleSet) -> Addresses:
    return Addresses(fleet.subnet_of(scale_set).prefix, _taken(fleet, scale_set))


@contextlib.contextmanager
def _addresses_left(fleet: Fleet, scale_set: ScaleSet) -> t.Iterator[None]:
    """Turns an empty pool into Azure's answer."""
    try:
        yield
    except SubnetFullError as error:
        subnet = fleet.subnet_of(scale_set)
        raise ChangeError(
            "SubnetIsFull",
            f"Subnet {subnet.name} with address prefix {subnet.prefix} does not have enough capacity for the addresses asked for.",
            status=400,
        ) from error


def busy(before: Fleet, after: Fleet) -> Fleet:
    """What is seen while the nodes are being brought from one fleet to the other: both, with their provisioning states."""
    old = {item.vm_id: item for item in before.instances}
    shown: list[Instance] = []
    for item in after.instances:
        earlier = old.pop(item.vm_id, None)
        state: t.Literal["Creating", "Updating"] = "Creating" if earlier is None else "Updating"
        shown.append(item if earlier == item else dataclasses.replace(item, provisioning=state))
    gone = [dataclasses.replace(item, provisioning="Deleting") for item in old.values()]
    # An instance on its way out still needs its model to be shown.
    sets = tuple(dataclasses.replace(held, models={**before.scale_set(held.name).models, **held.models}) for held in after.scale_sets)
    return dataclasses.replace(after, instances=(*shown, *gone), scale_sets=sets)


def failed(before: Fleet, after: Fleet) -> Fleet:
    """What is left when the nodes could not be brought to ``after``: its instances, those concerned in state Failed."""
    old = {item.vm_id: item for item in before.instances}
    return with_instances(
        after, (dataclasses.replace(item, provisioning="Failed") for item in after.instances if old.get(item.vm_id) != item)
    )


def succeeded(before: Fleet, after: Fleet) -> Fleet:
    """What is left when the nodes have followed: instances that had failed and were changed are well again."""
    old = {item.vm_id: item for item in before.instances}
    well = [item for item in after.instances if item.provisioning == "Failed" and old.get(item.vm_id) != item]
    return with_instances(after, (dataclasses.replace(item, provisioning="Succeeded") for item in well)) if well else after
