"""Measures what was in use at each time, exactly, from each pod's node, start and duration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.replay.demand import Demand
from scheduler.replay.experiment import Floats, Ints, Series, Workload


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
    placed, start, end = _list_stays(workload, series)
    return _make_line(
        np.concatenate([start, end]), np.concatenate([amounts[placed], -amounts[placed]])
    )


def measure_nodes(workload: Workload, series: Series) -> Line:
    """Measure how many nodes had any pod."""
    placed, start, end = _list_stays(workload, series)
    at = np.concatenate([start, end])
    change = np.repeat([1, -1], placed.size)
    # Changes are sorted by node. All pods leave in the end (if never, at inf), so that each node begins with no pod.
    node = np.tile(series.node[placed], 2)
    order = np.lexsort((-change, at, node))
    is_on = np.cumsum(change[order]) > 0
    turns = np.diff(is_on.astype(np.int64), prepend=0)
    return _make_line(at[order][turns != 0], turns[turns != 0])


def measure_end(asked: Demand, workload: Workload, series: Series) -> Ints:
    """Measure [R, N] what is in use on each node after the last arrival."""
    placed, _, end = _list_stays(workload, series)
    placed = placed[end > workload.at[-1]]
    used = np.zeros(asked.capacity.shape, np.int64)
    for r, amounts in enumerate(asked.amounts):
        np.add.at(used[r], series.node[placed], amounts[workload.pod[placed]])
    return used


def _list_stays(workload: Workload, series: Series) -> tuple[Ints, Floats, Floats]:
    """List the pods that were placed, and when they came to their node and left it."""
    placed = np.flatnonzero(series.node >= 0)
    start = series.placed_at[placed]
    return placed, start, start + workload.lifetime[placed]


def _make_line(at: Floats, change: Ints) -> Line:
    order = np.argsort(at, kind="stable")
    return Line(at[order], np.cumsum(change[order]))
