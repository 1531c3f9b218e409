"""Why each device by itself does not suit a request, by the columns.

It agrees with the kernel, which also looks at what the pod gets beside the device: constraints, and shared counters.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import numpy as np

from scheduler.plugins.claims.offers import sum_by_node
from scheduler.schema import columns as c
from scheduler.schema import devices as d
from scheduler.state.claims.store import Claims


class Why(IntEnum):
    """Why a device does not suit a request; the larger, the further it is from being of use."""

    FITS = 0
    CONSUMED = 1  # too little is left of its capacities
    COUNTERS = 2  # too little is left of the counters that it draws on
    IN_USE = 3  # a claim has it
    TAINT = 4  # a taint that is not tolerated
    UNLIKE = 5  # a selector, or its capacities while nothing is in use
    FAILED = 6  # a selector that fails on it


def find_reasons(devices: d.Devices, ask: d.ClaimAsk, leaf: int, rows: c.Ints) -> c.Ints:
    """Find [n] why devices do not suit a leaf now, as ``Why``."""
    kind = devices.kind[rows]
    suits, barred = ask.may_have[leaf, kind], ask.barred[leaf, kind]
    picky = int(ask.leaves[leaf, d.LEAF_PICKY])
    if picky >= 0:
        suits = suits & ask.picked[picky, rows]
    found = np.full(rows.size, int(Why.UNLIKE))
    found[ask.fails[leaf, kind]] = Why.FAILED
    found[barred] = Why.TAINT
    found[suits] = Why.FITS
    if ask.leaves[leaf, d.LEAF_ADMIN]:
        at = np.flatnonzero(suits)
        found[at[~_may_consume(devices, ask, leaf, rows[at])]] = Why.CONSUMED
        return found
    free = is_free(devices, rows)
    found[suits & ~free] = Why.IN_USE
    at = np.flatnonzero(suits & free)
    suffices = may_draw(devices, rows[at])
    found[at[~suffices]] = Why.COUNTERS
    at = at[suffices]
    found[at[~_may_consume(devices, ask, leaf, rows[at])]] = Why.CONSUMED
    return found


def is_free(devices: d.Devices, rows: c.Ints) -> c.Flags:
    """Find [n] whether claims may have devices, or a share of them, by which claims have them already."""
    can_share = devices.shareable[devices.kind[rows]]
    found: c.Flags = (devices.owners[rows] == 0) & ((devices.sharers[rows] == 0) | can_share)
    return found


def may_draw(devices: d.Devices, rows: c.Ints) -> c.Flags:
    """Find [n] whether the counters of devices suffice for them; those of a device that is shared already are drawn."""
    found = np.ones(rows.size, np.bool_)
    for in_set, pattern in d.DRAWS:
        at = np.flatnonzero(devices.draws[in_set, rows] >= 0)
        first, n = devices.patterns[:2, devices.draws[pattern, rows[at]]]
        device = np.repeat(at, n)
        place = np.repeat(first - (np.cumsum(n) - n), n) + np.arange(device.size)
        base = devices.sets[d.SET_FIRST, devices.draws[in_set, rows[device]]]
        counter = base + devices.pattern[place, 0]
        left = devices.counters[d.TOTAL, counter] - devices.counters[d.USED, counter]
        found[device[devices.pattern[place, 1] > left]] = False
    return found | (devices.sharers[rows] > 0)


def _may_consume(devices: d.Devices, ask: d.ClaimAsk, leaf: int, rows: c.Ints) -> c.Flags:
    """Find [n] whether enough is left of the capacities of shareable devices."""
    kind, cell = devices.kind[rows], devices.cell[rows]
    consumed = ask.consumes[leaf, kind]
    at = np.flatnonzero((consumed >= 0) & (cell >= 0))
    n = devices.n_cells[kind[at]]
    device = np.repeat(at, n)
    j = np.arange(device.size) - np.repeat(np.cumsum(n) - n, n)
    cells = cell[device] + j
    left = devices.cells[d.TOTAL, cells] - devices.cells[d.USED, cells]
    found = np.ones(rows.size, np.bool_)
    found[device[ask.amounts[consumed[device] + j] > left]] = False
    return found


def list_devices(devices: d.Devices, row: int) -> c.Ints:
    """List the devices of a node, in order."""
    first, n = devices.spans_of[:, row].tolist()
    spans = devices.spans[first : first + n].tolist()
    found = np.array([one for start, count in spans for one in range(start, start + count)], np.int64)  # fmt: skip
    # The last flag is that of devices that every node has which has them in its spans.
    reaches = np.append(devices.reaches[:, row], np.True_)
    rows: c.Ints = found[reaches[devices.reach[found]]]
    return rows


def list_all_devices(devices: d.Devices) -> c.Ints:
    """List the devices of all nodes, each once."""
    there = np.zeros(devices.kind.size, np.bool_)
    begin, n = devices.spans_of
    used = np.repeat(begin - (np.cumsum(n) - n), n) + np.arange(n.sum())
    for start, count in devices.spans[used].tolist():
        there[start : start + count] = True
    rows: c.Ints = np.flatnonzero(there & (devices.kind >= 0))
    return rows


def count_fitting(claims: Claims, ask: d.ClaimAsk, leaf: int, capacity: int) -> c.Ints:
    """Count [N] the devices of each node that suit a leaf now."""
    devices = claims.table.columns
    rows = np.flatnonzero(devices.kind >= 0)
    weights = np.zeros(devices.kind.size, np.int64)
    weights[rows] = find_reasons(devices, ask, leaf, rows) == Why.FITS
    return sum_by_node(claims, weights, capacity)


def measure_missing(claims: Claims, nodes: c.Nodes, ask: d.ClaimAsk, rows: c.Ints) -> c.Floats:
    """Measure [n] how much of the requests the devices of each node lack, one by one: a request that finds none counts 1."""
    missing = np.zeros(rows.size)
    for first, end in _list_requests(ask):
        each = []
        for leaf in range(first, end):
            have = count_fitting(claims, ask, leaf, nodes.valid.size)[rows]
            need = max(1, int(ask.leaves[leaf, d.LEAF_COUNT]))
            each.append(np.maximum(0, need - have) / need)
        least = np.min(each, axis=0)
        resource = int(ask.leaves[first, d.LEAF_RESOURCE])
        missing += np.where(nodes.by_class[resource, rows], least, 0) if resource >= 0 else least
    return missing


def _list_requests(ask: d.ClaimAsk) -> Iterator[tuple[int, int]]:
    yield from zip(ask.first[:-1].tolist(), ask.first[1:].tolist(), strict=True)
