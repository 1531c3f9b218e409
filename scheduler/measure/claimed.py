"""How many devices of ResourceSlices claims have, and how many can be had: by driver and by DeviceClass.

A pool is usually a node's, so figures by pool would be as many as nodes, times drivers. Drivers and classes are few, and
classes are what claims name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping
from typing import NamedTuple

import numpy as np

from scheduler.api.claims.devices import PoolKey
from scheduler.api.claims.extended import find_pod
from scheduler.plugins.claims import device_reasons, offers
from scheduler.schema import columns as c
from scheduler.state.claims.store import Claims
from scheduler.state.cluster import Cluster

# What becomes of a device: a claim has it, or a share of it; it can be had; a taint keeps it from claims; or others draw so
# much of its counters that it cannot be had.
STATES = (ALLOCATED, FREE, TAINTED, BLOCKED) = ("allocated", "free", "tainted", "blocked")
# Of pools: claims get their devices, or get none, because slices are missing or contradict each other.
POOLS = (WHOLE, INCOMPLETE, INVALID) = ("whole", "incomplete", "invalid")
# Of claims: they have devices for somebody, they have some that nobody has reserved, or they have none.
CLAIMS = (RESERVED, UNRESERVED, WAITING) = ("reserved", "unreserved", "waiting")
_ALLOCATED, _FREE, _TAINTED, _BLOCKED = range(len(STATES))
# So many devices, or claims, are looked at in one step.
_STEP = 50_000


class ClaimFigures(NamedTuple):
    """What devices and claims there are.

    Attributes:
        devices: by driver the number of devices in each state, in the order of ``STATES``.
        classes: the same by the name of a class; a device may be of several.
        pools: by driver the number of pools, in the order of ``POOLS``.
        claims: in the order of ``CLAIMS``.
    """

    devices: Mapping[str, tuple[int, ...]]
    classes: Mapping[str, tuple[int, ...]]
    pools: Mapping[str, tuple[int, ...]]
    claims: tuple[int, ...]


class _Seen(NamedTuple):
    """Devices that some node can use: their rows, kinds and states."""

    rows: c.Ints
    kinds: c.Ints
    states: c.Ints


def measure_in_steps(cluster: Cluster) -> Generator[None, None, ClaimFigures]:
    """Count devices, pools and claims, a bounded number of devices or claims at a time; events may come in between."""
    claims = cluster.claims
    known = claims.table.kinds.table.values
    seen = yield from _see_devices(claims)
    drivers = sorted({known[kind].driver for kind in np.unique(seen.kinds).tolist()})
    of_kind = {kind: drivers.index(known[kind].driver) for kind in np.unique(seen.kinds).tolist()}
    numbers = np.array([of_kind.get(kind, 0) for kind in range(len(known))], np.int64)
    sums = _count_states(numbers[seen.kinds], seen.states, len(drivers))
    devices = {driver: tuple(one) for driver, one in zip(drivers, sums.tolist(), strict=True)}
    by_kind = _count_states(seen.kinds, seen.states, len(known))
    yield
    classes: dict[str, tuple[int, ...]] = {}
    for name in sorted(claims.classes):
        classes[name] = _count_class(claims, name, seen, by_kind)
        yield
    of_claims = yield from _count_claims(claims)
    return ClaimFigures(devices, classes, _count_pools(claims), of_claims)


def _see_devices(claims: Claims) -> Generator[None, None, _Seen]:
    all_rows = device_reasons.list_all_devices(claims.table.columns)
    yield
    known = claims.table.kinds.table.values
    tainted = np.array([bool(one.taints) for one in known], np.bool_)
    found = [_Seen(*(np.zeros(0, np.int64),) * 3)]
    for first in range(0, all_rows.size, _STEP):
        columns = claims.table.columns
        rows = all_rows[first : first + _STEP]
        # Devices may have gone, and others may have come in their place, of kinds that were not there before.
        rows = rows[(columns.kind[rows] >= 0) & (columns.kind[rows] < tainted.size)]
        kinds = columns.kind[rows].astype(np.int64)
        checks = (
            ((columns.owners[rows] > 0) | (columns.sharers[rows] > 0), _ALLOCATED),
            (tainted[kinds], _TAINTED),
            (~device_reasons.may_draw(columns, rows), _BLOCKED),
        )
        states = np.select([one for one, _ in checks], [code for _, code in checks], _FREE)
        found.append(_Seen(rows, kinds, states))
        yield
    return _Seen(*map(np.concatenate, zip(*found, strict=True)))


def _count_states(numbers: c.Ints, states: c.Ints, n: int) -> c.Ints:
    """Count [n, states] devices by a number of theirs and their state."""
    cells = numbers * len(STATES) + states
    found: c.Ints = np.bincount(cells, minlength=n * len(STATES)).reshape(-1, len(STATES))
    return found


def _count_class(claims: Claims, name: str, seen: _Seen, by_kind: c.Ints) -> tuple[int, ...]:
    """Count the devices of a class, also those that a taint keeps from claims, by state."""
    mask = offers.get_class_mask(claims, name)
    n = min(len(by_kind), mask.kinds.size)
    has = np.zeros(len(by_kind), np.bool_)
    has[:n] = (mask.kinds | mask.barred)[:n]
    if mask.picked is None:
        return tuple(by_kind[has].sum(axis=0).tolist())
    mine = has[seen.kinds] & (seen.rows < mask.picked.size)
    mine[mine] &= mask.picked[seen.rows[mine]]
    return tuple(np.bincount(seen.states[mine], minlength=len(STATES)).tolist())


def _count_pools(claims: Claims) -> dict[str, tuple[int, ...]]:
    invalid: dict[PoolKey, bool] = {}
    for problems in claims.inventory.problems.values():
        for one in problems:
            invalid[one.pool] = invalid.get(one.pool, False) or one.is_invalid
    states = Counter((pool.driver, POOLS.index(_name_state(invalid.get(pool)))) for pool in claims.inventory.list_pools())  # fmt: skip
    drivers = sorted({driver for driver, _ in states})
    return {one: tuple(states[one, k] for k in range(len(POOLS))) for one in drivers}


def _name_state(is_invalid: bool | None) -> str:
    if is_invalid is None:
        return WHOLE
    return INVALID if is_invalid else INCOMPLETE


def _count_claims(claims: Claims) -> Generator[None, None, tuple[int, ...]]:
    """Count claims; one that stands for extended resources counts as soon as it is made, or decided."""
    counts = Counter[str]()
    for i, key in enumerate(list(claims.claims), 1):
        claim = claims.claims.get(key)
        if claim is not None:
            given = claims.find_given(key)
            if given is not None:
                is_kept = bool(claim.reserved) or claim.given is None
                counts[RESERVED if is_kept else UNRESERVED] += 1
            elif not find_pod(key) or claim.made is not None:
                counts[WAITING] += 1
        if i % _STEP == 0:
            yield
    return tuple(counts[one] for one in CLAIMS)
