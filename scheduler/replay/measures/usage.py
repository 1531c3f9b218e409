"""Measures what was in use at each time, exactly, from each pod's node, start and duration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.replay.demand import Demand
from scheduler.replay.experiment import Floats, Ints, Series, Stays, Workload


@dataclass(frozen=True, slots=True)
class Line:
    """A figure that changes at E moments and stays the same between them; 0 before the first.

    Attributes:
        at: [E] the times of the changes, ascending.
        value: [E] the figure from each change on.
    """

    at: Floats
    value: Ints | Floats

    def list_means(self, edges: Floats) -> Floats:
        """List the means from each edge to the next; edges ascend."""
        value = np.concatenate([[0], self.value])
        inner = np.concatenate([edges[:1], np.clip(self.at, edges[0], edges[-1]), edges[-1:]])
        # The integral of the figure from the first edge on, which is linear between two moments.
        total = np.concatenate([[0.0], np.cumsum(value * np.diff(inner))])
        means: Floats = np.diff(np.interp(edges, inner, total)) / np.diff(edges)
        return means

    def find_mean(self, start: float, end: float) -> float:
        """Find the mean over a time; if the time is a moment, the figure right after it."""
        if end > start:
            return float(self.list_means(np.array([start, end]))[0])
        last = int(np.searchsorted(self.at, end, side="right"))
        return float(self.value[last - 1]) if last else 0.0


def measure_resource(workload: Workload, series: Series, amounts: Ints) -> Line:
    """Measure how much of a resource was in use; ``amounts`` [A] is what each arrival requests of it."""
    found = list_stays(workload, series)
    amounts = amounts[found.arrival]
    return make_line(np.concatenate([found.start, found.end]), np.concatenate([amounts, -amounts]))


def measure_nodes(workload: Workload, series: Series) -> Line:
    """Measure how many nodes had any pod."""
    found = list_stays(workload, series)
    at = np.concatenate([found.start, found.end])
    change = np.repeat([1, -1], found.arrival.size)
    # Changes are sorted by node. All pods leave in the end (if never, at inf), so that each node begins with no pod.
    node = np.tile(found.node, 2)
    order = np.lexsort((-change, at, node))
    is_on = np.cumsum(change[order]) > 0
    turns = np.diff(is_on.astype(np.int64), prepend=0)
    return make_line(at[order][turns != 0], turns[turns != 0])


def measure_end(asked: Demand, workload: Workload, series: Series) -> Ints:
    """Measure [R, N] what is in use on each node after the last arrival."""
    found = list_stays(workload, series)
    is_there = found.end > workload.at[-1]
    used = np.zeros(asked.capacity.shape, np.int64)
    for r, amounts in enumerate(asked.amounts):
        there = workload.pod[found.arrival[is_there]]
        np.add.at(used[r], found.node[is_there], amounts[there])
    return used


def list_stays(workload: Workload, series: Series) -> Stays:
    """List the stays of pods on nodes."""
    if series.stays is not None:
        return series.stays
    placed = np.flatnonzero(series.node >= 0)
    start = series.placed_at[placed]
    nothing = np.zeros(placed.size, np.bool_)
    return Stays(placed, series.node[placed], start, start + workload.lifetime[placed], nothing)


def find_finish(n: int, stays: Stays) -> Floats:
    """Find [A] when each arrival ended; inf for one that had not."""
    finish = np.full(n, np.inf)
    is_whole = ~stays.is_lost
    finish[stays.arrival[is_whole]] = stays.end[is_whole]
    return finish


def find_waits(workload: Workload, stays: Stays) -> Floats:
    """Find [A] for how long each arrival had no place until it ended, or until the last arrival."""
    last = float(workload.at[-1])
    until = np.minimum(find_finish(len(workload.at), stays), last)
    lasted = np.minimum(stays.end, last) - np.minimum(stays.start, last)
    ran = np.bincount(stays.arrival, weights=lasted, minlength=len(workload.at))
    waits: Floats = np.maximum(0.0, until - workload.at - ran)
    return waits


def make_line(at: Floats, change: Ints) -> Line:
    """Make the line of a figure from its changes, in any order."""
    order = np.argsort(at, kind="stable")
    return Line(at[order], np.cumsum(change[order]))
