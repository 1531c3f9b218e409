"""The results of static rules on every node, computed once for all pods from which these rules read the same.

Shapes that differ only in amounts share one result. When the object of a node changes, only that node is computed again.
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
# The most results that are kept besides those of live shapes, and their bytes.
_MOST, _BYTES_MAX = 512, 48 << 20
# The bytes that are kept for a node: refusal bits, and raw scores that differ between nodes.
NODE_BYTES = 24


class Static:
    """Refusal bits and raw scores of every node row, for one set of needs.

    Attributes:
        refused: [N] refusal bits.
        told: the scores that differ between nodes, by their place in ``table.SCORES``.
        scores: [S, N] the raw scores of these.
        generation: rises when a score of all nodes changes or an array is replaced; not when single rows change.
        templates: the templates of the pods that use it.
        n_bytes: the bytes that the needs take.
    """

    def __init__(self, needs: table.Needs, wants: table.Needs) -> None:
        self._needs, self._wants = needs, wants
        self._described = -1
        # By score, the token of what it has read from all nodes together.
        self._read: dict[int, Hashable] = {}
        self.refused: c.Ints = np.zeros(0, np.int64)
        self.told: tuple[int, ...] = ()
        self.scores: c.Ints = np.zeros((0, 0), np.int64)
        self.generation = 0
        self.templates: WeakSet[PodTemplate] = WeakSet()
        self.n_bytes = 0

    def refresh(self, cluster: Cluster) -> None:
        """Evaluate the nodes again whose objects have changed since the last call; all nodes the first time."""
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
        self.refused[rows] = table.find_refusals(self._needs, nodes, rows)
        found = {
            i: self._score_rows(i, want, nodes, rows)
            for i, want in enumerate(self._wants)
            if want is not None
        }
        for at, i in enumerate(self.told):
            of_rows, raw = found[i]
            if of_rows is not rows and _differs_elsewhere(self.scores[at], raw, rows):
                # Boards score moved rows again, and all rows when the generation rises.
                self.generation += 1
            self.scores[at, of_rows] = raw
        self._keep_telling_scores(found)

    def _score_rows(
        self, i: int, want: Hashable, nodes: NodeTable, rows: c.Ints
    ) -> tuple[c.Ints, c.Ints]:
        """Compute the i-th raw score of the rows, or of all rows if what the score reads from all nodes has changed."""
        _, score = table.SCORES[i]
        if score.reads is not None:
            read = score.reads(nodes)
            if read != self._read.get(i):
                self._read[i] = read
                rows = np.arange(nodes.capacity) if rows.size < nodes.capacity else rows
        return rows, score.raw(want, nodes, rows)

    @property
    def is_relative(self) -> bool:
        """Whether a score in ``told`` depends on the highest raw score of all nodes on which the pod fits."""
        return any(table.SCORES[i][1].how != c.AS_IS for i in self.told)

    def make_norms(self, weights: table.Weights) -> c.Ints:
        """Make ``Board.norms`` [S, N_NORM] for a board on which no node is scored yet."""
        norms = np.zeros((len(self.told), c.N_NORM), np.int64)
        for at, i in enumerate(self.told):
            norms[at] = table.SCORES[i][1].how, weights.of_nodes[i], -1
        return norms

    def sum_idle_points(self, weights: table.Weights) -> int:
        """Sum up the weighted points that every node gets from the scores that do not differ between nodes."""
        return sum(
            weight * score.idle
            for i, ((_, score), weight) in enumerate(
                zip(table.SCORES, weights.of_nodes, strict=True)
            )
            if i not in self.told
        )

    def list_points(self, board: c.Board, row: int, weights: table.Weights) -> list[Points]:
        """List the points of a row by every static score with a weight, on an up-to-date board of a shape."""
        found = []
        for i, ((name, score), weight) in enumerate(
            zip(table.SCORES, weights.of_nodes, strict=True)
        ):
            raw, points = 0, score.idle
            if i in self.told:
                at = self.told.index(i)
                raw, points = int(board.scores[at, row]), kernel.normalize_score(board, at, row)
            if weight:
                found.append(Points(name, raw, points, weight))
        return found

    def _keep_telling_scores(self, found: dict[int, tuple[c.Ints, c.Ints]]) -> None:
        """Keep only the scores that differ between nodes: only these cost time when nodes are compared."""
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


def _make_key(asked: Asked) -> tuple[table.Needs, table.Needs]:
    plugins = asked.placement.kube
    return table.read_needs(asked.template, plugins), table.read_wants(asked.template, plugins)


def _differs_elsewhere(before: c.Ints, after: c.Ints, rows: c.Ints) -> bool:
    """Whether two columns differ on any other row than these."""
    differs = before != after
    differs[rows] = False
    return bool(differs.any())


class Statics:
    """The results of static rules for the needs of recent pods."""

    def __init__(self, cluster: Cluster, sizes: TemplateSizes) -> None:
        self._cluster, self._sizes = cluster, sizes
        self._recent: Recent[_Key, Static] = Recent(_MOST, _BYTES_MAX, self._estimate_size)

    def get_static(self, asked: Asked) -> Static:
        """Return the result for such pods; the caller refreshes it before reading it."""
        key = _make_key(asked)
        found = self._recent.get(key)
        if found is None:
            found = Static(*key)
            found.n_bytes = self._sizes.estimate(asked.template)
            self._recent.put(key, found)
        found.templates.add(asked.template)
        return found

    def forget(self, is_there: IsThere) -> None:
        """Forget the results that no pod uses any more."""
        self._recent.keep(lambda _, one: any(map(is_there, one.templates)))

    def _estimate_size(self, _: _Key, one: Static) -> int:
        return one.n_bytes + NODE_BYTES * self._cluster.nodes.capacity

    def find_refusals(self, asked: Asked, rows: c.Ints) -> c.Ints:
        """Find the refusal bits [n] of n rows; a result that is not kept yet is not kept afterwards either."""
        key = _make_key(asked)
        known = self._recent.get(key)
        if known is None:
            return table.find_refusals(key[0], self._cluster.nodes, rows)
        known.refresh(self._cluster)
        bits: c.Ints = known.refused[rows]
        return bits
