"""Measures what is free and stranded, now and then while a trace is played.

"Stranded" means the same as in ``audit``, for extended resources, too: what the typical pod, in expectation,
cannot use although it is free. The typical pods are the most frequent kinds of the trace that together make
95 % of its pods, at most 64 that request GPUs and 64 that do not. Pod k fits a node if all that it requests is free
there; the limit of an app on one node does not count. Only pods count that fit the node when it is empty.

- CPU, memory, extended: the stranded share of the free amount is, over the typical pods that request some
  of it, the chance that the next requested unit is kept off by something else. This is Σ over the pods k that do not
  fit though the free amount itself would do, over Σ over all, each weighted by its number times what it requests.
  Pods that find no cards on the node do not count.
- GPU: Σ over the typical pods that request GPUs, weighted by number, of what is free on cards that k cannot use;
  if k does not fit the node, that is all free cards. Everything is stranded if no typical pod could ever run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.devices import card_order
from scheduler.engine.engine import Engine
from scheduler.engine.questions.measures import ChangedNodes, NodeColumns
from scheduler.replay import demand
from scheduler.replay.experiment import WHOLE, Samples, Trace, TracePod
from scheduler.schema.columns import Flags, Floats
from scheduler.state.demand import DemandShape

_COVERED, _MOST = 0.95, 64
# How many looks are taken in a run; a look costs as much as one or two dozen decisions.
LOOKS = 100
_MIB = 2**20


class Kinds(NamedTuple):
    """The typical pods, K of them, those that request GPUs first.

    Attributes:
        pods: one pod of each kind.
        counts: [K] how many pods of each kind there are.
        shapes: the shapes of the pods that request GPUs, as the state knows them.
    """

    pods: tuple[TracePod, ...]
    counts: Floats
    shapes: tuple[DemandShape, ...]


def find_typical(trace: Trace, shape_of: Callable[[TracePod], DemandShape]) -> Kinds:
    """Find the typical pods of a trace."""
    counts = Counter(pod.kind for pod in trace.pods)
    found: list[tuple[TracePod, int]] = []
    for asks_gpus in (True, False):
        ordered = [one for one in counts.most_common() if bool(one[0].gpus) is asks_gpus]
        total, covered = sum(n for _, n in ordered), 0
        for pod, n in ordered[:_MOST]:
            if covered >= _COVERED * total:
                break
            covered += n
            found.append((pod, n))
    pods = tuple(pod for pod, _ in found)
    shapes = tuple(shape_of(pod) for pod in pods if pod.gpus)
    return Kinds(pods, np.array([n for _, n in found], np.float64), shapes)


class StrandedGauge:
    """Keeps the figures of every node; a reading looks only at nodes that changed."""

    def __init__(self, engine: Engine, kinds: Kinds, names: Sequence[str]) -> None:
        """``names`` are the resources of a ``demand.Demand``. All nodes must exist already."""
        self._kinds = kinds
        plain = [name for name in names if name != demand.GPU]
        self._plain = np.array([names.index(name) for name in plain])[:, None]
        self._gpu = names.index(demand.GPU) if demand.GPU in names else -1
        self._units = np.array([_MIB if name == demand.MEMORY else 1 for name in names])
        asked = [[_read_amount(pod, name) for pod in kinds.pods] for name in plain]
        self._asked = np.array(asked, np.int64)[:, :, None]  # [R, K, 1], as the state counts
        # Many kinds have the same request for cards, and the cards are many, so each request is evaluated once.
        asks = [shape._replace(cpu=0, memory=0, cards=1) for shape in kinds.shapes]
        self._asks = list(dict.fromkeys(asks))
        self._ask_of = np.array([self._asks.index(ask) for ask in asks], np.int64)
        self._n_cards = np.array([[shape.cards] for shape in kinds.shapes], np.int64)
        self._changed = engine.ask(ChangedNodes(tuple(plain)))
        first = next(self._changed)
        self._by_row: Floats = np.zeros((len(names), first.n_rows))
        self._look(first)

    def read(self) -> Floats:
        """Read [R] what is stranded on all nodes, in the units of a ``demand.Demand``."""
        changed = next(self._changed)
        if changed.rows.size:
            self._look(changed)
        stranded: Floats = self._by_row.sum(axis=1) / self._units
        return stranded

    def _look(self, nodes: NodeColumns) -> None:
        """Evaluate n nodes again."""
        rows, there = nodes.rows, nodes.offered
        free = np.maximum(there - nodes.requested, 0)
        lacks = free[:, None] < self._asked  # [R, K, n]
        hosts: Flags = np.logical_and.reduce(there[:, None] >= self._asked)  # [K, n]
        fits = ~lacks.any(axis=0)
        if self._gpu >= 0:
            hosts &= self._look_at_cards(nodes, hosts, fits)
        weight = self._kinds.counts[:, None] * self._asked * hosts
        blocked, total = (weight * (~fits & ~lacks)).sum(axis=1), weight.sum(axis=1)
        share = np.divide(blocked, total, out=np.zeros(total.shape), where=total > 0)
        self._by_row[self._plain, rows] = share * free

    def _look_at_cards(self, nodes: NodeColumns, hosts: Flags, fits: Flags) -> Flags:
        """Evaluate the cards of the nodes, and return [K, n] which pods count for the other free resources there.

        For pods that request cards, ``fits`` is narrowed to the pods that find cards.
        """
        rows, cards, n = nodes.rows, nodes.cards, nodes.rows.size
        g = self._n_cards.shape[0]  # pods that request GPUs
        suiting, finding = np.zeros((2, len(self._asks), n))
        nows = []
        for i, shape in enumerate(self._asks):
            suits, now = cards.find_taking(shape, card_order.accept_models(shape, nodes.models))
            suiting[i] = np.bincount(cards.owner, suits * cards.n_all, n)
            finding[i] = np.bincount(cards.owner, now * cards.n_left, n)
            nows.append(now)
        can = hosts[:g] & (suiting[self._ask_of] >= self._n_cards)
        has_say = np.ones(hosts.shape, np.bool_)
        has_say[:g] = can & (finding[self._ask_of] >= self._n_cards)
        fits[:g] &= has_say[:g]
        counts = self._kinds.counts[:g]
        weight = (counts @ can)[cards.owner]
        taken = np.zeros(cards.owner.size)
        for i, now in enumerate(nows):
            asking = self._ask_of == i
            taken += (counts[asking] @ fits[:g][asking])[cards.owner] * now
        useful = np.divide(taken, weight, out=np.zeros(weight.size), where=weight > 0)
        free = (cards.capacity[0] - cards.used[0]) * cards.usable
        self._by_row[self._gpu, rows] = np.bincount(cards.owner, WHOLE * free * (1.0 - useful), n)
        return has_say


class Looks:
    """Decides when to read the gauge in a run, and keeps its readings.

    Attributes:
        next_at: the time of the next look, in seconds; inf after the last one.
    """

    def __init__(self, gauge: StrandedGauge, seconds: Sequence[float]) -> None:
        """``seconds`` are the times of all arrivals, ascending."""
        n = LOOKS if seconds[-1] > seconds[0] else 1
        self._gauge = gauge
        self._at = [*np.linspace(seconds[0], seconds[-1], n + 1)[1:].tolist(), math.inf]
        self._after: list[int] = []
        self._found: list[Floats] = []
        self.next_at: float = self._at[0]

    def look(self, after: int) -> None:
        """Look after the arrival with the index ``after``."""
        self._after.append(after)
        self._found.append(self._gauge.read())
        self.next_at = self._at[len(self._after)]

    def list_samples(self, unit_seconds: float) -> Samples:
        """Return all readings, with the times in units of so many seconds."""
        at = np.array(self._at[: len(self._after)]) / unit_seconds
        return Samples(at, np.array(self._after, np.int64), np.array(self._found))


def _read_amount(pod: TracePod, name: str) -> int:
    """Read a requested amount as the state counts it: milli-CPU, bytes, and whole numbers of extended resources."""
    if name == demand.CPU:
        return pod.cpu_milli
    if name == demand.MEMORY:
        return pod.memory_mib * _MIB
    return dict(pod.extended).get(name, 0)
