"""The tallies of one shape: counts of pods in domains of nodes, as dense arrays for kernels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from scheduler.api import kube_plugins
from scheduler.kernels import domains as kernel
from scheduler.plugins import table
from scheduler.plugins.contract import Points, Tally
from scheduler.schema import columns as c
from scheduler.schema import domains as of_domains
from scheduler.schema import empty
from scheduler.shapes.topologies import Topologies, Topology
from scheduler.state.cluster import Cluster
from scheduler.state.counting.counts import Figure

# The arrays of all shapes without tallies: nobody writes to them.
_NOTHING = empty.make_domains()
_USUAL = table.get_weights(kube_plugins.DEFAULT)
# The most bytes that a tally takes for a node: its counts by domain and by node, which domains are there, the domain of
# the node, and whether the node's pods are counted. Then the bytes that a score takes.
_TALLY_BYTES, _SCORE_BYTES = 26, 24


class Counted:
    """The tallies of one shape.

    Attributes:
        arrays: for the kernels. A placing kernel adds the pods that it places itself.
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
        """Estimate the most bytes that the tallies take with ``capacity`` rows of nodes."""
        of_a_node = _TALLY_BYTES * len(self) + _SCORE_BYTES * len(self._tallied.scores)
        return of_a_node * capacity

    def refresh(self, cluster: Cluster, topologies: Topologies) -> bool:
        """Read the current counts and domains into the arrays; return whether anything changed."""
        if not self._tallied.tallies:
            return False
        laid_out = cluster.described.position, cluster.nodes.capacity
        if self._laid_out != laid_out:
            self._laid_out = laid_out
            self._lay_out(cluster, topologies)
        elif self._versions == self.read_versions():
            return False
        self._fill_counts(cluster.nodes.capacity)
        self.catch_up()
        return True

    def catch_up(self) -> None:
        """Note that the arrays hold the current counts: they were just read, or the placing kernel wrote them."""
        self._versions = self.read_versions()

    def find_refusals(self, rows: c.Ints) -> c.Ints:
        """Find the refusal bits [n] of n rows by the counts in the arrays."""
        bits = np.zeros(rows.size, np.int64)
        if self._tallied.tallies:
            kernel.find_refusals(self.arrays, rows, bits)
        return bits

    def describe_rows(self, rows: c.Ints) -> c.Ints:
        """Describe [F, n] n rows by what their pods are counted by: rows with equal figures are alike for the shape.

        That is the domain where nodes share one, else the count of the node. The arrays must be up to date.
        """
        arrays = self.arrays
        if not self._topologies:
            return np.zeros((0, rows.size), np.int64)
        found = [arrays.counted[:, rows].astype(np.int64)]
        for t, topology in enumerate(self._topologies):
            if topology is None:
                found.append(arrays.counts[t, rows][None])
                continue
            domain = topology.domain
            there = domain[domain >= 0]
            if there.size and np.bincount(there).max() > 1:
                found.append(domain[rows][None])
            else:
                counts = arrays.counts[t, np.maximum(domain[rows], 0)]
                found.append(np.where(domain[rows] >= 0, counts, -1)[None])
        return np.concatenate(found).reshape(-1, rows.size)

    def find_opposing_rows(self, row: int) -> c.Ints:
        """Find the rows whose pods may keep the shape off a row: counted pods in a domain of the row.

        Only tallies of anti-affinity and of even spreading count.
        """
        found: set[int] = set()
        tallies = self.arrays.tallies
        for t, (_, tally) in enumerate(self._tallied.tallies):
            if (
                tallies[t, of_domains.TALLY_KIND] not in {of_domains.APART, of_domains.EVEN}
                or tally.count is None
            ):
                continue
            by_row = tally.count.list_by_row(self.arrays.raw.shape[1])
            found.update(np.flatnonzero(self._find_domain(t, row) & (by_row > 0)).tolist())
        return np.array(sorted(found), np.int64)

    def find_refusing_tallies(self, row: int) -> Iterator[tuple[Tally, c.Ints, c.Flags]]:
        """Find the tallies that refuse a row.

        Yields each tally, its ``columns.TALLY_*`` figures, and [N] which rows of the row's domain are counted.
        """
        arrays, bits = self.arrays, np.zeros(1, np.int64)
        for t, (_, tally) in enumerate(self._tallied.tallies):
            tallies, counts, there = arrays.tallies[[t]], arrays.counts[[t]], arrays.there[[t]]
            figures = arrays.figures.copy()
            alone = arrays.replace(tallies=tallies, counts=counts, there=there, figures=figures)
            bits[0] = 0
            kernel.find_refusals(alone, np.array([row], np.int64), bits)
            if bits[0]:
                same, mask = self._find_domain(t, row), tallies[0, of_domains.TALLY_MASK]
                yield tally, tallies[0], same & arrays.counted[mask] if mask >= 0 else same

    def _find_domain(self, t: int, row: int) -> c.Flags:
        """Find which rows [N] share a row's domain of the t-th tally; none if the row is in no domain."""
        topology, rows = self._topologies[t], np.arange(self.arrays.raw.shape[1])
        domain = rows if topology is None else topology.domain
        same: c.Flags = (domain == domain[row]) & (domain >= 0)
        return same

    def read_versions(self) -> tuple[int, ...]:
        """Read the versions of all counts; they change when a counted pod comes or goes."""
        return tuple(one.count.version for _, one in self._tallied.tallies if one.count)

    def list_refusing_counts(self) -> list[Figure | None]:
        """List the count of each tally; None for tallies that refuse no node."""
        return [
            tally.count if tally.kind < of_domains.SPREAD else None
            for _, tally in self._tallied.tallies
        ]

    def list_points(self, row: int) -> list[Points]:
        """List the points of a row by every domain score with a weight; the board must be up to date."""
        found = []
        for i, ((name, score), weight) in enumerate(
            zip(table.DOMAIN_SCORES, self._weights, strict=True)
        ):
            raw: int | None = 0
            points = 0
            if score.how == c.AS_IS and i not in self._tallied.scores:
                # kube-scheduler also skips this score for pods without anything to score.
                continue
            if i in self._tallied.scores:
                g = self._tallied.scores.index(i)
                raw, points = int(self.arrays.raw[g, row]), int(self.arrays.points[g, row])
                if score.how == c.OF_BOTH and raw < 0:
                    # The node lacks a label without which it gets no score.
                    raw = None
            if weight:
                found.append(Points(name, raw, points, weight))
        return found

    def _lay_out(self, cluster: Cluster, topologies: Topologies) -> None:
        """Number the domains, and mark the nodes whose pods are counted."""
        capacity = cluster.nodes.capacity
        keys: dict[tuple[str, bool], int] = {}
        masks: dict[object, int] = {}
        found: list[Topology] = []
        counted: list[c.Flags] = []
        figures = np.zeros((len(self), of_domains.N_TALLY), np.int64)
        self._topologies = []
        for t, (fixed, tally) in enumerate(self._tallied.tallies):
            figures[t] = fixed
            topology = None
            if tally.key:
                by_node = bool(fixed[of_domains.TALLY_BY_NODE])
                topology = topologies.get_topology(tally.key, by_node=by_node)
                figures[t, of_domains.TALLY_KEY] = keys.setdefault((tally.key, by_node), len(keys))
                if len(found) < len(keys):
                    found.append(topology)
                if (
                    fixed[of_domains.TALLY_KIND] == of_domains.SPREAD
                    and not fixed[of_domains.TALLY_STRICT]
                ):
                    figures[t, of_domains.TALLY_EMPTY] = topology.empty
            self._topologies.append(topology)
            if tally.counted is not None:
                figures[t, of_domains.TALLY_MASK] = masks.setdefault(tally.counted, len(masks))
                if len(counted) < len(masks):
                    counted.append(tally.counted.mark_rows(cluster.nodes))
        is_by_row = any(one is None for one in self._topologies)
        most = max([capacity if is_by_row else 1, *(one.n for one in found)])
        scores = [
            (table.DOMAIN_SCORES[i][1].how, self._weights[i], 0) for i in self._tallied.scores
        ]
        self.arrays = of_domains.Domains(
            tallies=figures,
            counts=np.zeros((len(self), most), np.int64),
            there=np.zeros((len(self), most), np.bool_),
            domain=np.array([one.domain for one in found], np.int64).reshape(-1, capacity),
            counted=np.array(counted, np.bool_).reshape(-1, capacity),
            figures=np.array([self._is_wide(), 0, 0], np.int64),
            scores=np.array(scores, np.int64).reshape(-1, c.N_NORM),
            raw=np.zeros((len(scores), capacity), np.int64),
            points=np.zeros((len(scores), capacity), np.int64),
            logs=topologies.get_logs() if scores else np.zeros(0),
            seen=np.zeros(most if scores else 0, np.int64),
        )
        for t, topology in enumerate(self._topologies):
            if topology is not None:
                rows = self._find_counted_rows(t, topology)
                self.arrays.there[t, topology.domain[rows]] = True

    def _is_wide(self) -> bool:
        return any(one.key for _, one in self._tallied.tallies)

    def _find_counted_rows(self, t: int, topology: Topology) -> c.Ints:
        """Find the rows whose pods the t-th tally counts."""
        mask = self.arrays.tallies[t, of_domains.TALLY_MASK]
        counts = topology.domain >= 0
        return np.flatnonzero(counts & self.arrays.counted[mask] if mask >= 0 else counts)

    def _fill_counts(self, capacity: int) -> None:
        arrays = self.arrays
        for t, ((_, tally), topology) in enumerate(
            zip(self._tallied.tallies, self._topologies, strict=True)
        ):
            arrays.counts[t] = 0
            if tally.count is None:
                continue
            by_row = tally.count.list_by_row(capacity)
            mask = arrays.tallies[t, of_domains.TALLY_MASK]
            if mask >= 0:
                by_row = by_row * arrays.counted[mask]
            if topology is None:
                arrays.counts[t, :capacity] = by_row
                if tally.kind == of_domains.POINTS:
                    arrays.raw[arrays.tallies[t, of_domains.TALLY_SCORE]] = by_row
                    arrays.points[arrays.tallies[t, of_domains.TALLY_SCORE]] = by_row
                continue
            domain = topology.domain
            empty_domain = arrays.tallies[t, of_domains.TALLY_EMPTY]
            if empty_domain >= 0:
                domain = np.where(domain >= 0, domain, empty_domain)
            held = np.flatnonzero((by_row != 0) & (domain >= 0))
            np.add.at(arrays.counts[t], domain[held], by_row[held])
