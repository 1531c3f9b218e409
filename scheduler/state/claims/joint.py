"""What claims hold that several pods have together, as columns: it is held as long as any of these pods is charged.

Each of the pods is charged a row that names the claim. So a kernel that takes pods away finds the devices free when the
last pod of the claim goes, whichever it is, and finds them held again when the first one comes back.
"""

from __future__ import annotations

import numpy as np

from scheduler.schema import columns as c
from scheduler.schema import devices as d
from scheduler.state.structures.runs import Runs


class JointHolds:
    """Owns and grows the columns ``joint`` and ``joint_holds`` of ``schema.devices.Devices``."""

    def __init__(self, columns: d.Devices) -> None:
        self._columns = columns
        self._numbers, self._rows = Runs(), Runs()

    def add(self, holds: c.Ints) -> int:
        """Write what a claim holds, ``holds`` [h, N_HOLD], for nobody yet; return its number."""
        columns, n = self._columns, len(holds)
        number, first = self._numbers.take(1), self._rows.take(n)
        columns.joint = _grow(columns.joint, (3, self._numbers.end))
        columns.joint_holds = _grow(columns.joint_holds, (self._rows.end, 3))
        columns.joint[:, number] = first, n, 0
        columns.joint_holds[first : first + n] = holds[:, [c.HOLD_CARD, c.HOLD_PART, c.HOLD_CORES]]
        return number

    def drop(self, number: int) -> None:
        """Forget a claim that is charged to nobody any more."""
        first, n, _ = self._columns.joint[:, number].tolist()
        self._rows.give_back(first, n)
        self._columns.joint[:, number] = 0
        self._numbers.give_back(number, 1)


def make_hold(number: int) -> c.Ints:
    """Make [1, N_HOLD] what each pod is charged that has a claim together with others."""
    found = np.zeros((1, c.N_HOLD), np.int64)
    found[0, c.HOLD_CARD], found[0, c.HOLD_PART] = number, d.HOLD_JOINT
    return found


def _grow(before: c.Ints, least: tuple[int, int]) -> c.Ints:
    """Return an array with at least so many rows and columns; the axis that grows doubles."""
    if before.shape[0] >= least[0] and before.shape[1] >= least[1]:
        return before
    shape = tuple(2 * n if n > m else m for n, m in zip(least, before.shape, strict=True))
    fresh = np.zeros(shape, np.int64)
    fresh[: before.shape[0], : before.shape[1]] = before
    return fresh
