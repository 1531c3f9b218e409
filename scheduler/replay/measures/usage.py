"""What was in use at each time, computed exactly from each pod's node, start and duration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from scheduler.replay.demand import Demand
from scheduler.replay.experiment import Floats, Ints, Series, Workload


@dataclass(frozen=True, slots=True)
class Line:
    """A figure that changes at moments and stays between them; 0 before the first. E moments.

    Attributes:
        at: [E] when it changes, ascending.
        value: [E] what it is from then on.
    """

    at: Floats
    value: Ints | Floats

    def means(self, edges: Floats) -> Floats:
        """The means from each edge to the next; edges ascend."""
        value = np.concatenate([[0], self.value])
        inner = np.concatenate([edges[:1], np.clip(self.at, edges[0], edges[-1]), edges[-1:]])
        # What it adds up to from the first edge on: straight between two moments.
        total = np.concatenate([[0.0], np.cumsum(value * np.diff(inner))])
        means: Floats = np.diff(np.interp(edges, inner, total)) / np.diff(edges)
        return means

    def mean(self, start: float, end: float) -> float:
        """The mean over a time; of a moment, what it is right after it."""
        if end > start:
            return float(self.means(np.array([start, end]))[0])
        last = int(np.searchsorted(self.at, end, side="right"))
        return float(self.value[last - 1]) if last else 0.0


def of_resource(workload: Workload, series: Series, amounts: Ints) -> Line:
    """How much of a resource was in use; ``amounts`` [A] is what each arrival requests of it."""
    placed, start, end = _stays(workload, series)
    return _line(np.concatenate([start, end]), np.concatenate([amounts[placed], -amounts[placed]]))


def of_nodes(workload: Workload, series: Series) -> Line:
    """How many nodes had any pod."""
    placed, start, end = _stays(workload, series)
    at = np.concatenate([start, end])
    change = np.repeat([1, -1], placed.size)
    # Node after node. All pods leave at last, if never, so that each begins with none.
    node = np.tile(series.node[placed], 2)
    order = np.lexsort((-change, at, node))
    is_on = np.cumsum(change[order]) > 0
    turns = np.diff(is_on.astype(np.int64), prepend=0)
    return _line(at[order][turns != 0], turns[turns != 0])


def at_end(asked: Demand, workload: Workload, series: Series) -> Ints:
    """[R, N] in use on each node after the last arrival."""
    placed, _, end = _stays(workload, series)
    placed = placed[end > workload.at[-1]]
    used = np.zeros(asked.capacity.shape, np.int64)
    for r, amounts in enumerate(asked.amounts):
        np.add.at(used[r], series.node[placed], amounts[workload.pod[placed]])
    return used


def _stays(workload: Workload, series: Series) -> tuple[Ints, Floats, Floats]:
    """The pods that were placed, and when they came to their node and left it."""
    placed = np.flatnonzero(series.node >= 0)
    start = series.placed_at[placed]
    return placed, start, start + workload.lifetime[placed]


def _line(at: Floats, change: Ints) -> Line:
    order = np.argsort(at, kind="stable")
    return Line(at[order], np.cumsum(change[order]))
