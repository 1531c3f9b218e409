"""What is used, free and stranded on every node, measured by the typical pods.

Stranded capacity is free, but the typical pod cannot take it, in expectation. Only typical pods count that could run on
the node if it were empty: an empty node of T4s strands nothing because of a pod that wants an A100. A pod fits if its
CPU, its memory, one more pod and its cards are all free on the node.

- GPU (compute and memory, per card): Σ over typical pods k that request GPUs of p_k · (free on cards that k cannot
  take), p_k: the share of such pods. If k does not fit on the node, that is all that is free; otherwise it is what is
  free on cards too small for k. This is the fragment measure of Weng et al., "Beware of Fragmentation" (USENIX ATC
  2023), whose measure counts no memory of the node and one figure per card. A node with free GPU on which no typical
  pod could ever run strands all of the free GPU.
- CPU: Σ over all typical pods k that request CPU of q_k · (free CPU, if k does not fit on the node although its CPU is
  free there), q_k ∝ pods · requested CPU: the chance that something else keeps the next requested core off the node. So
  40 free cores without memory are 40 stranded cores. A free core that is too little for any pod is not stranded,
  because the CPU itself has run out. Memory is measured likewise. Pods that find no cards on the node do not count:
  they do not make cores stranded beside GPUs that are in use. Assumed pods without GPU do not count on nodes with GPUs
  either, because no such pod has been seen.
- dead is the part of the stranded capacity that no typical pod at all can take.
- spare is free CPU and memory that is no loss: no typical pod counts, or the free amount itself is, in expectation, too
  little for the typical pod.

Free capacity that is neither stranded nor spare is usable: in expectation, the typical pod can take it.

The figure is a lower bound: if one typical pod still fits, nothing counts as stranded for that pod, although a second
pod may not fit. Cordoned and unhealthy nodes strand nothing; their free capacity is closed. The free capacity of a card
is closed if the card is unhealthy, cordoned, in MIG mode without a report of what it can be cut into, or may be held by pods that do not name their cards.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from scheduler.devices import card_order
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
# Reasons are counted apart for typical pods that request GPUs and for other typical pods.
ASKS_GPU, ASKS_NONE = range(2)
# A core and a GiB in base units.
UNITS = np.array([[1000.0], [2.0**30]])
_ILL = "node.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of N nodes in the order of their names.

    Attributes:
        names: the names of the nodes.
        amounts: [7, 4, N] in natural units, by ``FIGURES`` and ``DIMENSIONS``. Capacity is used + free + closed, unless
            used exceeds capacity.
        closed: [N] whether the node takes no pods for now.
        hosted: [2, N] typical pods that could run on the node if it were empty, by ``ASKS_GPU``, ``ASKS_NONE``.
        refused: [2, N] hosted pods that do not fit now.
        short: [2, N_CAUSES, N] hosted pods that lack each resource. A pod lacks cards if no card has enough free for the
            pod, and lacks more cards if some cards have.
        fewest: [N] the fewest GPUs of a typical pod that lacks more cards; 0 if there is no such pod.
        barred: [K, N] which of the K typical pods would have room on the empty node, but may not go there because of the
            node's taints or labels.
    """

    names: tuple[str, ...]
    amounts: c.Floats
    closed: c.Flags
    hosted: c.Floats
    refused: c.Floats
    short: c.Floats
    fewest: c.Ints
    barred: c.Flags


def measure_cluster(cluster: Cluster, typical: Typical) -> Figures:
    """Measure all nodes that are not malformed. O(typical pods · cards)."""
    steps = measure_in_steps(cluster, typical)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: Figures = end.value
            return found


def list_node_names(cluster: Cluster) -> list[str]:
    """List the names of the nodes that are not malformed, sorted."""
    table = cluster.nodes
    return sorted(name for name, row in table.rows.items() if table.columns.valid[row])


def measure_in_steps(cluster: Cluster, typical: Typical) -> Generator[None, None, Figures]:
    """Measure as ``measure_cluster`` does, one typical pod at each step; free amounts are those of the first steps.

    Nodes may come and go between steps. If a node is gone and another node has its row, the remaining typical pods are
    compared with the other node's labels and taints.
    """
    table, names = cluster.nodes, list_node_names(cluster)
    rows = np.array([table.find_row(name) for name in names], np.int64)
    closed = np.array([_is_closed(cluster, row) for row in rows.tolist()], np.bool_)
    yield
    cards = all_cards.read_cards(cluster, rows)
    yield
    judged = _Judged(cluster, rows, cards, plain_assumed=typical.plain_assumed)
    amounts = np.zeros((len(FIGURES), len(DIMENSIONS), rows.size))
    amounts[CAPACITY, :GPU] = table.columns.allocatable[[c.CPU, c.MEMORY]][:, rows] / UNITS
    amounts[USED, :GPU] = table.columns.requested[[c.CPU, c.MEMORY]][:, rows] / UNITS
    for shape, count in typical.pods:
        yield
        judged.add_pods(shape, count)
    plain_free, card_free = _clip_free(judged.plain_free), cards.capacity - cards.used
    amounts[FREE, :GPU] = plain_free / UNITS
    amounts[STRANDED, :GPU], amounts[DEAD, :GPU], amounts[SPARE, :GPU] = judged.measure_plain()
    stranded, dead = judged.measure_cards()
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


def find_open(cluster: Cluster) -> c.Flags:
    """Find [N] the nodes that take pods: neither malformed nor cordoned, nor in a bad state."""
    found = cluster.nodes.columns.valid.copy()
    for row in cluster.nodes.rows.values():
        found[row] &= not _is_closed(cluster, row)
    return found


def _is_closed(cluster: Cluster, row: int) -> bool:
    facts = cluster.nodes.facts[row]
    return facts is not None and (
        facts.unschedulable
        or any(
            key.startswith(_ILL) and effect != "PreferNoSchedule" for key, _, effect in facts.taints
        )
    )


def _clip_free(amounts: c.Ints) -> c.Ints:
    """Replace negative amounts by 0: a node that has shrunk may have more in use than it has."""
    return np.maximum(amounts, 0)


class _Judged:
    """Sums over the typical pods that were added so far. N nodes, D entries of cards."""

    def __init__(
        self, cluster: Cluster, rows: c.Ints, cards: Cards, *, plain_assumed: bool
    ) -> None:
        nodes, n = cluster.nodes.columns, rows.size
        # Nodes on whose CPU and memory pods without GPU do not count, because such pods are assumed.
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

    def add_pods(self, shape: DemandShape, count: float) -> None:
        """Add ``count`` pods of one typical shape."""
        cards, n = self._cards, self._rows.size
        suits, now = cards.find_taking(
            shape, card_order.accept_models(shape, self._cluster.cards.models.values)
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
            of_family = cards.family == cards.find_family(shape.family)
            self._gpu_weight += count * (hosts[cards.owner] & of_family)
            self._taken += count * (fits[cards.owner] & now)
        has_say = hosts & ~(too_few if shape.cards else self._unseen)
        weight = count * asked * has_say
        self._plain_weight += weight
        self._fitting += weight * fits
        self._blocked += weight * (~fits & ~lacks[:2])

    def measure_plain(self) -> tuple[c.Floats, c.Floats, c.Floats]:
        """Measure stranded, dead and spare cores and GiB, [2, N] each."""
        some = self._plain_weight > 0
        weights = np.stack([self._blocked, self._fitting])
        # Both sums add equal figures in the same order, so a quotient of 1 is exact.
        share, taken = np.divide(
            weights, self._plain_weight, where=some, out=np.zeros(weights.shape)
        )
        free = _clip_free(self.plain_free) / UNITS
        return free * share, free * (share == 1), free * np.maximum(1.0 - share - taken, 0.0)

    def measure_cards(self) -> tuple[c.Floats, c.Floats]:
        """Measure which part of a card's free capacity is stranded, and which is dead, [D] each."""
        weight = self._gpu_weight
        taken = np.divide(self._taken, weight, where=weight > 0, out=np.zeros(weight.size))
        return 1.0 - taken, (taken == 0).astype(np.float64)
