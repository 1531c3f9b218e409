"""What each kind of waiting pod asks at least, as columns: one comparison finds all kinds that could fit."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from scheduler.api import names
from scheduler.api.pods.templates import PodTemplate
from scheduler.devices.table import FAMILIES
from scheduler.schema.columns import Flags, Ints

# The resources whose amounts are kept. Other resources are looked at only for kinds that these do not rule out.
RESOURCES = (names.CPU, names.MEMORY, *FAMILIES)
_NEVER = 2**63 - 1
_FIRST_CAPACITY = 64


class Needs:
    """Kinds by slot. One writer, like the queue."""

    def __init__(self) -> None:
        self._slots: dict[Hashable, int] = {}
        self._kinds: list[Hashable] = [None] * _FIRST_CAPACITY
        self._free = list(range(_FIRST_CAPACITY - 1, -1, -1))
        # [RESOURCES, slots] what the kind asks; a free slot asks more than any node has.
        self._least: Ints = np.full((len(RESOURCES), _FIRST_CAPACITY), _NEVER, np.int64)
        # [RESOURCES, slots] whether the kind waits for the resource; true in a free slot, so that it is never found.
        self._waited_for: Flags = np.ones((len(RESOURCES), _FIRST_CAPACITY), np.bool_)

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, kind: Hashable, template: PodTemplate) -> None:
        """Add a kind, whose pods all have one template."""
        if not self._free:
            self._grow()
        slot = self._slots[kind] = self._free.pop()
        self._kinds[slot] = kind
        asked = dict(template.requests.amounts)
        self._least[:, slot] = [asked.get(resource, 0) for resource in RESOURCES]
        self._waited_for[:, slot] = False

    def wait_for(self, kind: Hashable, resource: str) -> None:
        """Note that a kind waits until as much of a resource is free as it asks."""
        if resource in RESOURCES:
            self._waited_for[RESOURCES.index(resource), self._slots[kind]] = True

    def drop(self, kind: Hashable) -> None:
        """Remove a kind, of which no pod waits any more."""
        slot = self._slots.pop(kind)
        self._kinds[slot] = None
        self._least[:, slot] = _NEVER
        self._waited_for[:, slot] = True
        self._free.append(slot)

    def list_within(self, most: Ints) -> list[Hashable]:
        """List all kinds except those that wait for more of a resource than ``most`` [RESOURCES]; O(kinds) in columns."""
        fitting = ~((self._least > most[:, None]) & self._waited_for).any(axis=0)
        return [self._kinds[slot] for slot in np.flatnonzero(fitting).tolist()]

    def _grow(self) -> None:
        n = len(self._kinds)
        self._kinds += [None] * n
        self._least = np.pad(self._least, ((0, 0), (0, n)), constant_values=_NEVER)
        self._waited_for = np.pad(self._waited_for, ((0, 0), (0, n)), constant_values=True)
        self._free = list(range(2 * n - 1, n - 1, -1))
