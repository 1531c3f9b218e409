"""All ways to place one pod: the nodes where it fits, and the cards that it could get there.

Nodes that are alike, and cards of a node that are alike, are one way: what is placed later fits the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from scheduler.api.cards import CardUse, Slots
from scheduler.api.door.decisions import Bind
from scheduler.kernels.devices import gpus
from scheduler.placing.rooms import Rooms
from scheduler.schema import columns as c
from scheduler.shapes.boards import Boards, Shape
from scheduler.shapes.keys import Keys
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord


class Way(NamedTuple):
    """A node row for a pod, with its cards; no cards: the mode chooses them, or the pod gets none."""

    shape: Shape
    row: int
    slots: Slots = ()


class Ways:
    """The ways to place pods on one cluster.

    Attributes:
        n_tried: how many ways were tried since it was set to 0: no call of the cycle tries ways without end.
    """

    def __init__(self, cluster: Cluster, boards: Boards, keys: Keys, rooms: Rooms) -> None:
        self._cluster, self._boards, self._keys, self._rooms = cluster, boards, keys, rooms
        self.n_tried = 0

    def list_ways(self, pod: PodRecord, rows: c.Ints) -> Iterator[Way]:
        """Yield every way to place a pod on some rows as they are now, one of those that are alike.

        Rows on which room is promised to another pod are left out, even if both had room there.
        """
        key = self._keys.make_key(pod)
        if key is None or key.refusal is not None:
            return
        shape = self._boards.make_unscored(key)
        fitting = rows[self._boards.find_refusals(shape, rows)[0] == 0]
        known: set[Hashable] = set()
        for row in fitting.tolist():
            if self._is_promised(pod, row):
                continue
            like = self._describe_row(shape, row)
            if like not in known:
                known.add(like)
                yield from self._list_on_row(shape, row)

    def _is_promised(self, pod: PodRecord, row: int) -> bool:
        nominations, later = self._cluster.nominations, self._cluster.later
        if later.room is None and not nominations:
            return False
        name = self._cluster.nodes.find_name(row)
        if any(uid != pod.uid for uid in nominations.list_on(name)):
            return True
        return name in later.on and self._cluster.is_bound_later(pod)

    def put(self, pod: PodRecord, way: Way) -> Bind:
        """Place a pod in one way, in the open trial."""
        if way.slots:
            return self._rooms.assume_at(way.shape, pod, way.row, way.slots)
        placed = self._rooms.put_at(pod, way.shape, way.row)
        return self._rooms.assume(way.shape, [pod], placed)[0]

    def describe_rows(self, rows: c.Ints) -> Hashable:
        """Describe what is left on rows: equal descriptions leave room for the same pods."""
        nodes = self._cluster.nodes.columns
        return nodes.requested[:, rows].tobytes(), *(
            self._describe_cards(row) for row in rows.tolist()
        )

    def _describe_row(self, shape: Shape, row: int) -> Hashable:
        """Describe a row as far as it matters which of several rows a pod gets."""
        if len(shape.counted) or shape.view.storage is not None or shape.view.is_wide:
            return row
        nodes = self._cluster.nodes.columns
        facts = self._cluster.nodes.facts[row]
        labels = {} if facts is None else facts.labels
        # The name of a node makes no difference to a pod without rules about other pods.
        words = frozenset(one for one in labels.items() if facts is None or one[1] != facts.name)
        free = (nodes.allocatable[:, row] - nodes.requested[:, row]).tobytes()
        return free, words, self._describe_cards(row)

    def _describe_cards(self, row: int) -> Hashable:
        nodes, cards = self._cluster.nodes.columns, self._cluster.cards.columns
        found = []
        for pool in range(len(nodes.managed)):
            start, n = int(nodes.card_start[pool, row]), int(nodes.card_count[pool, row])
            found += sorted(self._describe_card(cards, d) for d in range(start, start + n))
        return tuple(found)

    def _describe_card(self, cards: c.Cards, d: int) -> tuple[int, ...]:
        return (
            *cards.total[:, d].tolist(),
            *cards.used[:, d].tolist(),
            int(cards.healthy[d]),
            int(cards.cordoned[d]),
        )

    def _list_on_row(self, shape: Shape, row: int) -> Iterator[Way]:
        """Yield the ways on one row: first as the mode chooses, then with every other set of cards."""
        yield Way(shape, row)
        pool, containers = shape.ask.pool, shape.ask.containers
        takers = np.flatnonzero(containers[c.N_CARDS]).tolist() if containers.size else []
        if pool < 0 or len(takers) != 1 or not self._cluster.nodes.columns.managed[pool, row]:
            # Of several containers with cards only the choice of the mode is tried.
            return
        slot = takers[0]
        start = int(self._cluster.nodes.columns.card_start[pool, row])
        end = start + int(self._cluster.nodes.columns.card_count[pool, row])
        world, known = self._boards.get_world(shape), set()
        cards = self._cluster.cards.columns
        for picks in combinations(range(start, end), int(containers[c.N_CARDS, slot])):
            like = tuple(sorted(self._describe_card(cards, d) for d in picks))
            if like in known:
                continue
            known.add(like)
            asked = np.array([(d, slot) for d in picks], np.int64)
            if gpus.suffices(world, shape.ask, row, asked):
                yield Way(shape, row, self._write_slots(shape, slot, picks))

    def _write_slots(self, shape: Shape, slot: int, picks: tuple[int, ...]) -> Slots:
        containers, cards = shape.ask.containers, self._cluster.cards
        mib, percent = int(containers[c.ASK_MIB, slot]), int(containers[c.ASK_PERCENT, slot])
        cores = int(containers[c.ASK_CORES, slot])
        uses = tuple(
            CardUse(
                cards.find_uuid(d),
                max(1, mib or int(cards.columns.total[c.MIB, d]) * percent // 100),
                cores,
            )
            for d in picks
        )
        n = len(shape.asked.template.kinds)
        return tuple(uses if i == slot else () for i in range(n))
