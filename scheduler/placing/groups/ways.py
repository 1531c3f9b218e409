"""All ways to place one pod: the nodes where it fits, and the cards that it could get there.

Nodes that are alike, and cards of a node that are alike, are one way: what is placed later fits the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from scheduler.api.cards import CardUse, Grant, Grants
from scheduler.api.door.decisions import Bind
from scheduler.kernels.devices import gpus
from scheduler.placing.groups.alike import AlikeRows
from scheduler.placing.rooms import Rooms
from scheduler.schema import columns as c
from scheduler.schema.world import ANYWHERE
from scheduler.shapes.boards import Boards, Key, Shape
from scheduler.shapes.keys import Keys
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

# The most work in one call.
_WORK_MAX = 1000
# So many rows, or sets of cards, are looked at in the time of one try.
_ROWS_A_TRY, _SETS_A_TRY = 64, 16
# It takes as long as a try to find out which of so many rows are alike.
_ALIKE_A_TRY = 32


class Way(NamedTuple):
    """A node row for a pod, with its cards; no cards: the mode chooses them, or the pod gets none."""

    shape: Shape
    row: int
    cards: Grants = ()


class Ways:
    """The ways to place pods on one cluster.

    Attributes:
        spent: the work since it was set to 0, in tries of one way: no call of the cycle works without end.
    """

    def __init__(self, cluster: Cluster, boards: Boards, keys: Keys, rooms: Rooms) -> None:
        self._cluster, self._boards, self._keys, self._rooms = cluster, boards, keys, rooms
        self.spent = 0

    @property
    def is_spent(self) -> bool:
        """Whether no more ways are to be tried in this call."""
        return self.spent >= _WORK_MAX

    @property
    def is_half_spent(self) -> bool:
        """Whether half of the ways are tried that may be tried in this call."""
        return self.spent >= _WORK_MAX // 2

    def find_alike(
        self, pods: Sequence[PodRecord], rows: c.Ints, domains: Sequence[c.Ints] = ()
    ) -> AlikeRows:
        """Find out which rows are alike for some pods; rows in different ones of some domains, each [N], are not."""
        self.spent += rows.size // _ALIKE_A_TRY
        keys: dict[Key, None] = {}
        for pod in pods:
            key = self._keys.make_key(pod)
            if key is not None and key.refusal is None:
                keys[key] = None
        shapes = [self._boards.make_unscored(key) for key in keys]
        return AlikeRows(self._cluster, self._boards, shapes, rows, domains)

    def list_ways(
        self, pod: PodRecord, alike: AlikeRows, usable: c.Flags = ANYWHERE
    ) -> Iterator[Way]:
        """Yield every way to place a pod on usable rows [N] as things are now, one of those that are alike.

        Rows on which room is promised to another pod are left out, even if both had room there.
        """
        key = self._keys.make_key(pod)
        if key is None or key.refusal is not None:
            return
        shape = self._boards.make_unscored(key)
        rows = alike.list_rows()
        rows = rows[usable[rows]] if usable.size else rows
        self.spent += rows.size // _ROWS_A_TRY
        for row in rows[self._boards.find_refusals(shape, rows)[0] == 0].tolist():
            if not self._is_promised(pod, row):
                yield from self._list_on_row(shape, row, alike)

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
        if way.cards:
            return self._rooms.assume_at(way.shape, pod, way.row, way.cards)
        placed = self._rooms.put_at(pod, way.shape, way.row)
        return self._rooms.assume(way.shape, [pod], placed)[0]

    def _list_on_row(self, shape: Shape, row: int, alike: AlikeRows) -> Iterator[Way]:
        """Yield the ways on one row: first as the mode chooses, then with every other set of cards."""
        yield Way(shape, row)
        containers, pools = shape.ask.containers, self._cluster.nodes.columns.pools
        pool = self._cluster.registers.find_pool(shape.ask.family, row)
        takers = np.flatnonzero(containers[c.N_CARDS]).tolist() if containers.size else []
        is_plain = (
            pools.managed[pool]
            and pools.chooser[pool] == c.WALK
            and not pools.carved[pool]
            and not shape.ask.rules.linked
            and not shape.ask.more
            and not shape.ask.claims.leaves.size
        )
        if len(takers) != 1 or not is_plain:
            # Of several containers with cards, or several families, only the choice of the mode is tried.
            return
        slot = takers[0]
        start, end = int(pools.start[pool]), int(pools.start[pool] + pools.count[pool])
        kinds: dict[tuple[int, ...], list[int]] = {}
        for d in range(start, end):
            kinds.setdefault(alike.describe_card(d), []).append(d)
        world = self._boards.get_world(shape)
        n_cards = int(containers[c.N_CARDS, slot])
        for n_sets, picks in enumerate(_list_sets(list(kinds.values()), n_cards)):
            self.spent += n_sets % _SETS_A_TRY == 0
            asked = np.array([(d, slot, c.NO_PART) for d in picks], np.int64)
            if gpus.suffices(world, shape.ask, row, asked):
                yield Way(shape, row, self._write_grants(shape, slot, picks, pool))
            elif self.is_spent:
                # There may be very many sets that do not suffice.
                return

    def _write_grants(self, shape: Shape, slot: int, picks: tuple[int, ...], pool: int) -> Grants:
        containers, cards = shape.ask.containers, self._cluster.cards
        n, nodes = len(shape.asked.template.kinds), self._cluster.nodes
        driver = nodes.devices.cards[int(nodes.columns.pools.driver[pool])]
        uses = tuple(
            CardUse(
                cards.find_uuid(d),
                gpus.find_mib(cards.columns, containers, slot, d),
                gpus.find_cores(cards.columns, containers, slot, d),
                cards.find_model(d) if driver.names_models else "",
            )
            for d in picks
        )
        slots = tuple(uses if i == slot else () for i in range(n))
        gpu = shape.asked.template.gpu
        return (Grant(driver.name, slots, gpu.of_pod if gpu is not None else ()),)


def _list_sets(kinds: Sequence[Sequence[int]], n: int) -> Iterator[tuple[int, ...]]:
    """Yield the sets of n cards, one of those that are alike; each kind lists cards that are alike."""
    if n == 0:
        yield ()
    elif kinds:
        first, *rest = kinds
        for k in range(min(n, len(first)), -1, -1):
            for others in _list_sets(rest, n - k):
                yield *first[:k], *others
