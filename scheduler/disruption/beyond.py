"""Who would have to go from other nodes, so that a claim gets devices that several nodes can use.

Such devices are free when all pods have gone that have a claim together, on whichever nodes they are. On each node that can
use the devices, those of these pods that are elsewhere are one unit: if one of them stays, the others go in vain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from scheduler.api.claims.answers import ClaimKey
from scheduler.api.claims.devices import PoolKey
from scheduler.api.claims.requests import ClaimShape
from scheduler.disruption import protectors
from scheduler.disruption.units import find_units
from scheduler.plugins.claims import masks
from scheduler.schema import columns as c
from scheduler.schema import preempting as p
from scheduler.state.claims.store import Claims
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity
from scheduler.state.pods import PodRecord


class Band(NamedTuple):
    """Pods that have the same claims.

    Attributes:
        pods: their rows in the pod table, the most important first.
        reach: [N] the nodes that can use any of the claims' devices.
    """

    pods: c.Ints
    reach: c.Flags


def list_bands(cluster: Cluster, pending: Sequence[ClaimShape]) -> list[Band]:
    """List the pods that have claims on devices that several nodes can use, and that could serve some of these requests.

    Only those are listed with which all of these devices become free.
    """
    claims = cluster.claims
    if not (pending and claims.inventory.has_shared):
        return []
    users = claims.find_users_of_shared()
    finder = _Reaches(cluster, pending)
    reach_of = {key: finder.find_reach(key) for key in users}
    claims_of: dict[str, list[ClaimKey]] = {}
    for key, uids in users.items():
        if reach_of[key].any():
            for uid in uids:
                claims_of.setdefault(uid, []).append(key)
    bands: dict[tuple[ClaimKey, ...], list[int]] = {}
    for uid, keys in claims_of.items():
        bands.setdefault(tuple(sorted(keys)), []).append(cluster.pods[uid].row)
    return [
        Band(
            _sort_pods(cluster, np.array(rows, np.int64)),
            np.any([reach_of[key] for key in keys], axis=0),
        )
        for keys, rows in sorted(bands.items())
    ]


def add_units(
    cluster: Cluster, asker: PodRecord, rows: c.Ints, bands: Sequence[Band]
) -> tuple[p.Units, int]:
    """Find whom protectors let go from node rows [n], as ``units.find_units``, and with them pods of bands elsewhere."""
    node = cluster.ledger.pods.columns.node
    units, work = find_units(cluster, asker, rows)
    # Who leaves already leaves the devices to another pod.
    going = [
        cluster.pods[uid].row
        for uid, room in cluster.nominations.going.items()
        if room != asker.uid and uid in cluster.pods
    ]
    may_go = [
        band
        for band in bands
        if protectors.find_who_may_go(cluster, asker, band.pods).all()
        and not np.isin(band.pods, going).any()
    ]
    places = np.repeat(np.arange(rows.size), np.diff(units.first))
    parts = [units.pods[at : at + 1] for at in range(places.size)]
    of_parts = places.tolist()
    for band in may_go:
        for place in np.flatnonzero(band.reach[rows]).tolist():
            elsewhere = band.pods[node[band.pods] != rows[place]]
            if elsewhere.size:
                parts.append(elsewhere)
                of_parts.append(place)
    if len(parts) == places.size:
        return units, work
    table, first = cluster.ledger.pods.columns, np.array([one[0] for one in parts], np.int64)
    by_place = np.array(of_parts, np.int64)
    order = np.lexsort((table.start[first], -table.priority[first], by_place))
    sizes = np.array([one.size for one in parts], np.int64)[order]
    found = p.Units(
        rows=rows,
        first=np.searchsorted(by_place[order], np.arange(rows.size + 1)).astype(np.int64),
        begins=np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))),
        pods=np.concatenate([parts[at] for at in order.tolist()]),
        cost=np.zeros(order.size, np.int64),
    )
    return found, work + protectors.add_costs(cluster, found) + order.size // max(rows.size, 1)


def list_elsewhere(cluster: Cluster, entity: Entity, rows: c.Flags) -> list[PodRecord]:
    """List the pods that may have to go for a group, and are on none of some rows [N] of which any can use the devices."""
    if not (rows.size and cluster.claims.inventory.has_shared):
        return []
    shapes = {
        id(claim.shape): claim.shape
        for pod in entity.members
        for one in cluster.claims.list_entries(pod)
        if (claim := cluster.claims.claims.get((pod.namespace, one.name or ""))) is not None
        and cluster.claims.find_given(claim.key) is None
    }
    node = cluster.ledger.pods.columns.node
    found = {
        row
        for band in list_bands(cluster, list(shapes.values()))
        if (band.reach & rows).any()
        for row in band.pods[~rows[node[band.pods]]].tolist()
    }
    names = {cluster.nodes.find_name(int(node[row])) for row in found}
    there = [pod for name in sorted(names) for pod in cluster.pods_on.get(name, {}).values()]
    return [pod for pod in there if pod.row in found]


def _sort_pods(cluster: Cluster, rows: c.Ints) -> c.Ints:
    table = cluster.ledger.pods.columns
    return rows[np.lexsort((rows, table.start[rows], -table.priority[rows]))]


class _Reaches:
    """Finds the nodes on which the devices of claims could serve some requests."""

    def __init__(self, cluster: Cluster, pending: Sequence[ClaimShape]) -> None:
        self._cluster = cluster
        columns = cluster.claims.table.columns
        self._may_have = np.zeros(len(cluster.claims.table.kinds.table), np.bool_)
        for shape in pending:
            for leaf in masks.get_masks(cluster.claims, shape).leaves:
                self._may_have |= leaf.kinds
        rows = np.array(sorted(cluster.nodes.rows.values()), np.int64)
        begins, counts = columns.spans_of[:, rows]
        self._rows = np.repeat(rows, counts)
        at = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        spans = columns.spans[np.repeat(begins, counts) + at]
        self._first, self._end = spans[:, 0], spans.sum(axis=1)

    def find_reach(self, key: ClaimKey) -> c.Flags:
        """Find [N] the nodes that can use a device of a claim, or one that draws on the same counters."""
        claims: Claims = self._cluster.claims
        columns, found = claims.table.columns, np.zeros(self._cluster.nodes.capacity, np.bool_)
        for one in claims.find_given(key) or ():
            pool = PoolKey(one.device.driver, one.device.pool)
            for device in claims.inventory.find_rows(pool, one.device.name):
                if columns.draws[0, device] >= 0:
                    found[sorted(claims.inventory.list_concerned([pool]))] = True
                elif self._may_have[columns.kind[device]]:
                    there = (self._first <= device) & (device < self._end)
                    reach = int(columns.reach[device])
                    on = self._rows[there]
                    found[on if reach < 0 else on[columns.reaches[reach, on]]] = True
        return found
