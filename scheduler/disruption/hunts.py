"""The possible victims on each node for one kind of pods, updated as nodes change.

All nodes are asked, none is sampled; like pods share the answers, so that the second of a thousand costs what has
changed since the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from scheduler.api.door.decisions import Diagnosis
from scheduler.api.placement import Mode
from scheduler.disruption import protectors
from scheduler.disruption.beyond import Band, add_units, list_bands
from scheduler.disruption.gains import Gains
from scheduler.disruption.group_units import (
    find_kube_units,
    find_rows_with_groups,
    list_rows_beside,
)
from scheduler.disruption.plain import ByRow
from scheduler.disruption.promises import Promises
from scheduler.disruption.units import find_units
from scheduler.kernels import preempt as kernel
from scheduler.plugins import table
from scheduler.schema import columns as c
from scheduler.schema import preempting as p
from scheduler.shapes import diagnosis
from scheduler.shapes.boards import Boards, Key, Shape
from scheduler.state.cluster import Cluster
from scheduler.state.pods import PodRecord

_NOBODY, _NOT_HELPFUL = (
    "No preemption victims found for incoming pod",
    "Preemption is not helpful for scheduling",
)
TEXTS = (_NOBODY, _NOT_HELPFUL)
# Finds the units on some rows that may go for a pod, and how much work it was.
FindUnits = Callable[[Cluster, PodRecord, c.Ints], tuple[p.Units, int]]


class Hunt:
    """Whom each node could spare for pods of one key and priority.

    Attributes:
        n_asked: how many nodes were asked since it was brought up to date last, or could have been in the time.
    """

    def __init__(self, cluster: Cluster, boards: Boards, promises: Promises, key: Key) -> None:
        self._cluster, self._boards, self._promises = cluster, boards, promises
        self._key = key
        self._is_kube = key.placement.mode == Mode.KUBE_SCHEDULER
        self._words: tuple[int, ...] = ()
        self._shape = boards.make_unscored(key)
        self._gains = Gains(cluster)
        self._moved = self._version = self._grouped = -1
        self._versions: tuple[int, ...] = ()
        self.n_asked = self._n_moves = 0
        self._summed: Diagnosis | None = None
        self._forget()

    def estimate_bytes(self) -> int:
        """How much memory it takes for nodes and for what its pods count, at most."""
        capacity = self._codes.size
        of_nodes = self.figures.nbytes + self.bits.nbytes + self.refused.nbytes
        return of_nodes + self._shape.counted.estimate_bytes(capacity)

    def refresh(self, pod: PodRecord) -> None:
        """Ask the nodes on which anything has changed; ``pod`` is one of the kind."""
        cluster = self._cluster
        words = (*cluster.cards.words, cluster.nodes.resources.generation)
        if self._words != words or self._codes.size != cluster.nodes.capacity:
            self._words = words
            self._shape = self._boards.make_unscored(self._key)
            self._forget()
        rows = self._list_stale()
        self._moved, self._version = cluster.moved.position, cluster.nominations.version
        self._grouped = cluster.groups.changes.position
        self._versions = protectors.get_versions(cluster)
        self.n_asked = rows.size
        if not rows.size:
            return
        self._summed = None
        bits = self._boards.find_refusals(self._shape, rows)
        before: ByRow = {}
        if self._promises.are_any:
            names = [cluster.nodes.find_name(row) for row in rows.tolist()]
            before = self._promises.list_before(pod, nodes=names)
            if before:
                bits |= self._promises.find_refusals(pod, rows, len(bits))
        self.bits[:, rows] = bits
        self.ask(pod, rows, bits, before)

    def ask(self, pod: PodRecord, rows: c.Ints, bits: c.Ints, before: ByRow) -> list[c.Ints]:
        """Search some rows, which refuse the pod for these bits. Return the pods of each unit that goes from the last row.

        ``before`` are the pods that the pod yields to there.
        """
        refused = bits[0] != 0
        self._codes[rows] = p.NOT_ASKED
        judged = diagnosis.gather_refusals(
            self._cluster,
            self._shape,
            self._boards.get_world(self._shape),
            rows[refused],
            bits[:, refused],
        )
        rows = rows[refused][~table.find_lasting(judged)]
        if not before:
            return self._ask(pod, rows, self._shape, ())
        found = self._ask(pod, rows[~np.isin(rows, list(before))], self._shape, ())
        asked = {row: before[row] for row in rows.tolist() if row in before}
        for part in self._promises.try_parts(pod, asked) if asked else ():
            # What those that the pod yields to say of it counts as well.
            shape = self._boards.make_unscored(self._promises.make_key(pod) or self._key)
            kept = [one for pods in part.values() for one in pods]
            found = self._ask(pod, np.array(list(part), np.int64), shape, kept)
        return found

    def ask_own(self, pod: PodRecord, row: int) -> None:
        """Ask the row that the pod itself is nominated to: it does not stand in its own way."""
        self._again.add(row)
        rows = np.array([row], np.int64)
        bits = self._boards.find_refusals(self._shape, rows)
        name = self._cluster.nodes.find_name(row)
        before = self._promises.list_before(pod, pod.uid, [name])
        if before:
            bits |= self._promises.judge_beside(pod, before)
        self.bits[:, rows] = bits
        self.ask(pod, rows, bits, before)

    def list_units(self, pod: PodRecord, row: int) -> tuple[tuple[str, ...], ...]:
        """Whom a node spares for a pod: the uids of the pods of each unit, the most important unit first."""
        name = self._cluster.nodes.find_name(row)
        before = self._promises.list_before(pod, pod.uid, [name])
        units = self.ask(pod, np.array([row], np.int64), self.bits[:, row : row + 1], before)
        if not units:
            return ()
        nodes = np.unique(self._cluster.ledger.pods.columns.node[np.concatenate(units)])
        uid_of = {
            one.row: one.uid
            for at in nodes.tolist()
            for one in self._cluster.pods_on[self._cluster.nodes.find_name(at)].values()
        }
        return tuple(tuple(uid_of[at] for at in pods.tolist()) for pods in units)

    def find_best(self) -> int:
        """The row of which the least is asked, the lowest rank on ties; -1 when none can do."""
        rows = np.flatnonzero(self._codes == p.ENOUGH)
        for figure, least in (
            (p.PLACE_COST, True),
            (p.PLACE_TOP, True),
            (p.PLACE_SUM, True),
            (p.PLACE_COUNT, True),
            (p.PLACE_START, False),
        ):
            if rows.size <= 1:
                break
            values = self.figures[figure, rows]
            rows = rows[values == (values.min() if least else values.max())]
        if not rows.size:
            return -1
        return int(rows[np.argmin(self._cluster.nodes.columns.rank[rows])])

    def explain(self) -> Diagnosis:
        """Why nobody's going would help."""
        if self._summed is None:
            self._summed = self._sum_up()
        return self._summed

    def _sum_up(self) -> Diagnosis:
        rows = diagnosis.list_rows(self._cluster)
        codes = self._codes[rows]
        none, asked = codes == p.NONE, codes == p.NOT_ENOUGH
        reasons = [
            (_NOBODY, int(none.sum())),
            (_NOT_HELPFUL, int((~none & ~asked).sum())),
        ]
        if asked.any():
            left = diagnosis.gather_refusals(
                self._cluster,
                self._shape,
                self._boards.get_world(self._shape),
                rows[asked],
                self.refused[:, rows[asked]],
            )
            reasons += diagnosis.sum_up_reasons(left).reasons
        return Diagnosis(rows.size, tuple(sorted(one for one in reasons if one[1])))

    def _forget(self) -> None:
        capacity = self._cluster.nodes.capacity
        words = table.count_words(self._shape.asked.template)
        self.figures = p.make_figures(capacity)
        self._codes = self.figures[p.PLACE_CODE]
        self.bits = np.zeros((words, capacity), np.int64)
        self.refused = np.zeros((words, capacity), np.int64)
        self._summed = None
        self._moved = -1
        # Pods that may have to go for room on other nodes than theirs.
        self._elsewhere: set[int] = set()
        # Rows that were asked in another way for one pod.
        self._again: set[int] = set()

    def _list_stale(self) -> c.Ints:
        """The rows to ask again, of nodes that are there."""
        cluster = self._cluster
        again, self._again = self._again, set()
        moved = cluster.moved.list_since(self._moved) if self._moved >= 0 else None
        names = cluster.nominations.list_since(self._version)
        groups = cluster.groups.changes.list_since(self._grouped) if self._is_kube else {}
        others = protectors.find_changed(cluster, self._versions) if self._versions else None
        if (
            moved is None
            or names is None
            or others is None
            or groups is None
            or (self._key.view.is_wide and moved.size)
        ):
            self._codes[:] = p.NOT_ASKED
            return diagnosis.list_rows(cluster)
        rows = {*again, *moved.tolist(), *(cluster.nodes.find_row(name) for name in names)}
        n_moves, self._n_moves = self._n_moves, cluster.nominations.n_moves
        is_other = self._elsewhere and n_moves != self._n_moves
        if is_other or not self._elsewhere.isdisjoint(others):
            return diagnosis.list_rows(cluster)
        rows.update(cluster.ledger.pods.columns.node[others].tolist())
        if self._is_kube:
            rows |= list_rows_beside(cluster, [row for row in rows if row >= 0], groups)
        gone = [row for row in rows if row >= 0 and cluster.nodes.facts[row] is None]
        self._codes[gone] = p.NOT_ASKED
        return np.array(sorted(row for row in rows if row >= 0 and row not in gone), np.int64)

    def _ask(
        self, pod: PodRecord, rows: c.Ints, shape: Shape, kept: Iterable[PodRecord]
    ) -> list[c.Ints]:
        """Ask the rows as they are now, with ``kept`` on them."""
        found: list[c.Ints] = []
        bands = self._list_bands() if rows.size else []
        for part, finds_units in self._split(rows, bands):
            units, work = finds_units(self._cluster, pod, part)
            self.n_asked += work
            goes = self._search(units, shape, kept)
            if part[-1] == rows[-1]:
                last = range(int(units.first[-2]), int(units.first[-1]))
                found = [
                    units.pods[units.begins[unit] : units.begins[unit + 1]]
                    for unit in last
                    if goes[unit]
                ]
        return found

    def _list_bands(self) -> list[Band]:
        """List the pods elsewhere that a pod of the kind may need to go; note who they are."""
        claims = self._shape.asked.claims
        if claims is None or self._is_kube:
            return []
        bands = list_bands(self._cluster, claims.pending)
        self._elsewhere = {row for band in bands for row in band.pods.tolist()}
        return bands

    def _split(self, rows: c.Ints, bands: Sequence[Band]) -> Iterator[tuple[c.Ints, FindUnits]]:
        """Yield rows, and what finds the units on them: whole groups go as kube-scheduler has them, if its rules are to hold."""
        if bands:
            yield rows, lambda cluster, pod, part: add_units(cluster, pod, part, bands)
            return
        has_groups = np.zeros(rows.size, np.bool_)
        if self._is_kube:
            has_groups = find_rows_with_groups(self._cluster, rows)
        if not has_groups.all():
            yield rows[~has_groups], find_units
        if has_groups.any():
            yield rows[has_groups], find_kube_units

    def _search(self, units: p.Units, shape: Shape, kept: Iterable[PodRecord]) -> c.Flags:
        """Search some places; return which units go."""
        self._boards.refresh_counts(shape)
        near = units.rows
        if len(shape.counted):
            near = np.union1d(near, self._cluster.ledger.pods.columns.node[units.pods])
        gains = self._gains.find_gains(shape.counted, near, units.pods)
        for one in kept:
            # What is needed near has to be there without them as well.
            self._gains.set_apart(shape.counted, self._cluster.pods[one.uid])
        search = p.Search(
            words=self._boards.statics.find_refusals(shape.asked, units.rows),
            gains=gains,
            fewest=np.zeros(len(gains), np.int64),
            order=np.zeros(units.cost.size, np.int64),
            goes=np.zeros(units.cost.size, np.bool_),
            figures=self.figures,
            refused=self.refused,
        )
        world = self._boards.get_world(shape)
        kernel.search_places(world, shape.ask, shape.counted.arrays, units, search)
        return search.goes
