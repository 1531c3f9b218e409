"""One tree of queues: its nodes, its columns, and the arithmetic of what is owed.

Source: Kueue (2026-08), ``resource_node.go``: ``updateCohortResourceNode``, ``potentialAvailable`` and
``calculateLendable``; ``getNodeHeight`` of ``hierarchical_preemption.go``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from scheduler.api.queues.definitions import UNLIMITED, Quota, ResourceGroup
from scheduler.kernels import quotas, reclaim
from scheduler.schema import quotas as q
from scheduler.schema.handles import Ints
from scheduler.tenancy.holdings import Holdings

# A flavor and a resource.
Column = tuple[str, str]
Amounts = Mapping[Column, int]


class Node(NamedTuple):
    """A node of a tree as it is defined; ``parent`` is the place of its parent in the list, -1 for the root."""

    name: str
    is_queue: bool
    parent: int
    groups: tuple[ResourceGroup, ...]
    weight: float


class Tree:
    """A tree of queues; it is made anew when anything in it is defined anew.

    Attributes:
        nodes: the root first, each node behind its parent.
        queues: the places of the queues by name.
        columns: the places of the columns; those of a resource stand together, resources by name.
        resources: the resources by number.
        handle: the tree as kernels take it.
        held: who holds quota in it.
        hidden: the places of queues that are not active.
        n_cycles: how often its queues were dealt with.
        generations: how often anybody of each node has got quota, or given it back.
    """

    def __init__(self, nodes: Sequence[Node], more: Iterable[Column] = ()) -> None:
        """``more`` are columns that somebody uses though no quota names them."""
        self.nodes = tuple(nodes)
        self.queues = {one.name: i for i, one in enumerate(self.nodes) if one.is_queue}
        named = {column for one in self.nodes for column, _ in list_quotas(one.groups)}
        ordered = sorted(named | set(more), key=lambda column: (column[1], column[0]))
        self.names = ordered
        self.columns = {column: i for i, column in enumerate(ordered)}
        self.resources = sorted({resource for _, resource in ordered})
        self.handle = self._make_handle()
        self.held = Holdings(len(ordered))
        self.n_cycles = 0
        self.generations = [0] * len(self.nodes)
        self.paths = [self._list_path(i) for i in range(len(self.nodes))]
        self.hidden: frozenset[int] = frozenset()
        self._children = self._list_children()
        self._measure_heights()

    @property
    def name(self) -> str:
        """The name of the root."""
        return self.nodes[0].name

    @property
    def has_cohort(self) -> bool:
        """Whether anybody may lend to anybody."""
        return not self.nodes[0].is_queue

    def _make_handle(self) -> q.QuotaTree:
        shape = len(self.nodes), len(self.columns)
        tree = q.QuotaTree(
            parent=np.array([one.parent for one in self.nodes], np.int64),
            height=np.zeros(shape[0], np.int64),
            weight=np.array([one.weight for one in self.nodes], np.float64),
            named=np.zeros(shape, np.bool_),
            subtree=np.zeros(shape, np.int64),
            local=np.zeros(shape, np.int64),
            borrowing=np.full(shape, UNLIMITED, np.int64),
            most=np.zeros(shape, np.int64),
            usage=np.zeros(shape, np.int64),
            resource=np.array([self.resources.index(one) for _, one in self.names], np.int64),
            lendable=np.zeros((shape[0], len(self.resources)), np.int64),
        )
        lending = np.full(shape, -1, np.int64)
        for i, node in enumerate(self.nodes):
            for column, quota in list_quotas(node.groups):
                k = self.columns[column]
                tree.named[i, k] = True
                tree.subtree[i, k] = quota.nominal
                if quota.borrowing is not None:
                    tree.borrowing[i, k] = quota.borrowing
                if quota.lending is not None:
                    lending[i, k] = quota.lending
        for i in range(shape[0] - 1, -1, -1):
            limited = lending[i] >= 0
            tree.local[i, limited] = np.maximum(0, tree.subtree[i] - lending[i])[limited]
            # What is not limited stays so: nobody lends all of it.
            is_endless = (tree.subtree[i] == UNLIMITED) & (lending[i] != UNLIMITED)
            tree.local[i, limited & is_endless] = UNLIMITED
            parent = self.nodes[i].parent
            if parent >= 0:
                tree.subtree[parent] = _add(
                    tree.subtree[parent], _lend(tree.subtree[i], tree.local[i])
                )
                tree.named[parent] |= tree.named[i]
        for i, node in enumerate(self.nodes):
            if node.parent < 0:
                tree.most[i] = tree.subtree[i]
                continue
            tree.most[i] = _add(tree.local[i], tree.most[node.parent])
            limited = tree.borrowing[i] != UNLIMITED
            bound = _add(tree.subtree[i], tree.borrowing[i])
            tree.most[i, limited] = np.minimum(tree.most[i], bound)[limited]
        above = tree.most[tree.parent[1:]]
        for k, resource in enumerate(tree.resource):
            tree.lendable[1:, resource] = _add(tree.lendable[1:, resource], above[:, k])
        return tree

    def _list_path(self, node: int) -> Ints:
        found = []
        while node >= 0:
            found.append(node)
            node = self.nodes[node].parent
        return np.array(found, np.int64)

    def _list_children(self) -> list[list[int]]:
        children: list[list[int]] = [[] for _ in self.nodes]
        for i, one in enumerate(self.nodes):
            if one.parent >= 0 and i not in self.hidden:
                children[one.parent].append(i)
        return children

    def _measure_heights(self) -> None:
        height = self.handle.height
        height[:] = 0
        for i in range(len(self.nodes) - 1, -1, -1):
            height[i] = max((height[child] + 1 for child in self._children[i]), default=0)

    def list_children(self, node: int) -> Sequence[int]:
        """List the children of a node that are not hidden, by name."""
        return self._children[node]

    def list_queues_below(self, node: int) -> Iterator[int]:
        """List the queues below a node, or the node itself if it is a queue."""
        # Cohorts may be deeper in each other than Python's calls may be.
        left = [node]
        while left:
            one = left.pop()
            if self.nodes[one].is_queue:
                yield one
            else:
                left += reversed(self._children[one])

    def hide_queues(self, hidden: Collection[int]) -> None:
        """Let some queues, by their places, be nobody's neighbours: they lend and use what they have, and admit nobody."""
        if hidden != self.hidden:
            self.hidden = frozenset(hidden)
            self._children = self._list_children()
            self._measure_heights()

    def hold(self, key: str, queue: str, amounts: Amounts) -> None:
        """Let a workload hold quota of a queue of the tree.

        Raises:
            KeyError: the tree has no such column.
        """
        self.generations[self.queues[queue]] += 1
        columns, values = self.make_arrays(amounts)
        self.held.add(self.handle, key, self.queues[queue], columns, values)

    def release(self, key: str) -> None:
        """Let a workload hold nothing any more."""
        row = self.held.find_row(key)
        self.generations[self.held.handle.node[row]] += 1
        self.held.drop(self.handle, key)

    def charge(self, node: int, amounts: Amounts, sign: int) -> None:
        """Let a queue, by its place, use more of some columns, or less if ``sign`` is -1; nobody holds it."""
        columns, values = self.make_arrays(amounts)
        quotas.charge_queue(self.handle, node, columns, values, sign)

    def make_arrays(self, amounts: Amounts) -> tuple[Ints, Ints]:
        """Return the places of columns, and the amounts."""
        columns = np.array([self.columns[one] for one in amounts], np.int64)
        # The amounts of several pod sets together may be more than there can be.
        return columns, np.array([min(UNLIMITED, n) for n in amounts.values()], np.int64)

    def move_rows(self, rows: Sequence[int], sign: int) -> None:
        """Let those who hold quota in some rows give it back for now (-1), or have it again (1); a row of -1 is nobody's."""
        if rows:
            reclaim.move_workloads(self.handle, self.held.handle, np.array(rows, np.int64), sign)

    @contextmanager
    def hide_rows(self, keys: Collection[str]) -> Iterator[None]:
        """Let some workloads hold nothing meanwhile, so that nobody finds them; those that hold nothing are skipped."""
        found = (self.held.find_row(key) for key in sorted(keys))
        rows = [row for row in found if row >= 0]
        nodes = self.held.handle.node[rows].copy()
        self.move_rows(rows, -1)
        self.held.handle.node[rows] = -1
        try:
            yield
        finally:
            self.held.handle.node[rows] = nodes
            self.move_rows(rows, 1)

    def find_available(self, node: int, column: int) -> int:
        """Return how much more a node may use of a column; negative if it uses more than there is."""
        return quotas.find_available(self.handle, node, column)

    def find_share(self, node: int) -> tuple[float, str]:
        """Return 1000 times the dominant share of a node, divided by its weight, and its resource."""
        ratio, said = np.zeros(1), np.zeros((1, q.N_SHARE), np.int64)
        quotas.find_shares(self.handle, np.array([node], np.int64), ratio, said)
        resource = int(said[0, q.SHARE_RESOURCE])
        named = "" if resource < 0 else self.resources[resource]
        if ratio[0] == 0:
            return 0.0, named
        weight = self.nodes[node].weight
        return (float(ratio[0]) / weight if weight else float("inf")), named


def list_quotas(groups: Iterable[ResourceGroup]) -> Iterator[tuple[Column, Quota]]:
    """List the quotas of a node with their columns."""
    for group in groups:
        for flavor in group.flavors:
            for resource, quota in zip(group.resources, flavor.quotas, strict=True):
                yield (flavor.flavor, resource), quota


def _add(a: Ints, b: Ints) -> Ints:
    """Add amounts; what is not limited stays so, and so is what is too large for an int64."""
    with np.errstate(over="ignore"):
        total = a + b
    is_over = (a == UNLIMITED) | (b == UNLIMITED) | ((a > 0) & (b > 0) & (total < 0))
    return np.where(is_over, UNLIMITED, total)


def _lend(subtree: Ints, local: Ints) -> Ints:
    """Return what a node lends to its parent."""
    lent = np.where(subtree == UNLIMITED, UNLIMITED, subtree - local)
    return np.where((subtree == UNLIMITED) & (local == UNLIMITED), 0, lent)
