"""Which sets of pods are worth a try: those whose going would make a card or a node whole, or let a waiting pod in.

The cards and nodes are found in columns; only for the few that are tried are pods looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from scheduler.defrag.whole import Gauge
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity, Entity
from scheduler.state.pods import PodRecord
from scheduler.telling.advice import ending, nearest
from scheduler.telling.advice.asking import Asking

# The most pods that leave a card or a node together, and the most cards and nodes that are tried.
_ON_CARD_MAX, _ON_NODE_MAX = 6, 16
_CARDS_MAX, _NODES_MAX = 512, 256
# The most waiting pods for which sets are sought, and on how many nodes for each.
_WAITING_MAX, _TRIED = 4, 16


class Sets:
    """Finds sets of pods of one cluster."""

    def __init__(self, cluster: Cluster, gauge: Gauge, runs: Mapping[str, float]) -> None:
        """``runs``: the pods that may be moved, with the seconds for which each has run."""
        self._cluster, self._gauge, self._runs = cluster, gauge, runs
        size = cluster.ledger.pods.columns.node.size
        self._may_go = np.zeros(size, np.bool_)
        self._uid_of: dict[int, str] = {}
        for uid in runs:
            row = cluster.pods[uid].row
            self._may_go[row] = True
            self._uid_of[row] = uid

    def list_on_cards(self) -> Iterator[tuple[str, ...]]:
        """List the pods of each card that all of them would leave to become whole; the fewest and smallest first."""
        pods, cards = self._cluster.ledger.pods.columns, self._cluster.cards.columns
        rows = np.flatnonzero(pods.node >= 0)
        first, n = pods.held[:, rows]
        before = np.cumsum(n) - n
        holds = pods.holds[np.repeat(first - before, n) + np.arange(n.sum())]
        holder = np.repeat(rows, n)
        of_cards = holds[:, c.HOLD_PART] == c.NO_PART
        holder, card = holder[of_cards], holds[of_cards, c.HOLD_CARD]
        n_there = np.bincount(card, minlength=cards.pool.size)
        n_going = np.bincount(card[self._may_go[holder]], minlength=cards.pool.size)
        worth = self._gauge.usable & (n_there > 0) & (n_there <= _ON_CARD_MAX)
        worth &= n_there == n_going
        # A pod that has a card to itself only takes another one.
        worth &= (n_there > 1) | self._gauge.read().broken
        at = np.flatnonzero(worth)
        order = at[np.lexsort((at, cards.used[c.MIB, at], n_there[at]))][:_CARDS_MAX]
        by_card = np.argsort(card, kind="stable")
        begins = np.searchsorted(card[by_card], order)
        for begin, d in zip(begins.tolist(), order.tolist(), strict=True):
            there = holder[by_card[begin : begin + int(n_there[d])]]
            yield self._sort([self._uid_of[row] for row in there.tolist()])

    def list_on_nodes(self) -> Iterator[tuple[str, ...]]:
        """List the pods of each node that all of them would leave; the fewest first."""
        node = self._cluster.ledger.pods.columns.node
        n_nodes = self._gauge.open.size
        n_there = self._gauge.count_pods()
        going = self._may_go[: node.size] & (node >= 0)
        n_going = np.bincount(node[going], minlength=n_nodes)
        worth = self._gauge.open & (n_going > 0) & (n_going == n_there)
        at = np.flatnonzero(worth & (n_there <= _ON_NODE_MAX))
        for row in at[np.lexsort((at, n_there[at]))][:_NODES_MAX].tolist():
            there = self._cluster.pods_on.get(self._cluster.nodes.find_name(row), {})
            yield self._sort([uid for uid in there if uid in self._runs])

    def list_for_waiting(
        self, asking: Asking, waiting: Sequence[AnyEntity]
    ) -> Iterator[tuple[str, ...]]:
        """List pods without which a waiting pod fits on a node, for each of the nodes that come closest."""
        kinds = set()
        for pod in waiting:
            if isinstance(pod, Entity) or (kind := asking.answers.find_kind(pod)) in kinds:
                continue
            kinds.add(kind)
            if len(kinds) > _WAITING_MAX:
                return
            yield from self._list_for(asking, pod)

    def _list_for(self, asking: Asking, pod: PodRecord) -> Iterator[tuple[str, ...]]:
        ordered, shape = nearest.order_nodes(asking, pod), asking.make_shape(pod)
        if ordered is None or shape is None:
            return
        could = ordered.order[ordered.hopeless[ordered.order] == 0]
        for row in ordered.judged.rows[could][:_TRIED].tolist():
            found = ending.find_ending(asking, shape, row, lambda one: one.uid in self._runs)
            if found is not None:
                yield self._sort([one.uid for one in found.pods])

    def _sort(self, uids: Sequence[str]) -> tuple[str, ...]:
        """Sort pods by what they hold, the largest first: the smaller ones find places that are left."""

        def size(uid: str) -> tuple[int, int, str]:
            pod = self._cluster.pods[uid]
            mib = sum(held[1] for held in self._cluster.read_held(pod).values())
            cpu = dict(pod.template.requests.amounts).get("cpu", 0)
            return -mib, -cpu, pod.key

        return tuple(sorted(uids, key=size))
