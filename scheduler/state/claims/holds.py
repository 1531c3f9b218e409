"""What claims hold of devices, as rows that are charged; and who else is charged with rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from scheduler.api.claims.answers import Given
from scheduler.api.claims.devices import PoolKey
from scheduler.schema import columns as c
from scheduler.schema import devices as d
from scheduler.state.claims.inventory import Inventory

if TYPE_CHECKING:
    from scheduler.state.pods import PodRecord


class Holders(Protocol):
    """The pods with their charges, as ``charging.roster`` has them."""

    @property
    def pods(self) -> Mapping[str, PodRecord]: ...  # noqa: D102 - all pods by uid
    @property
    def is_trying(self) -> bool: ...  # noqa: D102 - whether a trial is open
    def is_charged(self, pod: PodRecord) -> bool: ...  # noqa: D102 - whether a pod is charged to a node now
    def strike_pod(self, pod: PodRecord) -> None: ...  # noqa: D102 - take the charge of a pod back
    def charge_pod(self, pod: PodRecord) -> None: ...  # noqa: D102 - charge a pod that was struck
    def charge_devices(self, holds: c.Ints, sign: int) -> None: ...  # noqa: D102 - charge no pod


def make_holds(inventory: Inventory, given: Iterable[Given]) -> c.Ints:
    """Make [h, N_HOLD] what claims hold of devices, as ``Pods.holds``; of devices that are gone nothing."""
    found: list[tuple[int, ...]] = []
    columns, kinds = inventory.table.columns, inventory.table.kinds.table.values
    for one in given:
        if one.is_admin:
            continue
        pool = PoolKey(one.device.driver, one.device.pool)
        for row in inventory.find_rows(pool, one.device.name):
            found.append((row, 0, 0, 0, d.HOLD_SHARE if one.share else d.HOLD_DEVICE))
            cell, consumed = int(columns.cell[row]), dict(one.consumed)
            if not one.share or cell < 0:
                continue
            for j, (name, _) in enumerate(kinds[int(columns.kind[row])].capacities):
                if amount := consumed.get(name, 0):
                    found.append((cell + j, amount, 0, 0, d.HOLD_CELL))
    return np.array(found, np.int64).reshape(-1, c.N_HOLD)
