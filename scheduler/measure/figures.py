"""What is used, free and stranded on every node, judged by the typical pods.

Stranded is what the typical pod, in expectation, cannot take although it is free. Only typical pods count
that could run on the node if it were empty: that an empty node of T4s is of no use to a pod that wants an
A100 strands nothing. A pod fits when its CPU, its memory, one more pod and its cards are all free there.

- GPU (compute and memory, per card): Σ over typical pods k that ask GPUs of p_k · (free on cards k cannot
  take), p_k the share of such pods: all that is free where k does not fit the node, else what is free on
  cards too small for k. This is the fragment measure of Weng et al., "Beware of Fragmentation" (USENIX ATC
  2023), which counts no memory of the node and not two figures per card. A node with free GPU on which
  no typical pod could ever run strands all of it.
- CPU: Σ over all typical pods k that ask CPU of q_k · (free CPU, if k does not fit the node although its
  CPU is free there), q_k ∝ pods · CPU asked: the chance that the next core asked is kept off by something
  else. So 40 free cores without memory are 40 stranded cores; a free core that is too little for any pod is
  not, it is the CPU itself that is gone. Memory likewise. Pods that find no cards on the node have no say:
  cores beside GPUs that are in use are not wasted because of them. Nor have assumed pods without GPU on
  nodes with GPUs: nobody has seen one that would go there.
- dead is the part of it that no typical pod at all can take.
- spare is free CPU and memory that is no loss: no typical pod has a say, or, in expectation, it is too
  little of itself for the typical pod.

What is free and neither stranded nor spare is usable: in expectation, the typical pod can take it.

It is the least one can say: where one typical pod still fits, nothing counts as stranded for it, though a
second may not fit. Nodes that are cordoned or unhealthy strand nothing, what is free there is closed, and
so is what is free on cards that are out of order, in MIG mode, or held by pods that do not say which.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from scheduler.devices import card_order
from scheduler.devices.table import place_of
from scheduler.measure import cards as all_cards
from scheduler.measure.cards import Cards
from scheduler.measure.typical import Typical
from scheduler.plugins import table as rules
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.demand import DemandShape

# Dimensions and their units: cores, GiB, GPUs, GiB.
DIMENSIONS = ("cpu", "memory", "gpuCompute", "gpuMemory")
CPU, MEMORY, GPU, GPU_MEMORY = range(4)
FIGURES = ("capacity", "used", "free", "closed", "stranded", "dead", "spare")
CAPACITY, USED, FREE, CLOSED, STRANDED, DEAD, SPARE = range(7)
# What a pod can be short of.
N_CAUSES = 5
LACKS_CPU, LACKS_MEMORY, LACKS_CARDS, LACKS_MORE_CARDS, LACKS_PODS = range(N_CAUSES)
# Typical pods are told apart for the reason: those that ask GPUs, and the others.
ASKS_GPU, ASKS_NONE = range(2)
# Of CPU and memory, in base units.
UNITS = np.array([[1000.0], [2.0**30]])
_ILL = "node.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class Figures:
    """Of N nodes in the order of their names.

    Attributes:
        names: of the nodes.
        amounts: [7, 4, N] in natural units, by ``FIGURES`` and ``DIMENSIONS``. Used may be above capacity;
            capacity is used + free + closed otherwise.
        closed: [N] whether the node takes no pods for now.
        hosted: [2, N] typical pods that could run there if it were empty, by ``ASKS_GPU``, ``ASKS_NONE``.
        refused: [2, N] those of them that do not fit now.
        short: [2, N_CAUSES, N] those of them that are short of each. A pod lacks cards where no card has enough free for
            it, and more cards where some have.
        fewest: [N] the fewest GPUs of a typical pod that lacks more cards; 0 where none does.
        barred: [K, N] which of the K typical pods would have room there if it were empty, but may not go there: its taints or
            labels keep them off.
    """

    names: tuple[str, ...]
    amounts: c.Floats
    closed: c.Flags
    hosted: c.Floats
    refused: c.Floats
    short: c.Floats
    fewest: c.Ints
    barred: c.Flags


def of_cluster(cluster: Cluster, typical: Typical) -> Figures:
    """The figures of all nodes that are not malformed. O(typical pods · cards)."""
    steps = in_steps(cluster, typical)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Figures = end.value
            return found


def node_names(cluster: Cluster) -> list[str]:
    """The names of the nodes that are not malformed, sorted."""
    table = cluster.nodes
    return sorted(name for name, row in table.rows.items() if table.columns.valid[row])


def in_steps(cluster: Cluster, typical: Typical) -> Generator[None, None, Figures]:
    """As ``of_cluster``, a typical pod at a time; what changes between two steps is counted as it was before.

    Nodes that come or go meanwhile do no harm: a node that is gone, or whose row another has, is judged by the words
    of whoever has the row for the typical pods that are left.
    """
    table, names = cluster.nodes, node_names(cluster)
    rows = np.array([table.row_of(name) for name in names], np.int64)
    closed = np.array([_is_closed(cluster, row) for row in rows.tolist()], np.bool_)
    yield
    cards = all_cards.of_rows(cluster, rows)
    yield
    judged = _Judged(cluster, rows, cards, plain_assumed=typical.plain_assumed)
    amounts = np.zeros((len(FIGURES), len(DIMENSIONS), rows.size))
    amounts[CAPACITY, :GPU] = table.columns.allocatable[[c.CPU, c.MEMORY]][:, rows] / UNITS
    amounts[USED, :GPU] = table.columns.requested[[c.CPU, c.MEMORY]][:, rows] / UNITS
    for shape, count in typical.pods:
        yield
        judged.ask(shape, count)
    plain_free, card_free = _free(judged.plain_free), cards.capacity - cards.used
    amounts[FREE, :GPU] = plain_free / UNITS
    amounts[STRANDED, :GPU], amounts[DEAD, :GPU], amounts[SPARE, :GPU] = judged.stranded_plain()
    stranded, dead = judged.stranded_share()
    per_card = {
        CAPACITY: cards.capacity,
        USED: cards.used,
        FREE: card_free * cards.usable,
        CLOSED: card_free * ~cards.usable,
        STRANDED: card_free * cards.usable * stranded,
        DEAD: card_free * cards.usable * dead,
    }
    for figure, values in per_card.items():
        for i, dimension in enumerate((GPU, GPU_MEMORY)):
            amounts[figure, dimension] = np.bincount(cards.owner, values[i], rows.size)
    amounts[CLOSED, :, closed] += amounts[FREE, :, closed]
    amounts[FREE:CLOSED, :, closed] = amounts[STRANDED:, :, closed] = 0.0
    return Figures(
        tuple(names),
        amounts,
        closed,
        judged.hosted,
        judged.refused,
        judged.short,
        judged.fewest,
        np.array(judged.barred, np.bool_).reshape(len(judged.barred), rows.size),
    )


def _is_closed(cluster: Cluster, row: int) -> bool:
    facts = cluster.nodes.facts[row]
    return facts is not None and (
        facts.unschedulable
        or any(
            key.startswith(_ILL) and effect != "PreferNoSchedule" for key, _, effect in facts.taints
        )
    )


def _free(amounts: c.Ints) -> c.Ints:
    """More may be used than there is, once a node has shrunk."""
    return np.maximum(amounts, 0)


class _Judged:
    """Sums over the typical pods asked so far. N nodes, D entries of cards."""

    def __init__(
        self, cluster: Cluster, rows: c.Ints, cards: Cards, *, plain_assumed: bool
    ) -> None:
        nodes, n = cluster.nodes.columns, rows.size
        # Of CPU and memory of these nodes, pods without GPU are no judges.
        self._unseen = nodes.has_gpu[rows] & plain_assumed
        self._cluster, self._rows, self._cards = cluster, rows, cards
        self._allocatable = nodes.allocatable[:, rows]
        free = self._allocatable - nodes.requested[:, rows]
        self.plain_free, self._no_pods = free[[c.CPU, c.MEMORY]], free[c.PODS] < 1
        self._gpu_weight, self._taken = np.zeros((2, cards.owner.size))
        self._plain_weight, self._blocked, self._fitting = np.zeros((3, 2, n))
        self.hosted, self.refused = np.zeros((2, n)), np.zeros((2, n))
        self.short = np.zeros((2, N_CAUSES, n))
        self.fewest = np.zeros(n, np.int64)
        self.barred: list[c.Flags] = []

    def ask(self, shape: DemandShape, count: float) -> None:
        """One typical pod and how many there are of it."""
        cards, n = self._cards, self._rows.size
        suits, now = cards.takes(
            shape, card_order.models_ok(shape, self._cluster.cards.models.values)
        )
        n_suiting = np.bincount(cards.owner, suits * cards.n_all, n)
        n_now = np.bincount(cards.owner, now * cards.n_left, n)
        asked = np.array([[shape.cpu], [shape.memory]])
        roomy = (n_suiting >= shape.cards) & (self._allocatable[: c.EPHEMERAL] >= asked).all(axis=0)
        hosts = roomy & rules.could_host(shape, self._cluster.nodes, self._rows)
        self.barred.append(roomy & ~hosts)
        too_few = n_now < shape.cards
        some = too_few & (n_now > 0)
        lacks = np.vstack([self.plain_free < asked, too_few & ~some, some, self._no_pods])
        fits = hosts & ~lacks.any(axis=0)
        kind = ASKS_GPU if shape.cards else ASKS_NONE
        self.hosted[kind] += count * hosts
        self.refused[kind] += count * (hosts & ~fits)
        self.short[kind] += count * (hosts & lacks)
        fewest = np.where(self.fewest > 0, np.minimum(self.fewest, shape.cards), shape.cards)
        self.fewest = np.where(hosts & some, fewest, self.fewest)
        if shape.cards:
            of_family = cards.pool == place_of(shape.family)
            self._gpu_weight += count * (hosts[cards.owner] & of_family)
            self._taken += count * (fits[cards.owner] & now)
        has_say = hosts & ~(too_few if shape.cards else self._unseen)
        weight = count * asked * has_say
        self._plain_weight += weight
        self._fitting += weight * fits
        self._blocked += weight * (~fits & ~lacks[:2])

    def stranded_plain(self) -> tuple[c.Floats, c.Floats, c.Floats]:
        """[2, N] stranded, dead and spare cores and GiB."""
        some = self._plain_weight > 0
        weights = np.stack([self._blocked, self._fitting])
        # Equal sums of the same figures in the same order: 1 is exact.
        share, taken = np.divide(
            weights, self._plain_weight, where=some, out=np.zeros(weights.shape)
        )
        free = _free(self.plain_free) / UNITS
        return free * share, free * (share == 1), free * np.maximum(1.0 - share - taken, 0.0)

    def stranded_share(self) -> tuple[c.Floats, c.Floats]:
        """[D] which part of what is free on a card is stranded, and which is dead."""
        weight = self._gpu_weight
        taken = np.divide(self._taken, weight, where=weight > 0, out=np.zeros(weight.size))
        return 1.0 - taken, (taken == 0).astype(np.float64)
