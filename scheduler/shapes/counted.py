"""What one shape counts of pods in domains of nodes, as dense arrays for kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from scheduler.api import kube_plugins
from scheduler.kernels import domains as kernel
from scheduler.plugins import table
from scheduler.plugins.contract import Points, Tally
from scheduler.schema import columns as c
from scheduler.schema import empty
from scheduler.shapes.topologies import Topologies, Topology
from scheduler.state.cluster import Cluster
from scheduler.state.counting.counts import Figure

# Of all shapes that count nothing: nobody writes to it.
_NOTHING = empty.domains()
_USUAL = table.weights(kube_plugins.DEFAULT)
# What a tally takes for a node at most: its counts by domain and by node, which domains are there, its domains, and
# the nodes whose pods it counts. And what a score takes.
_TALLY_BYTES, _SCORE_BYTES = 26, 24


class Counted:
    """The tallies of one shape.

    Attributes:
        arrays: for the kernels; a placing kernel keeps them up for what it places itself.
    """

    def __init__(
        self,
        tallied: table.Tallied = table.NOTHING_TALLIED,
        weights: table.Weights = _USUAL,
    ) -> None:
        self._tallied, self._weights = tallied, weights.of_domains
        self._versions: tuple[int, ...] = ()
        self._laid_out = (-1, -1)
        self._topologies: list[Topology | None] = []
        self.arrays = _NOTHING

    def __len__(self) -> int:
        return len(self._tallied.tallies)

    def estimate_bytes(self, capacity: int) -> int:
        """How much memory the tallies take at most, with so many rows of nodes."""
        of_a_node = _TALLY_BYTES * len(self) + _SCORE_BYTES * len(self._tallied.scores)
        return of_a_node * capacity

    def refresh(self, cluster: Cluster, topologies: Topologies) -> bool:
        """Read what was counted since, and what is a domain by now; whether anything changed."""
        if not self._tallied.tallies:
            return False
        laid_out = cluster.described.position, cluster.nodes.capacity
        if self._laid_out != laid_out:
            self._laid_out = laid_out
            self._lay_out(cluster, topologies)
        elif self._versions == self.versions():
            return False
        self._count(cluster.nodes.capacity)
        self.catch_up()
        return True

    def catch_up(self) -> None:
        """What has been counted since is in the arrays already: the placing kernel wrote it."""
        self._versions = self.versions()

    def refusals(self, rows: c.Ints) -> c.Ints:
        """[n] refusal bits of some rows by what is counted now."""
        bits = np.zeros(rows.size, np.int64)
        if self._tallied.tallies:
            kernel.refusals(self.arrays, rows, bits)
        return bits

    def against(self, row: int) -> c.Ints:
        """Rows in whose domains pods are counted that keep the shape off a row; of evenness all of its domain."""
        found: set[int] = set()
        tallies = self.arrays.tallies
        for t, (_, tally) in enumerate(self._tallied.tallies):
            if tallies[t, c.TALLY_KIND] not in {c.APART, c.EVEN} or tally.count is None:
                continue
            by_row = tally.count.by_row(self.arrays.raw.shape[1])
            found.update(np.flatnonzero(self._domain(t, row) & (by_row > 0)).tolist())
        return np.array(sorted(found), np.int64)

    def refusing_at(self, row: int) -> Iterator[tuple[Tally, c.Ints, c.Flags]]:
        """The tallies that refuse a row, with their ``columns.TALLY_*`` and [N] the rows of its domain that count."""
        arrays, bits = self.arrays, np.zeros(1, np.int64)
        for t, (_, tally) in enumerate(self._tallied.tallies):
            tallies, counts, there = arrays.tallies[[t]], arrays.counts[[t]], arrays.there[[t]]
            figures = arrays.figures.copy()
            alone = arrays.replace(tallies=tallies, counts=counts, there=there, figures=figures)
            bits[0] = 0
            kernel.refusals(alone, np.array([row], np.int64), bits)
            if bits[0]:
                same, mask = self._domain(t, row), tallies[0, c.TALLY_MASK]
                yield tally, tallies[0], same & arrays.counted[mask] if mask >= 0 else same

    def _domain(self, t: int, row: int) -> c.Flags:
        """[N] which rows are in one domain of a tally with a row; none where that is in none."""
        topology, rows = self._topologies[t], np.arange(self.arrays.raw.shape[1])
        domain = rows if topology is None else topology.domain
        same: c.Flags = (domain == domain[row]) & (domain >= 0)
        return same

    def versions(self) -> tuple[int, ...]:
        """Changes when a pod that is counted comes or goes."""
        return tuple(one.count.version for _, one in self._tallied.tallies if one.count)

    def refusing(self) -> list[Figure | None]:
        """By tally what it counts; None for those that refuse no node."""
        return [
            tally.count if tally.kind < c.SPREAD else None for _, tally in self._tallied.tallies
        ]

    def points(self, row: int) -> list[Points]:
        """What every score of domains that counts gives a row on an up-to-date board."""
        found = []
        for i, ((name, score), weight) in enumerate(
            zip(table.DOMAIN_SCORES, self._weights, strict=True)
        ):
            raw: int | None = 0
            points = 0
            if score.how == c.AS_IS and i not in self._tallied.scores:
                # As kube-scheduler, which asks it of no pod that it has nothing to do for.
                continue
            if i in self._tallied.scores:
                g = self._tallied.scores.index(i)
                raw, points = int(self.arrays.raw[g, row]), int(self.arrays.points[g, row])
                if score.how == c.OF_BOTH and raw < 0:
                    # It lacks a label that it must have to be compared.
                    raw = None
            if weight:
                found.append(Points(name, raw, points, weight))
        return found

    def _lay_out(self, cluster: Cluster, topologies: Topologies) -> None:
        """Number the domains, and say whose pods are counted."""
        capacity = cluster.nodes.capacity
        keys: dict[tuple[str, bool], int] = {}
        masks: dict[object, int] = {}
        found: list[Topology] = []
        counted: list[c.Flags] = []
        figures = np.zeros((len(self), c.N_TALLY), np.int64)
        self._topologies = []
        for t, (fixed, tally) in enumerate(self._tallied.tallies):
            figures[t] = fixed
            topology = None
            if tally.key:
                by_node = bool(fixed[c.TALLY_BY_NODE])
                topology = topologies.get_topology(tally.key, by_node=by_node)
                figures[t, c.TALLY_KEY] = keys.setdefault((tally.key, by_node), len(keys))
                if len(found) < len(keys):
                    found.append(topology)
                if fixed[c.TALLY_KIND] == c.SPREAD and not fixed[c.TALLY_STRICT]:
                    figures[t, c.TALLY_EMPTY] = topology.empty
            self._topologies.append(topology)
            if tally.counted is not None:
                figures[t, c.TALLY_MASK] = masks.setdefault(tally.counted, len(masks))
                if len(counted) < len(masks):
                    counted.append(tally.counted.flags(cluster.nodes))
        is_by_row = any(one is None for one in self._topologies)
        most = max([capacity if is_by_row else 1, *(one.n for one in found)])
        scores = [
            (table.DOMAIN_SCORES[i][1].how, self._weights[i], 0) for i in self._tallied.scores
        ]
        self.arrays = c.Domains(
            tallies=figures,
            counts=np.zeros((len(self), most), np.int64),
            there=np.zeros((len(self), most), np.bool_),
            domain=np.array([one.domain for one in found], np.int64).reshape(-1, capacity),
            counted=np.array(counted, np.bool_).reshape(-1, capacity),
            figures=np.array([self._is_wide(), 0, 0], np.int64),
            scores=np.array(scores, np.int64).reshape(-1, c.N_NORM),
            raw=np.zeros((len(scores), capacity), np.int64),
            points=np.zeros((len(scores), capacity), np.int64),
            logs=topologies.logs() if scores else np.zeros(0),
            seen=np.zeros(most if scores else 0, np.int64),
        )
        for t, topology in enumerate(self._topologies):
            if topology is not None:
                rows = self._rows(t, topology)
                self.arrays.there[t, topology.domain[rows]] = True

    def _is_wide(self) -> bool:
        return any(one.key for _, one in self._tallied.tallies)

    def _rows(self, t: int, topology: Topology) -> c.Ints:
        """The rows in a domain whose pods a tally counts."""
        mask = self.arrays.tallies[t, c.TALLY_MASK]
        counts = topology.domain >= 0
        return np.flatnonzero(counts & self.arrays.counted[mask] if mask >= 0 else counts)

    def _count(self, capacity: int) -> None:
        arrays = self.arrays
        for t, ((_, tally), topology) in enumerate(
            zip(self._tallied.tallies, self._topologies, strict=True)
        ):
            arrays.counts[t] = 0
            if tally.count is None:
                continue
            by_row = tally.count.by_row(capacity)
            mask = arrays.tallies[t, c.TALLY_MASK]
            if mask >= 0:
                by_row = by_row * arrays.counted[mask]
            if topology is None:
                arrays.counts[t, :capacity] = by_row
                if tally.kind == c.POINTS:
                    arrays.raw[arrays.tallies[t, c.TALLY_SCORE]] = by_row
                    arrays.points[arrays.tallies[t, c.TALLY_SCORE]] = by_row
                continue
            domain = topology.domain
            empty_domain = arrays.tallies[t, c.TALLY_EMPTY]
            if empty_domain >= 0:
                domain = np.where(domain >= 0, domain, empty_domain)
            held = np.flatnonzero((by_row != 0) & (domain >= 0))
            np.add.at(arrays.counts[t], domain[held], by_row[held])
