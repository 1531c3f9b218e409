"""How much each pod on a node contributes to a shape's counts in domains, so how much its eviction would gain.

Of pods that are counted by their labels and terms alone, which hardly ever are alike, ``terms`` knows it.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from scheduler.schema import columns as c
from scheduler.schema import domains as of_domains
from scheduler.shapes.counted import Counted
from scheduler.state.cluster import Cluster
from scheduler.state.counting.counts import Figure
from scheduler.state.pods import PodRecord

_NOTHING: c.Ints = np.zeros((0, 0), np.int64)


class Gains:
    """Of pods with storage or ports, one of each kind is removed in a trial: pods that are alike add the same."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def find_gains(self, counted: Counted, rows: c.Ints, pods: c.Ints) -> c.Ints:
        """[T, M] what some pods of the pod table, which are on these rows, add."""
        if not len(counted):
            return _NOTHING
        cluster, counts = self._cluster, counted.list_refusing_counts()
        gains = np.zeros((len(counts), cluster.ledger.pods.columns.node.size), np.int64)
        asked = set(pods.tolist())
        at: dict[int, list[int]] = {}
        known: dict[Hashable, c.Ints] = {}
        for t, one in enumerate(counts):
            at.setdefault(id(one), []).append(t)
        for row in rows.tolist():
            there = cluster.pods_on.get(cluster.nodes.find_name(row), {})
            for pod in list(there.values()):
                if pod.row not in asked:
                    continue
                if pod.volumes is not None or pod.template.ports:
                    gains[:, pod.row] = self._gain(counts, pod, known)
                    continue
                for count, each in cluster.terms.find_counts(pod):
                    for t in at.get(id(count), ()):
                        gains[t, pod.row] = each
        return gains

    def set_apart(self, counted: Counted, pod: PodRecord) -> None:
        """Count a pod on a node no more where something has to be near: it may not be there in the end."""
        if not len(counted):
            return
        arrays = counted.arrays
        gain = self._gain(counted.list_refusing_counts(), pod, {})
        row = self._cluster.nodes.find_row(pod.node)
        for t in np.flatnonzero(
            arrays.tallies[:, of_domains.TALLY_KIND] == of_domains.NEAR
        ).tolist():
            key, mask = (
                arrays.tallies[t, of_domains.TALLY_KEY],
                arrays.tallies[t, of_domains.TALLY_MASK],
            )
            v = int(arrays.domain[key, row]) if key >= 0 else row
            if v >= 0 and (mask < 0 or arrays.counted[mask, row]):
                arrays.counts[t, v] -= gain[t]

    def _gain(
        self, counts: list[Figure | None], pod: PodRecord, known: dict[Hashable, c.Ints]
    ) -> c.Ints:
        labels = frozenset((pod.labels or {}).items())
        key = pod.template, pod.namespace, labels, pod.deleting, pod.volumes
        found = known.get(key)
        if found is None:
            found = known[key] = self._try(counts, pod)
        return found

    def _try(self, counts: list[Figure | None], pod: PodRecord) -> c.Ints:
        cluster = self._cluster
        row, capacity = cluster.nodes.find_row(pod.node), cluster.nodes.capacity

        def there() -> c.Ints:
            return np.array(
                [int(one.list_by_row(capacity)[row]) if one else 0 for one in counts], np.int64
            )

        with cluster.trial(is_quiet=True) as trial:
            before = there()
            if pod.uid in cluster.roster.away:
                return before * 0
            trial.take_away(pod.uid)
            gain: c.Ints = before - there()
        return gain
