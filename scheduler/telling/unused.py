"""Devices of ResourceSlices that are free, and that no usual pod with claims can get, and why.

They are counted in units: devices, devices that are shared, and sets of counters, from which partitions are cut. Pods with
claims are usual, each kind as often as it is there; a kind is tried as if its claims had nothing yet. Where one more pod of
a kind fits on a node and could have a device of a unit, the unit is of use: what is said to be stranded is a lower bound.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.api.claims.answers import DeviceKey
from scheduler.api.claims.devices import STRING, PoolKey
from scheduler.plugins.claims import device_reasons
from scheduler.plugins.claims.device_reasons import Why
from scheduler.schema import columns as c
from scheduler.schema import devices as d
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord
from scheduler.telling.advice.asking import Asking

# The most kinds of pods that are tried, the most frequent first.
_KINDS = 50
OTHERS = "other devices or counters are in use"
NO_CLAIM = "no usual claim requests such a device"


class Unit(NamedTuple):
    """A device, or a set of counters.

    Attributes:
        nodes: the nodes that can use it, by name.
        driver, pool, name: of the device, or of the first device that draws on the set.
        words: all texts that its devices have as attributes, by full name.
        used: how much of it is in use, 0..1.
        is_cut: it is a set of counters, from which its devices are cut.
        is_tainted: taints keep claims off all that is free of it.
        why: why no usual pod can get what is free; empty if one can, or if nothing is free.
    """

    nodes: tuple[str, ...]
    driver: str
    pool: str
    name: str
    words: tuple[tuple[str, str], ...]
    used: float
    is_cut: bool
    is_tainted: bool
    why: str


class UnreservedClaim(NamedTuple):
    """A claim that has devices and that nobody has reserved: its name, and of each device the unit and the part that it has."""

    claim: str
    parts: tuple[tuple[int, float], ...]


class UsualPod(NamedTuple):
    """A kind of pods with claims: a pod of it, how many there are, and on how many nodes one more would fit."""

    like: str
    pods: int
    fitting: int


class UnusedDevices(NamedTuple):
    """All units, claims that nobody has reserved, and the usual pods; without usual pods nothing is stranded."""

    units: tuple[Unit, ...]
    unreserved: tuple[UnreservedClaim, ...]
    usual: tuple[UsualPod, ...]


def find_unused(asking: Asking) -> UnusedDevices:
    """Find which units of devices are of use to usual pods."""
    cluster = asking.cluster
    cluster.claims.flush()
    grouped = _group_devices(cluster)
    usable = np.zeros(cluster.claims.table.columns.kind.size, np.bool_)
    whys: dict[int, str] = {}
    usual = tuple(_try_kind(asking, alike, usable, whys) for alike in _list_kinds(cluster))
    places = _find_nodes(cluster)
    units = tuple(_describe(cluster, rows, places, usable, whys if usual else None) for rows in grouped)  # fmt: skip
    of_row = {row: i for i, rows in enumerate(grouped) for row in rows}
    return UnusedDevices(units, tuple(_list_unreserved(cluster, of_row)), usual)


def _group_devices(cluster: Cluster) -> list[list[int]]:
    """Group the devices of all nodes by the set of counters on which they draw; every other device is by itself."""
    columns = cluster.claims.table.columns
    groups: dict[tuple[str, int], list[int]] = {}
    for row in device_reasons.list_all_devices(columns).tolist():
        counters = int(columns.draws[0, row])
        key = ("set", counters) if counters >= 0 else ("device", row)
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def _find_nodes(cluster: Cluster) -> Mapping[int, list[str]]:
    """Find the nodes that can use each device."""
    columns = cluster.claims.table.columns
    found: defaultdict[int, list[str]] = defaultdict(list)
    for name, row in sorted(cluster.nodes.rows.items()):
        if row < columns.unsure.size:
            for device in device_reasons.list_devices(columns, row).tolist():
                found[device].append(name)
    return found


def _list_kinds(cluster: Cluster) -> list[list[PodRecord]]:
    """List the pods with claims of each kind: with equal requests, and claims that request the same."""
    kinds: defaultdict[object, list[PodRecord]] = defaultdict(list)
    for pod in cluster.pods.values():
        if shapes := cluster.claims.list_shapes(pod):
            kinds[id(pod.template), *map(id, shapes)].append(pod)
    ordered = sorted(kinds.values(), key=lambda pods: (-len(pods), pods[0].key))
    return ordered[:_KINDS]


def _try_kind(
    asking: Asking, alike: Sequence[PodRecord], usable: c.Flags, whys: dict[int, str]
) -> UsualPod:
    """Try one more pod of a kind on all nodes, and note which devices it could have, or why not."""
    cluster, pod = asking.cluster, alike[0]
    columns = cluster.claims.table.columns
    unallocated = [one._replace(given=None) for one in cluster.claims.list_claims(pod)]
    with cluster.claims.pose_as(unallocated):
        shape = asking.make_shape(pod)
        if shape is None or not shape.ask.claims.leaves.shape[0]:
            return UsualPod(pod.key, len(alike), 0)
        judged = asking.judge_rows(shape)
        refused = {int(row): one.text for one in asking.find_refusals(judged) for row in one.rows}
    ask = shape.ask.claims
    for row in judged.rows.tolist():
        if row >= columns.unsure.size:
            continue
        rows = device_reasons.list_devices(columns, row)
        for leaf in range(ask.leaves.shape[0]):
            reasons = device_reasons.find_reasons(columns, ask, leaf, rows)
            fits = rows[reasons == Why.FITS]
            if row not in refused:
                usable[fits] = True
                continue
            whys.update(dict.fromkeys(fits.tolist(), refused[row]))
            lacking = rows[(reasons == Why.COUNTERS) | (reasons == Why.CONSUMED)]
            for one in lacking.tolist():
                whys.setdefault(one, OTHERS)
    return UsualPod(pod.key, len(alike), len(judged.rows) - len(refused))


def _describe(
    cluster: Cluster,
    rows: Sequence[int],
    places: Mapping[int, Sequence[str]],
    usable: c.Flags,
    whys: Mapping[int, str] | None,
) -> Unit:
    table = cluster.claims.table
    kinds = table.kinds.table.values
    free = [row for row in rows if not kinds[int(table.columns.kind[row])].taints]
    used = _measure_use(table.columns, rows)
    words = {
        (name, str(value[1]))
        for row in rows
        for name, value in table.find_attributes(row).items()
        if value[0] == STRING
    }
    why = ""
    if whys is not None and free and used < 1 and not any(usable[row] for row in free):
        why = next((whys[row] for row in free if row in whys), NO_CLAIM)
    key = table.find_key(rows[0])
    nodes = tuple(dict.fromkeys(name for row in rows for name in places[row]))
    is_cut = bool(table.columns.draws[0, rows[0]] >= 0)
    return Unit(nodes, *key, tuple(sorted(words)), used, is_cut, is_tainted=not free, why=why)


def _measure_use(columns: d.Devices, rows: Sequence[int]) -> float:
    """Measure how much of a unit is in use: the largest part of any of its counters, or of its capacities."""
    row, counters = rows[0], int(columns.draws[0, rows[0]])
    if counters >= 0:
        first, n = columns.sets[:2, counters].tolist()
        return _find_largest(columns.counters[:, first : first + n])
    n_cells = int(columns.n_cells[columns.kind[row]])
    if columns.shareable[columns.kind[row]] and columns.cell[row] >= 0 and not columns.owners[row]:
        return _find_largest(columns.cells[:, columns.cell[row] :][:, :n_cells])
    return 1.0 if columns.owners[row] or columns.sharers[row] else 0.0


def _find_largest(figures: c.Ints) -> float:
    total, used = figures[d.TOTAL], figures[d.USED]
    return float(min(1.0, (used / np.maximum(total, 1)).max(initial=0.0)))


def _list_unreserved(cluster: Cluster, of_row: Mapping[int, int]) -> list[UnreservedClaim]:
    claims, found = cluster.claims, list[UnreservedClaim]()
    for _, claim in sorted(claims.claims.items()):
        if claim.given is None or claim.reserved:
            continue
        parts = []
        for one in claim.given:
            row = _find_row(cluster, one.device)
            if row in of_row and not one.is_admin:
                parts.append((of_row[row], _measure_part(cluster, row, dict(one.consumed))))
        found.append(UnreservedClaim("/".join(claim.path_key), tuple(parts)))
    return found


def _find_row(cluster: Cluster, key: DeviceKey) -> int:
    rows = cluster.claims.inventory.find_rows(PoolKey(key.driver, key.pool), key.name)
    return rows[-1] if rows else -1


def _measure_part(cluster: Cluster, row: int, consumed: Mapping[str, int]) -> float:
    """Measure which part of its unit a claim has with a device."""
    table = cluster.claims.table
    columns, counters = table.columns, int(table.columns.draws[0, row])
    if counters >= 0:
        first, n = columns.patterns[:2, columns.draws[1, row]].tolist()
        place, amount = columns.pattern[first : first + n].T
        totals = columns.counters[d.TOTAL, columns.sets[d.SET_FIRST, counters] + place]
        return _find_largest(np.array([totals, amount]))
    capacities = table.kinds.table.values[int(columns.kind[row])].capacities
    if columns.cell[row] >= 0 and consumed:
        shares = [(one.value, consumed.get(name, 0)) for name, one in capacities]
        return _find_largest(np.array(shares, np.int64).T)
    return 1.0
