"""Kinds of devices: devices of one kind have equal attributes and capacities but for what names the single device.

Selectors are evaluated once for a kind. Attributes that name the single device, such as a UUID, are told by their usual
names, and by having very many values.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api.claims.devices import COMPARED, Amount, Device, Taint, Value
from scheduler.state.structures.interning import Interner

# The ids of attributes that name a single device, or its place, by the drivers that are known.
_OWN_IDS = frozenset({
    "uuid", "UUID", "parentUUID", "serial", "serialNumber", "index", "minor", "pciBusID", "pciAddress", "pcieBusID",
    "pcieRoot", "gpuModuleID",
})  # fmt: skip
# An attribute with more values than this names single devices.
_VALUES_MAX = 64


class DeviceKind(NamedTuple):
    """What devices of a kind have in common.

    Attributes:
        driver: the driver of their pool.
        attributes: without those that name the single device, sorted.
        capacities: by the name that is published, sorted.
        taints: those that keep claims off, also by rules.
        is_shareable: several claims may have one of them at once.
        has_conditions: a bind waits until the device is ready.
    """

    driver: str
    attributes: tuple[tuple[str, Value], ...]
    capacities: tuple[tuple[str, Amount], ...]
    taints: tuple[Taint, ...]
    is_shareable: bool
    has_conditions: bool


class DeviceKinds:
    """Numbers the kinds of all devices.

    Attributes:
        table: the kinds; a number holds for ever.
        own: full names of attributes that name single devices.
    """

    def __init__(self) -> None:
        self.table: Interner[DeviceKind] = Interner()
        self.own: set[str] = set()
        self._values: dict[str, set[Value]] = {}

    def number_kind(self, driver: str, device: Device, taints: tuple[Taint, ...]) -> int:
        """Number the kind of a device; ``taints`` are all that it has."""
        # What the columns of values cannot hold is a matter of the kind.
        shared = tuple(
            one for one in device.attributes if one[0] not in self.own or one[1][0] not in COMPARED
        )
        kind = DeviceKind(
            driver,
            shared,
            device.capacities,
            taints,
            device.is_shareable,
            bool(device.conditions),
        )
        return self.table.number(kind)

    def note_attributes(self, device: Device) -> bool:
        """Look at the attributes of a device; return whether one of them names single devices and was not known to."""
        before = len(self.own)
        for name, value in device.attributes:
            if name in self.own:
                continue
            if name.rpartition("/")[2] in _OWN_IDS:
                self.own.add(name)
                continue
            seen = self._values.setdefault(name, set())
            seen.add(value)
            if len(seen) > _VALUES_MAX:
                self.own.add(name)
                del self._values[name]
        return len(self.own) != before
