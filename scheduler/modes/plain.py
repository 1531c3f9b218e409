"""The places of nodes without devices: when sizes are learnt again, and when scarcity is computed again.

They are learnt as device tables are, and from the first pod on: what is seen is better than what is assumed. How
scarce they are is judged after so many placements as could have changed it.
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
# Learnt anew after so many pods, then after a part more, as long as it is within a most.
_FIRST = (1, 8, 16, 32, 60)
_MORE, _MORE_MOST = 0.3, 5000
# Departures per arrival that differ by more count.
_DEPARTURES_STEP = 0.1
# Judged anew after so many placements and departures, or a part of the nodes.
_MOVED_LEAST, _MOVED_PART = 50, 1 / 3
# Of pods whose sizes differ so often nothing comes again; from the lower figure on in parts.
_NEW_FROM, _NEW_SPAN = 0.7, 0.3


class PlainPlaces:
    """Keeps them.

    Attributes:
        places: by now; another object when they change.
    """

    def __init__(self, cluster: Cluster, known: Counts | None) -> None:
        """With ``known`` the demand is given instead of learnt."""
        self._cluster, self._known = cluster, known
        self._learnt: Learnt | None = None
        self._next = self._shaped = self._judged_at = -1
        self._departures = self._new = 0.0
        self._scarcity: Scarcity | None = None
        self._scratch = empty.scratch(1, 1, 1)
        self.places: Places = schema.empty()

    def refresh(self, *, anew: bool = False) -> bool:
        """Learn and judge if it is due, or ``anew``; whether the places are others than before."""
        cluster, before = self._cluster, self.places
        departures = cluster.demand.plain.departures
        seen, shaped = self._count_seen(), cluster.shaped
        has_left = abs(departures - self._departures) > _DEPARTURES_STEP
        if anew or seen >= self._next or shaped != self._shaped or has_left:
            self._departures = departures
            self._shaped = shaped
            self._next = _next(seen)
            self._learn(seen)
        elif cluster.moved.position - self._judged_at < self._patience():
            return False
        self._judge()
        return self.places is not before

    def _count_seen(self) -> int:
        # Of a demand that is given enough is known.
        return self._cluster.demand.plain.seen if self._known is None else places.ENOUGH

    def _patience(self) -> int:
        nodes = 0 if self._learnt is None else self._learnt.rows.size
        return max(_MOVED_LEAST, int(nodes * _MOVED_PART))

    def _learn(self, seen: int) -> None:
        if self._known is None:
            counts = self._cluster.demand.plain.list_counts()
        else:
            counts = {shape: n for shape, n in self._known.items() if not shape.cards}
        nodes = _nodes(self._cluster, counts)
        believed = seen >= places.ENOUGH
        told = {shape: _read_amounts(shape) for shape in counts}
        pods = places.asked(self._cluster, nodes, told, counts)
        self._learnt = places.learnt(nodes, pods, believed=believed)
        new = 0.0 if self._learnt is None else self._learnt.new
        self._new = min(1.0, max(0.0, (new - _NEW_FROM) / _NEW_SPAN))
        self._scarcity = None

    def _judge(self) -> None:
        learnt, cluster = self._learnt, self._cluster
        self._judged_at = cluster.moved.position
        if learnt is None:
            if self.places.resources.size:
                self.places = schema.empty()
            return
        columns = cluster.nodes.columns
        found = scarcity.measure_scarcity(learnt, columns, self._scratch, self._departures)
        if found != self._scarcity:
            self._scarcity = found
            weights = scarcity.weights(found, self._departures, self._new)
            worth = learnt.places.worth * np.array(found.scarce)
            self.places = places.weighed(learnt.places, worth, weights)


def next_early(seen: int) -> int:
    """After how many pods to learn anew, before enough are seen."""
    return next((first for first in _FIRST if first > seen), _FIRST[-1])


def _next(seen: int) -> int:
    if seen < _FIRST[-1]:
        return next_early(seen)
    return seen + max(1, min(_MORE_MOST, int(seen * _MORE)))


def _nodes(cluster: Cluster, counts: Counts) -> Nodes:
    columns = cluster.nodes.columns
    rows = np.flatnonzero(_taking(cluster) & ~columns.has_gpu)
    always = c.CPU, c.MEMORY, c.PODS
    resources = np.array([*always, *places.others(cluster, counts, always)], np.int64)
    there = columns.allocatable[np.ix_(resources, rows)].astype(np.float64)
    every = np.flatnonzero(columns.valid & ~columns.has_gpu)
    largest = columns.allocatable[np.ix_(resources, every)].max(axis=1, initial=0)
    return Nodes(rows, resources, there, largest.astype(np.float64))


def _taking(cluster: Cluster) -> c.Flags:
    """[N] whether a node takes pods that say nothing of it; where most do not, every node that is not cordoned.

    Room on others is no room for most pods, and a virtual node may say that it has any amount of it.
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
