"""The results of static rules on every node, computed once for all pods with the same requirements.

Shapes that differ in amounts only share it. It is kept up with the nodes whose words changed.
"""

from __future__ import annotations

from collections.abc import Hashable
from weakref import WeakSet

import numpy as np

from scheduler.api.pods.templates import PodTemplate
from scheduler.kernels import board as kernel
from scheduler.plugins import table
from scheduler.plugins.contract import Asked, Points
from scheduler.schema import columns as c
from scheduler.shapes.caches import IsThere, TemplateSizes
from scheduler.state.cluster import Cluster
from scheduler.state.nodes import NodeTable
from scheduler.state.structures.recent import Recent

_Key = tuple[table.Needs, table.Needs]
# Live shapes keep theirs beyond this.
_MOST, _BYTES_MAX = 512, 48 << 20
# What is kept for a node: refusal bits, and raw scores where they tell nodes apart.
NODE_BYTES = 24


class Static:
    """Refusal bits and raw scores of every node row, for one set of needs.

    Attributes:
        refused: [N] refusal bits.
        told: which of ``table.SCORES`` tell nodes apart.
        scores: [S, N] their raw scores.
        generation: rises when arrays are other ones than before; what is in them may change without.
        templates: of pods that need it.
        n_bytes: what the needs take, as they were written.
    """

    def __init__(self, needs: table.Needs, wants: table.Needs) -> None:
        self._needs, self._wants = needs, wants
        self._described = -1
        # What scores have read of all nodes together.
        self._read: dict[int, Hashable] = {}
        self.refused: c.Ints = np.zeros(0, np.int64)
        self.told: tuple[int, ...] = ()
        self.scores: c.Ints = np.zeros((0, 0), np.int64)
        self.generation = 0
        self.templates: WeakSet[PodTemplate] = WeakSet()
        self.n_bytes = 0

    def refresh(self, cluster: Cluster) -> None:
        """Judge the nodes again whose words have changed since; all of them the first time."""
        nodes, position = cluster.nodes, cluster.described.position
        if self._described == position and self.refused.size == nodes.capacity:
            return
        rows = cluster.described.list_since(self._described) if self._described >= 0 else None
        if rows is None or self.refused.size != nodes.capacity:
            rows = np.arange(nodes.capacity)
            self._read = {}
            self.refused = np.zeros(nodes.capacity, np.int64)
            self.told, self.scores = (), np.zeros((0, nodes.capacity), np.int64)
            self.generation += 1
        self._described = position
        self.refused[rows] = table.refusals(self._needs, nodes, rows)
        found = {
            i: self._raw(i, want, nodes, rows)
            for i, want in enumerate(self._wants)
            if want is not None
        }
        for at, i in enumerate(self.told):
            of_rows, raw = found[i]
            if of_rows is not rows and _differs(self.scores[at], raw, rows):
                # Boards look again only at rows that moved, and at all of them when this rises.
                self.generation += 1
            self.scores[at, of_rows] = raw
        self._choose(found)

    def _raw(self, i: int, want: Hashable, nodes: NodeTable, rows: c.Ints) -> tuple[c.Ints, c.Ints]:
        """Raw scores of the rows, or of all where what is read of all nodes has changed."""
        _, score = table.SCORES[i]
        if score.reads is not None:
            read = score.reads(nodes)
            if read != self._read.get(i):
                self._read[i] = read
                rows = np.arange(nodes.capacity) if rows.size < nodes.capacity else rows
        return rows, score.raw(want, nodes, rows)

    @property
    def is_relative(self) -> bool:
        """Whether a score that tells nodes apart hangs on the highest of all nodes on which the pod fits."""
        return any(table.SCORES[i][1].how != c.AS_IS for i in self.told)

    def norms(self, weights: table.Weights) -> c.Ints:
        """[S, N_NORM] as ``Board.norms``, with every node still to be looked at."""
        norms = np.zeros((len(self.told), c.N_NORM), np.int64)
        for at, i in enumerate(self.told):
            norms[at] = table.SCORES[i][1].how, weights.of_nodes[i], -1
        return norms

    def base(self, weights: table.Weights) -> int:
        """Weighted points that every node has of the scores that do not tell nodes apart."""
        return sum(
            weight * score.idle
            for i, ((_, score), weight) in enumerate(
                zip(table.SCORES, weights.of_nodes, strict=True)
            )
            if i not in self.told
        )

    def points(self, board: c.Board, row: int, weights: table.Weights) -> list[Points]:
        """What every static score that counts gives a row on an up-to-date board of a shape."""
        found = []
        for i, ((name, score), weight) in enumerate(
            zip(table.SCORES, weights.of_nodes, strict=True)
        ):
            raw, points = 0, score.idle
            if i in self.told:
                at = self.told.index(i)
                raw, points = int(board.scores[at, row]), kernel.normalised(board, at, row)
            if weight:
                found.append(Points(name, raw, points, weight))
        return found

    def _choose(self, found: dict[int, tuple[c.Ints, c.Ints]]) -> None:
        """Keep the scores by which nodes differ: only these cost anything when nodes are compared."""
        kept = {i: at for at, i in enumerate(self.told) if self.scores[at].any()}
        told = tuple(i for i in found if i in kept or found[i][1].any())
        if told == self.told:
            return
        scores = np.zeros((len(told), self.refused.size), np.int64)
        for at, i in enumerate(told):
            if i in kept:
                scores[at] = self.scores[kept[i]]
            else:
                of_rows, raw = found[i]
                scores[at, of_rows] = raw
        self.told, self.scores = told, scores
        self.generation += 1


def _key(asked: Asked) -> tuple[table.Needs, table.Needs]:
    plugins = asked.placement.kube
    return table.needs(asked.template, plugins), table.wants(asked.template, plugins)


def _differs(before: c.Ints, after: c.Ints, rows: c.Ints) -> bool:
    """Whether two columns differ on any but these rows."""
    differs = before != after
    differs[rows] = False
    return bool(differs.any())


class Statics:
    """What is known for the needs seen lately."""

    def __init__(self, cluster: Cluster, sizes: TemplateSizes) -> None:
        self._cluster, self._sizes = cluster, sizes
        self._recent: Recent[_Key, Static] = Recent(_MOST, _BYTES_MAX, self._size_of)

    def get_static(self, asked: Asked) -> Static:
        """What static rules say for pods that ask this; to be refreshed before it is read."""
        key = _key(asked)
        found = self._recent.get(key)
        if found is None:
            found = Static(*key)
            found.n_bytes = self._sizes.estimate(asked.template)
            self._recent.put(key, found)
        found.templates.add(asked.template)
        return found

    def forget(self, is_there: IsThere) -> None:
        """Forget what no pod needs any more."""
        self._recent.keep(lambda _, one: any(map(is_there, one.templates)))

    def _size_of(self, _: _Key, one: Static) -> int:
        return one.n_bytes + NODE_BYTES * self._cluster.nodes.capacity

    def refusals(self, asked: Asked, rows: c.Ints) -> c.Ints:
        """[n] refusal bits of some rows, without keeping anything for what was not asked lately."""
        key = _key(asked)
        known = self._recent.get(key)
        if known is None:
            return table.refusals(key[0], self._cluster.nodes, rows)
        known.refresh(self._cluster)
        bits: c.Ints = known.refused[rows]
        return bits
