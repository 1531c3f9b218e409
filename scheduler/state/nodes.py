"""The node table: columns for kernels, and the few words of a node that filters read."""

from __future__ import annotations

import heapq
from collections import Counter
from typing import NamedTuple

import numpy as np

from scheduler.api import names, selectors
from scheduler.devices.table import Devices
from scheduler.errors import Mistake
from scheduler.schema import columns as c
from scheduler.state.counting.ports import PortTable
from scheduler.state.images import Image, ImageTable
from scheduler.state.pools import PoolTable
from scheduler.state.readings import NOTHING_READ, DriverReading
from scheduler.state.resources import Resources
from scheduler.state.structures.interning import Interner

TaintKey = tuple[str, str, str]
ABSENT = -1
# So many words of nodes that are gone may stay: in a small cluster words are never numbered anew.
_SPARE_WORDS = 64
# Room for resources that nodes may offer later, before the matrices grow.
_MORE_RESOURCES = 2


class NodeFacts(NamedTuple):
    """What was last read of a node, parsed; equal facts mean that nothing has changed that Evenkeel reads.

    Attributes:
        devices: what each driver has read on the node, by the numbers of ``Devices.drivers``, as far as the last one that has
            read anything: see ``find_reading``.
        images: (name, bytes) of every container image there, sorted.
        features: the features that its kubelet declares, sorted.
        problem: what is malformed on the node, None when nothing is; such a node is left out.
        foreign: another scheduler allocates the node's devices.
        by_class: the resources that a class serves on the node, and not its kubelet: how many devices of the class it has.
            No node says so itself: it follows from classes and ResourceSlices.
    """

    name: str
    uid: str
    labels: dict[str, str]
    taints: tuple[TaintKey, ...]
    unschedulable: bool
    allocatable: tuple[tuple[str, int], ...]
    devices: tuple[DriverReading, ...]
    images: tuple[Image, ...]
    features: tuple[str, ...]
    problem: Mistake | None
    foreign: bool = False
    by_class: tuple[tuple[str, int], ...] = ()

    @property
    def offered(self) -> tuple[tuple[str, int], ...]:
        """What the node offers of each resource, by itself or through devices of classes."""
        return self.allocatable + tuple(one for one in self.by_class if one[1])

    def find_reading(self, driver: int) -> DriverReading:
        """Find what a driver has read on the node, by its number."""
        return self.devices[driver] if driver < len(self.devices) else NOTHING_READ


class NodeChange(NamedTuple):
    """The result of describing a node.

    Attributes:
        static: a static filter may now answer differently.
        offered: resources that no node offered before.
        withdrawn: resources that no node offers any more.
    """

    static: bool
    offered: tuple[str, ...]
    withdrawn: tuple[str, ...]


class NodeTable:
    """Name ↔ row, growth, interned words, and the columns of ``columns.Nodes``.

    Attributes:
        was_signed: [drivers, N] whether the driver's plugin has ever written on the node, as long as it is the same
            node.
        n_signed: [drivers] number of such nodes.
        silent: [N] whether the device plugin of the node does not answer.
        foreign: [N] whether another scheduler allocates the node's devices.
        devices, pools: the drivers and families of devices, and the pools of the nodes.
        ranks_are_stale: nodes came or went since nodes were ranked.
        label_keys_version: rises when nodes have a label that none had before, or lose the last one of its name.
    """

    def __init__(self, devices: Devices, pools: PoolTable) -> None:
        """Know no nodes; ``devices`` are the drivers and families."""
        always = names.CPU, names.MEMORY, names.EPHEMERAL, names.PODS, "", names.GPU
        self.resources = Resources(*always)
        self.devices, self.pools = devices, pools
        n_drivers = len(devices.drivers)
        self._n_always = len(self.resources.values)
        self.taint_sets: Interner[tuple[TaintKey, ...]] = Interner(())
        self.feature_sets: Interner[tuple[str, ...]] = Interner(())
        self.label_values: Interner[str] = Interner()
        self.rows: dict[str, int] = {}
        self.facts: list[NodeFacts | None] = []
        self.ports = PortTable()
        self.images = ImageTable()
        self.capacity = 0
        self._free: list[int] = []
        self._label_columns: dict[str, c.Ints] = {}
        # How many nodes have each label: a label that pods ask for gets a column only if some node has the label.
        self._labelled: Counter[str] = Counter()
        self.label_keys_version = 0
        self._no_label: c.Ints = np.zeros(0, np.int64)
        self._integers: c.Ints = np.zeros(0, np.int64)
        self._is_integer: c.Flags = np.zeros(0, np.bool_)
        self.ranks_are_stale = False
        self.unschedulable: c.Flags = np.zeros(0, np.bool_)
        self.taint_set: c.Ints = np.zeros(0, np.int64)
        self.feature_set: c.Ints = np.zeros(0, np.int64)
        self.was_signed: c.Flags = np.zeros((n_drivers, 0), np.bool_)
        self.n_signed = [0] * n_drivers
        self.silent: c.Flags = np.zeros(0, np.bool_)
        self.foreign: c.Flags = np.zeros(0, np.bool_)
        self.columns = _make_columns(0, self._n_always + _MORE_RESOURCES, pools.columns)
        self._grow_rows(c.BLOCK)

    def find_row(self, name: str) -> int:
        """Return a node's row; -1 when there is no such node."""
        return self.rows.get(name, -1)

    def find_name(self, row: int) -> str:
        """Return a node's name."""
        facts = self.facts[row]
        return facts.name if facts else ""

    def find_pools(self, family: int) -> c.Ints:
        """Find [N] the pool of a family whose devices pods on each node get; ``NO_POOL`` for none. Do not write to it."""
        found = self.pools.find_pools(family, self.capacity)
        for pool, reach in zip(self.columns.shared.tolist(), self.columns.reach, strict=True):
            if self.columns.pools.family[pool] == family:
                found = np.where((found == c.NO_POOL) & reach, pool, found)
        return found

    def find_managed(self, family: int) -> c.Flags:
        """Find [N] where the devices of a family are allocated one by one."""
        found: c.Flags = self.columns.pools.managed[self.find_pools(family)]
        return found

    def find_any_managed(self) -> c.Flags:
        """Find [N] where the devices of any family are allocated one by one."""
        found = np.zeros(self.capacity, np.bool_)
        pools = self.columns.pools
        found[pools.node[pools.managed & (pools.node >= 0)]] = True
        return found | self.columns.reach.any(axis=0)

    def share_pools(self, pools: list[int], reach: c.Flags) -> None:
        """Note which pools belong to no single node, and which nodes [S, N] reach each of them."""
        self.columns.shared, self.columns.reach = np.array(pools, np.int64), reach

    def find_row_asked(self, resource: str) -> int:
        """Return the row of a resource that a pod asks; ``UNKNOWN`` when no node offers it.

        Otherwise everybody who may create pods could make rows without end.
        """
        row = self.resources.find(resource)
        return row if row >= 0 else c.UNKNOWN

    def add(self, name: str) -> int:
        """Take a row for a new node, with no pod on it yet, and return the row."""
        if not self._free:
            self._grow_rows(self.capacity * 2)
        row = heapq.heappop(self._free)
        self.rows[name] = row
        self.columns.valid[row] = True
        self.ranks_are_stale = True
        return row

    def remove(self, name: str) -> tuple[str, ...]:
        """Give back the row of a node without charged pods; return the resources that no node offers any more."""
        row = self.rows.pop(name)
        gone = self.facts[row]
        self._count_labels(gone, None)
        self.images.change_images(row, gone.images if gone else (), ())
        self.facts[row] = None
        nodes = self.columns
        flags = nodes.valid, nodes.has_gpu, self.unschedulable, self.silent, self.foreign
        for column in flags:
            column[row] = False
        figures = nodes.rank, nodes.first_pool, nodes.n_pools, self.taint_set, self.feature_set
        for numbers in figures:
            numbers[row] = 0
        nodes.allocatable[:, row] = 0
        nodes.by_class[:, row] = False
        for driver in range(len(self.n_signed)):
            self._sign(driver, row, is_signed=False)
        for labels in self._label_columns.values():
            labels[row] = ABSENT
        heapq.heappush(self._free, row)
        self.ranks_are_stale = True
        self._give_words_back()
        return self._list_withdrawn(gone)

    def describe(self, row: int, facts: NodeFacts) -> NodeChange:
        """Write what was read of a node. Withdrawn resources keep their rows until the caller gives the rows back."""
        old = self.facts[row]
        there = old.images if old else ()
        facts = facts._replace(images=self.images.change_images(row, there, facts.images))
        self.facts[row] = facts
        self._count_labels(old, facts)
        self.devices.note_offered(resource for resource, _ in facts.offered)
        offered = tuple(
            resource
            for resource, _ in facts.allocatable + facts.by_class
            if resource and self.resources.find(resource) < 0
        )
        for resource in offered:
            self.resources.take(resource)
        self._grow_resources(len(self.resources.values))
        nodes = self.columns
        nodes.allocatable[:, row] = 0
        nodes.by_class[:, row] = False
        for is_by_class, amounts in ((False, facts.allocatable), (True, facts.by_class)):
            for resource, n in amounts:
                if resource:
                    nodes.allocatable[self.resources.find(resource), row] = n
                    nodes.by_class[self.resources.find(resource), row] = is_by_class
        nodes.valid[row] = not facts.problem
        self.unschedulable[row] = facts.unschedulable
        self.foreign[row] = facts.foreign
        same = old is not None and old.uid == facts.uid
        for driver in range(len(self.n_signed)):
            told = facts.find_reading(driver)
            was_signed = same and bool(self.was_signed[driver, row])
            self._sign(driver, row, is_signed=told.is_signed or was_signed)
        self.taint_set[row] = self.taint_sets.number(facts.taints)
        self.feature_set[row] = self.feature_sets.number(facts.features)
        for key, column in self._label_columns.items():
            column[row] = self._label(facts, key)
        self._give_words_back()
        is_static = old is None or _read_words(old) != _read_words(facts)
        return NodeChange(is_static, offered, self._list_withdrawn(old))

    def _sign(self, driver: int, row: int, *, is_signed: bool) -> None:
        self.n_signed[driver] += is_signed - int(self.was_signed[driver, row])
        self.was_signed[driver, row] = is_signed

    def keep(self, total: str) -> None:
        """Keep a row for the total of a resource for good, even if no node offers the resource."""
        self.resources.take(total)
        self._grow_resources(len(self.resources.values))

    def has_label(self, key: str) -> bool:
        """Whether any node has a label of this name."""
        return self._labelled[key] > 0

    def get_label_column(self, key: str) -> c.Ints:
        """Return [N] the interned value of a label on every node, -1 where absent; the column is kept up from now on."""
        if not self.has_label(key):
            return self._no_label
        column = self._label_columns.get(key)
        if column is None:
            column = np.full(self.capacity, ABSENT, np.int64)
            for row in self.rows.values():
                facts = self.facts[row]
                if facts is not None:
                    column[row] = self._label(facts, key)
            self._label_columns[key] = column
        return column

    def read_label_integers(self) -> tuple[c.Ints, c.Flags]:
        """Read [values] each interned label value as an integer, and [values] whether it is one.

        Each value is read once, however many pods compare with it.
        """
        values = self.label_values.values
        if len(self._integers) < len(values):
            fresh = [selectors.parse_integer(value) for value in values[len(self._integers) :]]
            figures = np.array([n or 0 for n in fresh], np.int64)
            self._integers = np.concatenate((self._integers, figures))
            self._is_integer = np.concatenate((self._is_integer, [n is not None for n in fresh]))
        return self._integers, self._is_integer

    def refresh_ranks(self) -> None:
        """Rank the nodes by name, if any came or went since the last time."""
        if self.ranks_are_stale:
            for rank, name in enumerate(sorted(self.rows)):
                self.columns.rank[self.rows[name]] = rank
            self.ranks_are_stale = False

    def _list_withdrawn(self, old: NodeFacts | None) -> tuple[str, ...]:
        """List the resources that a node offered before and no node offers now."""
        return tuple(
            resource
            for resource, _ in (old.allocatable + old.by_class if old else ())
            if (row := self.resources.find(resource)) >= self._n_always
            and not self.columns.allocatable[row].any()
            and not self.columns.by_class[row].any()
        )

    def _count_labels(self, old: NodeFacts | None, new: NodeFacts | None) -> None:
        """Count the nodes of each label again; drop the columns whose label no node has any more."""
        before, after = old.labels.keys() if old else set(), new.labels.keys() if new else set()
        self.label_keys_version += any(not self._labelled[key] for key in after - before)
        self._labelled.update(after - before)
        for key in before - after:
            self._labelled[key] -= 1
            if not self._labelled[key]:
                self.label_keys_version += 1
                del self._labelled[key]
                self._label_columns.pop(key, None)

    def _give_words_back(self) -> None:
        """Number label values, taint sets and feature sets anew when nodes use less than half of them.

        No other part keeps their numbers, so columns of labels are just made again when they are asked for.
        """
        n_used = sum(self._labelled[key] for key in self._label_columns)
        if len(self.label_values) > 2 * n_used + _SPARE_WORDS:
            self.label_values = Interner()
            self._label_columns.clear()
            self._integers, self._is_integer = np.zeros(0, np.int64), np.zeros(0, np.bool_)
        if len(self.taint_sets) > 2 * len(self.rows) + _SPARE_WORDS:
            self.taint_sets = Interner(())
            for row in self.rows.values():
                facts = self.facts[row]
                self.taint_set[row] = self.taint_sets.number(facts.taints if facts else ())
        if len(self.feature_sets) > 2 * len(self.rows) + _SPARE_WORDS:
            self.feature_sets = Interner(())
            for row in self.rows.values():
                facts = self.facts[row]
                self.feature_set[row] = self.feature_sets.number(facts.features if facts else ())

    def _label(self, facts: NodeFacts, key: str) -> int:
        value = facts.labels.get(key)
        return ABSENT if value is None else self.label_values.number(value)

    def _grow_resources(self, n: int) -> None:
        """Grow the matrices for so many resources, to at least twice as many as before."""
        if n > self.columns.allocatable.shape[0]:
            self._copy_into(_make_columns(self.capacity, 2 * n, self.columns.pools))

    def _copy_into(self, fresh: c.Nodes) -> None:
        old, n = self.columns, self.capacity
        for before, after in zip(old.list_values(), fresh.list_values(), strict=True):
            if before is old.pools or before is old.shared:
                continue
            if before is old.reach:
                fresh.reach = np.pad(before, ((0, 0), (0, fresh.valid.size - n)))
                continue
            if before.ndim == 2:
                after[: before.shape[0], :n] = before
            else:
                after[..., :n] = before
        fresh.shared = old.shared
        self.columns.adopt(fresh)

    def _grow_rows(self, capacity: int) -> None:
        n = self.capacity
        self._copy_into(_make_columns(capacity, len(self.columns.allocatable), self.columns.pools))
        self.unschedulable = np.pad(self.unschedulable, (0, capacity - n))
        self.taint_set = np.pad(self.taint_set, (0, capacity - n))
        self.feature_set = np.pad(self.feature_set, (0, capacity - n))
        self.was_signed = np.pad(self.was_signed, ((0, 0), (0, capacity - n)))
        self.silent = np.pad(self.silent, (0, capacity - n))
        self.foreign = np.pad(self.foreign, (0, capacity - n))
        for key, column in self._label_columns.items():
            self._label_columns[key] = np.pad(column, (0, capacity - n), constant_values=ABSENT)
        self._no_label = np.full(capacity, ABSENT, np.int64)
        self.facts += [None] * (capacity - n)
        self._free = list(range(n, capacity))
        self.capacity = capacity


def _read_words(facts: NodeFacts) -> tuple[object, ...]:
    """Return what static filters and scores read of a node."""
    return facts.labels, facts.taints, facts.unschedulable, facts.images, facts.features


def _make_columns(capacity: int, n_resources: int, pools: c.Pools) -> c.Nodes:
    totals = np.zeros((c.REQUESTED_AT + n_resources, capacity), np.int64)
    return c.Nodes(
        valid=np.zeros(capacity, np.bool_),
        rank=np.zeros(capacity, np.int64),
        allocatable=np.zeros((n_resources, capacity), np.int64),
        by_class=np.zeros((n_resources, capacity), np.bool_),
        totals=totals,
        requested=totals[c.REQUESTED_AT :],
        nonzero=totals[c.NONZERO_AT : c.REQUESTED_AT],
        has_gpu=np.zeros(capacity, np.bool_),
        first_pool=np.full(capacity, c.NO_POOL, np.int64),
        n_pools=np.zeros(capacity, np.int64),
        shared=np.zeros(0, np.int64),
        reach=np.zeros((0, capacity), np.bool_),
        pools=pools,
    )
