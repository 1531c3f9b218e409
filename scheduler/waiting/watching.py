"""Finds what changed in the cluster since the last look, by comparing its columns with copies of the earlier ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from scheduler.plugins.contract import ANYTHING, VOLUMES_IN_USE, Change
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.counting.classes import make_key
from scheduler.state.nodes import NodeFacts
from scheduler.waiting.hooks import News

if TYPE_CHECKING:
    from scheduler.state.pods import PodRecord

# Stands for the free amount of a resource that was not known before: less than any pod asks.
_UNKNOWN = -(2**62)
# When more pods than this came or left, the news do not list them but say that anything may have changed.
_PODS_MAX = 4096


class Watch:
    """Compares the cluster with its state at the last look.

    Attributes:
        follows_pods: the news are to list which pods came and left, and not only what became free.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.follows_pods = False
        # By identity and node row: the pods that came (1) or left (-1). A pod that did both, as in a trial, is dropped.
        self._pods: dict[tuple[int, int], tuple[PodRecord, int]] = {}
        self._moved = self._described = self._promised = self._stored = self._freed = -1
        self._generation = -1
        self._facts: list[NodeFacts | None] = []
        self._free: c.Ints = np.zeros((0, 0), np.int64)
        self._used: c.Ints = np.zeros((3, 0), np.int64)
        cluster.roster.followers.append(self)

    def follow_pod(self, pod: PodRecord, node_row: int, sign: int) -> None:
        """Note that a pod came to a node (``sign`` 1) or left it (-1)."""
        if self.follows_pods and len(self._pods) <= _PODS_MAX:
            one = id(pod), node_row
            net = sign + (self._pods[one][1] if one in self._pods else 0)
            if net:
                self._pods[one] = pod, net
            else:
                del self._pods[one]

    def ignores(self, pods: Sequence[PodRecord]) -> bool:
        """Whether the news will not list pods."""
        del pods
        return not self.follows_pods

    @property
    def has_news(self) -> bool:
        """Whether anything changed since the last look."""
        cluster = self._cluster
        seen = self._moved, self._stored, self._freed
        return seen != (cluster.moved.position, cluster.storage.n_helpful, cluster.claims.n_helpful)

    def catch_up(self) -> None:
        """Begin anew from the present state: what changed until now will not be in the news."""
        cluster = self._cluster
        nodes = cluster.nodes
        self._moved, self._described = cluster.moved.position, cluster.described.position
        self._promised, self._stored = cluster.nominations.version, cluster.storage.n_helpful
        self._freed = cluster.claims.n_helpful
        self._generation = nodes.resources.generation
        self._facts = list(nodes.facts)
        self._free = nodes.columns.allocatable - nodes.columns.requested
        self._used = cluster.cards.columns.used.copy()
        self._pods.clear()

    def find_news(self) -> News:
        """Return what changed since the last look, which this look then is."""
        cluster, news = self._cluster, News()
        rows = cluster.moved.list_since(self._moved) if self._moved >= 0 else None
        described = cluster.described.list_since(self._described)
        promised = cluster.nominations.list_since(self._promised)
        if rows is None or described is None or promised is None or len(self._pods) > _PODS_MAX:
            self.catch_up()
            return News(is_unknown=True)
        self._moved, self._described = cluster.moved.position, cluster.described.position
        self._promised = cluster.nominations.version
        if self._stored != cluster.storage.n_helpful:
            self._stored = cluster.storage.n_helpful
            news.triggers[Change.STORAGE, None] = set()
        if self._freed != cluster.claims.n_helpful:
            self._freed = cluster.claims.n_helpful
            news.triggers[Change.CLAIMS, None] = set()
        if rows.size:
            self._grow()
            self._compare_words(described.tolist(), news)
            self._compare_amounts(rows, news)
            self._compare_cards(rows, news)
            news.moved.update(rows.tolist())
            news.triggers[ANYTHING] |= news.moved
        # On nodes with promised room the columns do not show how much of the free room other pods may use. So a node
        # on which room was or is promised counts as added when it changes.
        there = {
            cluster.nodes.find_row(name) for name in (*promised, *cluster.nominations.list_nodes())
        }
        news.added |= news.moved & there
        for (_, row), (pod, sign) in self._pods.items():
            self._read_pod(pod, row, sign, news)
        self._pods.clear()
        return news

    def _grow(self) -> None:
        nodes, cards = self._cluster.nodes, self._cluster.cards.columns
        self._facts += [None] * (nodes.capacity - len(self._facts))
        n_resources, n_rows = nodes.columns.allocatable.shape
        more = n_resources - self._free.shape[0], n_rows - self._free.shape[1]
        if any(more):
            self._free = np.pad(self._free, ((0, more[0]), (0, more[1])))
        if self._used.shape[1] < cards.used.shape[1]:
            self._used = np.pad(
                self._used, ((0, 0), (0, cards.used.shape[1] - self._used.shape[1]))
            )
        if self._generation != nodes.resources.generation:
            # A row of the columns may belong to another resource by now.
            self._generation = nodes.resources.generation
            self._free[c.UNKNOWN :] = _UNKNOWN

    def _compare_words(self, rows: list[int], news: News) -> None:
        for row in rows:
            old, new = self._facts[row], self._cluster.nodes.facts[row]
            self._facts[row] = new
            before, after = old.labels if old else {}, new.labels if new else {}
            for key in before.keys() | after.keys():
                if before.get(key) != after.get(key):
                    news.triggers[Change.NODE_LABELS, None].add(row)
                    news.triggers[Change.NODE_LABELS, key].add(row)
                    if key in after:
                        news.triggers[Change.NODE_LABELS, (key, after[key])].add(row)
            if new is None:
                continue
            if old is None or old.uid != new.uid or not self._read_node(row, old, new, news):
                news.added.add(row)

    @staticmethod
    def _read_node(row: int, old: NodeFacts, new: NodeFacts, news: News) -> bool:
        """Note how the facts of a node differ; return whether nothing else about the node may have changed."""
        if old is new or old.devices != new.devices or old.problem != new.problem:
            return False
        if old.by_class != new.by_class:
            # Claims may say now what amounts said before, and the other way round.
            return False
        if (old.taints, old.unschedulable) != (new.taints, new.unschedulable):
            news.triggers[Change.NODE_TAINTS, None].add(row)
        for feature in set(new.features).difference(old.features):
            news.triggers[Change.NODE_FEATURES, feature].add(row)
        # When the words of a node with cards change, its cards may have been judged anew.
        has_cards = any(told.is_told or told.is_signed for told in new.devices)
        return not has_cards or (old.labels, old.taints, old.unschedulable, old.features) != (
            new.labels,
            new.taints,
            new.unschedulable,
            new.features,
        )

    def _compare_amounts(self, rows: c.Ints, news: News) -> None:
        nodes = self._cluster.nodes
        free = nodes.columns.allocatable[:, rows] - nodes.columns.requested[:, rows]
        before = self._free[:, rows]
        self._free[:, rows] = free
        for r, k in zip(*np.nonzero(free > before), strict=True):
            name = nodes.resources.values[r] if r < len(nodes.resources.values) else ""
            if name:
                news.rises[name].append((int(rows[k]), int(before[r, k]), int(free[r, k])))

    def _compare_cards(self, rows: c.Ints, news: News) -> None:
        pools, used = self._cluster.nodes.columns.pools, self._cluster.cards.columns.used
        registers = self._cluster.registers
        for row in rows.tolist():
            for pool in registers.list_pools(row):
                first, n = int(pools.start[pool]), int(pools.count[pool])
                cards = slice(first, first + n)
                if n and (used[:, cards] < self._used[:, cards]).any():
                    resource = registers.devices.families[int(pools.family[pool])]
                    news.triggers[Change.NODE_DEVICES, resource].add(row)
                self._used[:, cards] = used[:, cards]

    @staticmethod
    def _read_pod(pod: PodRecord, row: int, sign: int, news: News) -> None:
        if pod.volumes is not None:
            news.triggers[VOLUMES_IN_USE].add(row)
        if sign > 0:
            news.came[make_key(pod)] = pod
            return
        news.left[make_key(pod)] = pod
        for port in pod.template.ports:
            news.triggers[Change.POD_LEFT, port[:2]].add(row)
        if pod.volumes is not None:
            for disk in pod.volumes.disks:
                news.triggers[Change.POD_LEFT, disk[:2]].add(row)
            for claim in pod.volumes.claims:
                news.triggers[Change.POD_LEFT, (pod.namespace, claim.name)].add(row)
