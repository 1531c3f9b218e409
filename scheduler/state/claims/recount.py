"""Counts again what claims hold of devices, counters and capacities, from the claims alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

import numpy as np

from scheduler.api.claims.answers import Given
from scheduler.api.claims.devices import PoolKey
from scheduler.schema import devices as d
from scheduler.state.claims.layouts import compute_key
from scheduler.state.claims.store import Claims


def find_difference(claims: Claims) -> str:
    """Say where the columns are not the sum of the claims; empty if they are."""
    counted: Counter[tuple[Hashable, ...]] = Counter()
    for key in claims.claims:
        for one in claims.find_given(key) or ():
            _count(claims, one, counted)
    columns = claims.table.columns
    known: Counter[tuple[Hashable, ...]] = Counter()
    for name, used in (
        ("owners", columns.owners),
        ("sharers", columns.sharers),
        ("cells", columns.cells[d.USED]),
    ):
        known.update({(name, int(i)): int(used[i]) for i in np.flatnonzero(used)})
    if known != counted:
        return f"claims hold {dict(counted)}, the columns have {dict(known)}"
    return _find_undrawn(claims)


def _count(claims: Claims, one: Given, counted: Counter[tuple[Hashable, ...]]) -> None:
    if one.is_admin:
        return
    columns, consumed = claims.table.columns, dict(one.consumed)
    for row in claims.inventory.find_rows(
        PoolKey(one.device.driver, one.device.pool), one.device.name
    ):
        counted["sharers" if one.share else "owners", row] += 1
        cell = int(columns.cell[row])
        if one.share and cell >= 0:
            kind = claims.table.kinds.table.values[int(columns.kind[row])]
            for j, (name, _) in enumerate(kind.capacities):
                if consumed.get(name):
                    counted["cells", cell + j] += consumed[name]


def _find_undrawn(claims: Claims) -> str:
    """Say where the counters are not what the devices in use draw."""
    columns = claims.table.columns
    drawn = np.zeros(columns.counters.shape[1], np.int64)
    in_use = np.flatnonzero((columns.kind >= 0) & ((columns.owners > 0) | (columns.sharers > 0)))
    for row in in_use.tolist():
        times = int(columns.owners[row]) + (columns.sharers[row] > 0)
        for in_set, pattern in d.DRAWS:
            if columns.draws[in_set, row] < 0:
                continue
            base = int(columns.sets[0, columns.draws[in_set, row]])
            first, n = columns.patterns[:2, columns.draws[pattern, row]].tolist()
            for place, amount in columns.pattern[first : first + n].tolist():
                drawn[base + place] += times * amount
    if (drawn != columns.counters[d.USED]).any():
        at = np.flatnonzero(drawn != columns.counters[d.USED]).tolist()
        return f"counters {at}: devices draw {drawn[at].tolist()}, the columns have {columns.counters[d.USED, at].tolist()}"
    for number in np.unique(columns.draws[[0, 2]][columns.draws[[0, 2]] >= 0]).tolist():
        first, n, _, key = columns.sets[:, number].tolist()
        if compute_key(tuple(enumerate(drawn[first : first + n].tolist()))) != key:
            return f"the set of counters {number} has the key of another state"
    return ""
