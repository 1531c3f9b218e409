"""Volumes in use on nodes: how many of each driver, and which pods have the claims and disks that cannot be shared.

A volume counts once on a node, however many pods there have it and whether or not it is attached already. The
figure of a driver on a node is kept as ``NO_LIMIT`` and what is used, less the limit: where it would exceed
``NO_LIMIT`` there is no room. So one count says all, and no node without a limit is ever full.

Source: kube-scheduler's nodevolumelimits/csi.go, volumerestrictions/volume_restrictions.go.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakValueDictionary

from scheduler.api.in_tree import Handle
from scheduler.api.pods.volumes import Disk
from scheduler.state.counting.counts import Count
from scheduler.state.nodes import NodeTable
from scheduler.state.volumes.objects import ClaimKey, NodeDrivers

if TYPE_CHECKING:
    from scheduler.state.pods import PodRecord

NO_LIMIT = 1 << 40
_Rows = Counter[int]
K = TypeVar("K", bound=Hashable)


class DiskConflicts(Count):
    """How many disks of pods on each row exclude the wanted disks."""

    __slots__ = ("_wanted", "of_one")

    def __init__(self, wanted: tuple[Disk, ...]) -> None:
        super().__init__(0)
        # By kind and name: other disks never exclude each other.
        self._wanted: defaultdict[tuple[str, str], list[Disk]] = defaultdict(list)
        for one in wanted:
            self._wanted[one[:2]].append(one)
        #: How many of the wanted disks exclude one more pod that wants the same disks.
        self.of_one = sum(map(self.count_conflicting, wanted))

    def count_conflicting(self, held: Disk) -> int:
        """Return how many of the wanted disks cannot be beside one that is held."""
        return sum(held.has_conflict(one) for one in self._wanted.get(held[:2], ()))


class Uses:
    """The volumes that pods on nodes use, and the volumes that are attached.

    Attributes:
        drivers: what CSINode says of a node's drivers, by the name of the node.
        n_moves: rises when a volume comes to a row or leaves it.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        # Claims and disks of pods on nodes, by row.
        self._claims: dict[ClaimKey, _Rows] = {}
        self._disks: dict[Disk, _Rows] = {}
        self._wanted: WeakValueDictionary[tuple[Disk, ...], DiskConflicts] = WeakValueDictionary()
        # The handle of each claim, and how many claims have the same handle.
        self._handles: dict[ClaimKey, Handle] = {}
        self._n_claims: Counter[Handle] = Counter()
        # The rows on which pods have a volume, and the rows to which it is attached.
        self._held: dict[Handle, _Rows] = {}
        self._attached: dict[Handle, _Rows] = {}
        self._full: defaultdict[str, Count] = defaultdict(lambda: Count(0))
        # How many nodes limit a driver.
        self._limited: Counter[str] = Counter()
        self.n_moves = 0
        # The volumes attached to each node, and its limits, by the name of the node: known before the node is and after.
        self._attached_to: defaultdict[str, Counter[Handle]] = defaultdict(Counter)
        self.drivers: dict[str, NodeDrivers] = {}

    # Pods.

    def follow_pod(self, pod: PodRecord, row: int, sign: int) -> None:
        """Note that a pod came to a node (1), or left it (-1)."""
        if pod.volumes is None:
            return
        for claim in pod.volumes.claims:
            key = pod.namespace, claim.name
            _add(self._claims, key, row, sign)
            if (handle := self._handles.get(key)) is not None:
                self._hold(handle, row, sign)
        for handle in pod.volumes.handles:
            self._hold(handle, row, sign)
        for disk in pod.volumes.disks:
            _add(self._disks, disk, row, sign)
            for conflicts in list(self._wanted.values()):
                if n := conflicts.count_conflicting(disk):
                    conflicts.change(row, sign * n)

    def find_rows(self, claim: ClaimKey) -> _Rows:
        """Return how many pods have a claim, by the row of their node."""
        return self._claims.get(claim, _NOWHERE)

    def count_conflicts(self, wanted: tuple[Disk, ...]) -> DiskConflicts:
        """Count what excludes these disks on each row; the count is kept up as long as it is in use."""
        found = self._wanted.get(wanted)
        if found is None:
            found = self._wanted[wanted] = DiskConflicts(wanted)
            for disk, rows in self._disks.items():
                if each := found.count_conflicting(disk):
                    for row, n in rows.items():
                        found.change(row, n * each)
        return found

    # Volumes.

    def note_handle(self, claim: ClaimKey, handle: Handle | None) -> None:
        """Note the handle by which a claim's driver knows its volume from now on; None: no driver knows it."""
        old = self._handles.pop(claim, None)
        if handle is not None:
            self._handles[claim] = handle
        if old == handle:
            return
        for one, sign in ((old, -1), (handle, 1)):
            if one is not None:
                self._n_claims[one] += sign
                if not self._n_claims[one]:
                    del self._n_claims[one]
                for row, n in self.find_rows(claim).items():
                    self._hold(one, row, sign * n)

    def find_handle(self, claim: ClaimKey) -> Handle | None:
        """Return the handle by which a claim's driver knows its volume."""
        return self._handles.get(claim)

    def is_attached(self, claim: ClaimKey) -> bool:
        """Whether the volume of a claim is attached to a node."""
        return self._handles.get(claim) in self._attached

    def is_shared(self, handle: Handle) -> bool:
        """Whether several claims are one volume."""
        return self._n_claims[handle] > 1

    def list_rows_holding(self, handle: Handle) -> Iterable[int]:
        """List the rows on which pods have a volume."""
        return self._held.get(handle, _NOWHERE)

    def is_limited(self, driver: str) -> bool:
        """Whether any node takes only so many volumes of a driver."""
        return self._limited[driver] > 0

    def count_full(self, driver: str) -> Count:
        """Return by row ``NO_LIMIT`` plus the used volumes of a driver minus its limit."""
        return self._full[driver]

    def _hold(self, handle: Handle, row: int, by: int) -> None:
        self._change(self._held, handle, row, by)

    def _change(self, of: dict[Handle, _Rows], handle: Handle, row: int, by: int) -> None:
        """Change how often a volume is held on a row; the volume counts once."""
        self.n_moves += 1
        before = self._is_there(handle, row)
        _add(of, handle, row, by)
        after = self._is_there(handle, row)
        if before != after:
            self._full[handle.driver].change(row, after - before)

    def _is_there(self, handle: Handle, row: int) -> bool:
        held, attached = self._held.get(handle), self._attached.get(handle)
        return bool((held and held[row]) or (attached and attached[row]))

    def list_counts(self) -> dict[str, object]:
        """Return all counts by name: equal for equal clusters."""
        full = {
            driver: {
                row: n
                for row, n in enumerate(count.list_by_row(self._nodes.capacity).tolist())
                if n
            }
            for driver, count in self._full.items()
        }
        return {
            "claims": self._claims,
            "disks": self._disks,
            "held": self._held,
            "attached": self._attached,
            "full": {driver: rows for driver, rows in full.items() if rows},
        }

    # Nodes.

    def attach(self, node: str, handle: Handle, sign: int) -> None:
        """Note that a volume is attached to a node (1), or no longer attached (-1)."""
        there = self._attached_to[node]
        there[handle] += sign
        if not there[handle]:
            del there[handle]
            if not there:
                del self._attached_to[node]
        row = self._nodes.find_row(node)
        if row >= 0:
            self._change(self._attached, handle, row, sign)

    def take_in(self, node: str, drivers: NodeDrivers | None) -> None:
        """Take over what is said of a node's drivers; None: nothing is said any more."""
        row, old = self._nodes.find_row(node), self.drivers.pop(node, None)
        if drivers is not None:
            self.drivers[node] = drivers
        for one, sign in ((old, -1), (drivers, 1)):
            for driver, limit in one.limits.items() if one else ():
                self._limited[driver] += sign * (limit is not None)
        if row >= 0:
            self._limit(row, old, -1)
            self._limit(row, drivers, 1)

    def add_node(self, node: str, row: int) -> None:
        """Note that a node was given a row, with no pod on it yet."""
        self._place(node, row, 1)

    def drop_node(self, node: str, row: int) -> None:
        """Note that a node gives its row back, with no pod on it any more."""
        self._place(node, row, -1)

    def _place(self, node: str, row: int, sign: int) -> None:
        for handle, n in self._attached_to.get(node, {}).items():
            self._change(self._attached, handle, row, sign * n)
        self._limit(row, self.drivers.get(node), sign)

    def _limit(self, row: int, drivers: NodeDrivers | None, sign: int) -> None:
        for driver, limit in drivers.limits.items() if drivers else ():
            if limit is not None:
                self._full[driver].change(row, sign * (NO_LIMIT - limit))


_NOWHERE: _Rows = Counter()


def _add(of: dict[K, _Rows], key: K, row: int, by: int) -> None:
    rows = of.setdefault(key, Counter())
    rows[row] += by
    if not rows[row]:
        del rows[row]
        if not rows:
            del of[key]
