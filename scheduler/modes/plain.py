"""The places of nodes without devices: when they are learnt again, and when their scarcity is measured again.

Places are learnt like the tables of devices, but from the first pod on, because seen pods are better than assumed pods.
Scarcity is measured again after so many placements that it may have changed.
"""

from __future__ import annotations

import numpy as np

from scheduler.modes import places, scarcity
from scheduler.modes.places import Counts, Learnt, Nodes
from scheduler.modes.scarcity import Scarcity
from scheduler.schema import columns as c
from scheduler.schema import empty
from scheduler.schema import places as schema
from scheduler.schema.places import Places
from scheduler.state.cluster import Cluster
from scheduler.state.demand import DemandShape

_SOFT = "PreferNoSchedule"
# Places are learnt again after these numbers of pods; later when the number has grown by a part, within a maximum.
_FIRST = (1, 8, 16, 32, 60)
_MORE, _MORE_MOST = 0.3, 5000
# Places are learnt again when the departures per arrival differ by more than this.
_DEPARTURES_STEP = 0.1
# Scarcity is measured again after so many placements and departures, or a part of the number of nodes.
_MOVED_LEAST, _MOVED_PART = 50, 1 / 3
# If a share of _NEW_FROM of the pods has new sizes, sizes begin to count as new; _NEW_SPAN above it, all count as new.
_NEW_FROM, _NEW_SPAN = 0.7, 0.3


class PlainPlaces:
    """Keeps the places of nodes without devices.

    Attributes:
        places: the current places; a change makes another object.
    """

    def __init__(self, cluster: Cluster, known: Counts | None) -> None:
        """``known`` is a demand that is used instead of the learnt demand; None: the demand is learnt."""
        self._cluster, self._known = cluster, known
        self._learnt: Learnt | None = None
        self._next = self._shaped = self._judged_at = -1
        self._departures = self._new = 0.0
        self._scarcity: Scarcity | None = None
        self._scratch = empty.make_scratch(1, 1, 1)
        self.places: Places = schema.make_empty()

    def refresh(self, *, anew: bool = False) -> bool:
        """Learn the places and measure their scarcity, if either is due or ``anew``; return whether the places changed."""
        cluster, before = self._cluster, self.places
        departures = cluster.demand.plain.departures
        seen, shaped = self._count_seen(), cluster.shaped
        has_left = abs(departures - self._departures) > _DEPARTURES_STEP
        if anew or seen >= self._next or shaped != self._shaped or has_left:
            self._departures = departures
            self._shaped = shaped
            self._next = _find_next(seen)
            self._learn_places(seen)
        elif cluster.moved.position - self._judged_at < self._compute_patience():
            return False
        self._weigh_places()
        return self.places is not before

    def _count_seen(self) -> int:
        # A given demand counts as seen often enough.
        return self._cluster.demand.plain.seen if self._known is None else places.ENOUGH

    def _compute_patience(self) -> int:
        nodes = 0 if self._learnt is None else self._learnt.rows.size
        return max(_MOVED_LEAST, int(nodes * _MOVED_PART))

    def _learn_places(self, seen: int) -> None:
        if self._known is None:
            counts = self._cluster.demand.plain.list_counts()
        else:
            counts = {shape: n for shape, n in self._known.items() if not shape.cards}
        nodes = _gather_nodes(self._cluster, counts)
        believed = seen >= places.ENOUGH
        told = {shape: _read_amounts(shape) for shape in counts}
        pods = places.gather_pods(self._cluster, nodes, told, counts)
        self._learnt = places.learn_places(nodes, pods, believed=believed)
        new = 0.0 if self._learnt is None else self._learnt.new
        self._new = min(1.0, max(0.0, (new - _NEW_FROM) / _NEW_SPAN))
        self._scarcity = None

    def _weigh_places(self) -> None:
        learnt, cluster = self._learnt, self._cluster
        self._judged_at = cluster.moved.position
        if learnt is None:
            if self.places.resources.size:
                self.places = schema.make_empty()
            return
        columns = cluster.nodes.columns
        found = scarcity.measure_scarcity(learnt, columns, self._scratch, self._departures)
        if found != self._scarcity:
            self._scarcity = found
            weights = scarcity.make_weights(found, self._departures, self._new)
            worth = learnt.places.worth * np.array(found.scarce)
            self.places = places.weigh_places(learnt.places, worth, weights)


def find_next_early(seen: int) -> int:
    """Find the number of pods after which to learn again, while few pods have been seen."""
    return next((first for first in _FIRST if first > seen), _FIRST[-1])


def _find_next(seen: int) -> int:
    if seen < _FIRST[-1]:
        return find_next_early(seen)
    return seen + max(1, min(_MORE_MOST, int(seen * _MORE)))


def _gather_nodes(cluster: Cluster, counts: Counts) -> Nodes:
    columns = cluster.nodes.columns
    rows = np.flatnonzero(_find_open_nodes(cluster) & ~columns.has_gpu)
    always = c.CPU, c.MEMORY, c.PODS
    resources = np.array([*always, *places.list_others(cluster, counts, always)], np.int64)
    there = columns.allocatable[np.ix_(resources, rows)].astype(np.float64)
    every = np.flatnonzero(columns.valid & ~columns.has_gpu)
    largest = columns.allocatable[np.ix_(resources, every)].max(axis=1, initial=0)
    return Nodes(rows, resources, there, largest.astype(np.float64))


def _find_open_nodes(cluster: Cluster) -> c.Flags:
    """Find the nodes [N] that take pods without tolerations; if fewer than half do, all nodes that are not cordoned.

    Most pods cannot use the room on other nodes, and a virtual node may report any amount of room.
    """
    nodes = cluster.nodes
    open_ones: c.Flags = nodes.columns.valid & ~nodes.unschedulable
    keeps_off = [
        any(effect != _SOFT for _, _, effect in taints) for taints in nodes.taint_sets.values
    ]
    taking: c.Flags = open_ones & ~np.array(keeps_off, np.bool_)[nodes.taint_set]
    return taking if 2 * taking.sum() >= open_ones.sum() else open_ones


def _read_amounts(shape: DemandShape) -> places.Amounts:
    return {c.CPU: shape.cpu, c.MEMORY: shape.memory, c.PODS: 1}
