"""The pods of groups that are on nodes: who is in which team, and who only goes with the whole group."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from scheduler.api.groups.definitions import GroupKey
from scheduler.schema import columns as c
from scheduler.state.groups.forming import Lore, list_groups_within
from scheduler.state.groups.running import (
    Running,
    Split,
    list_kept,
    list_running,
    split_pods,
)
from scheduler.state.pauses import Pauses
from scheduler.state.pods import PodRecord
from scheduler.state.structures.changes import Changes


class Pods(Protocol):
    """The pods of the cluster, by uid.

    Attributes:
        pods: the pods as they are.
        away: the former records of those that a trial has taken from their nodes.
        pauses: where a long decision may be left for a while.
    """

    pods: dict[str, PodRecord]
    away: dict[str, PodRecord]
    pauses: Pauses


class Kept:
    """Which pods of groups are on nodes. A change only marks its group; ``refresh`` looks at each marked group once.

    Attributes:
        changed: the rows in the pod table whose pods are kept now, or are kept no more.
    """

    def __init__(self, known: Pods) -> None:
        self._known = known
        self._stale: dict[GroupKey, None] = {}
        # By root: the groups within it, and by group: the roots around it. Groups that disagree may have several.
        self._within: dict[GroupKey, frozenset[GroupKey]] = {}
        self._around: dict[GroupKey, set[GroupKey]] = {}
        # By root: the minimum of each team, and the uids of its pods on nodes, those to keep first.
        self._teams: dict[GroupKey, list[tuple[int, list[str]]]] = {}
        self._of_root: dict[GroupKey, frozenset[str]] = {}
        # By root that does not go pod by pod: the uids of its core and of its extra pods.
        self._splits: dict[GroupKey, tuple[list[str], list[str]]] = {}
        # By root: the rows in the pod table of the pods that it keeps, and [rows] how many roots keep the pod of a row.
        self._rows: dict[GroupKey, list[int]] = {}
        self._n_roots: c.Ints = np.zeros(0, np.int64)
        self.changed = Changes()

    def mark(self, key: GroupKey) -> None:
        """Note that other pods of a group may be on nodes, or go together."""
        self._stale[key] = None

    def forget_unknown(self, key: GroupKey) -> None:
        """Forget that a group was marked that is there no more, unless it is known; nobody may ask for a long time."""
        if key not in self._around and key not in self._within:
            self._stale.pop(key, None)

    def refresh(self, lore: Lore) -> None:
        """Look at the groups that were marked."""
        if not self._stale:
            return
        stale, self._stale = self._stale, {}
        waiting = list(stale)
        seen: set[GroupKey] = set()
        while waiting:
            key = waiting.pop()
            for root in (lore.find_root(key), *self._around.get(key, ())):
                if root not in seen:
                    self._known.pauses.take()
                    seen.add(root)
                    waiting += self._look_at(root, lore)
        if self._known.away:
            # When the trial ends they are there again.
            self._stale.update(stale | dict.fromkeys(seen))

    def list_running(self, root: GroupKey, lore: Lore) -> Running:
        """List the minimum and the pods on nodes of each team of a root group, the pods to keep first."""
        if self._known.away:
            # A trial has taken pods from their nodes.
            return list_running(list_groups_within(root, lore), lore)
        pods = self._known.pods
        return [(least, [pods[uid] for uid in uids]) for least, uids in self._teams.get(root, ())]

    def find_split(self, root: GroupKey, lore: Lore) -> Split | None:
        """Find which pods of a root group go together; None if each of its pods goes by itself, or none is on a node."""
        if self._known.away:
            return split_pods(lore.find_definition(root), self.list_running(root, lore))
        known = self._splits.get(root)
        if known is None:
            return None
        core, extras = known
        pods = self._known.pods
        # A list takes less time than a generator, and there may be thousands of groups.
        return Split(tuple([pods[uid] for uid in core]), tuple([pods[uid] for uid in extras]))

    def list_kept(self, root: GroupKey) -> frozenset[str]:
        """List the pods of a root group that do not go by themselves."""
        return self._of_root.get(root, frozenset())

    def find_rows(self, size: int) -> c.Flags:
        """Find [size] which rows of the pod table, which has so many, have pods that do not go by themselves."""
        found = np.zeros(size, np.bool_)
        known = self._n_roots[:size]
        found[: known.size] = known > 0
        return found

    def _look_at(self, root: GroupKey, lore: Lore) -> frozenset[GroupKey]:
        """Find the teams of a root group, and who of them does not go alone.

        Returns the other groups that are or were within it: some may have another root now.
        """
        within = list(list_groups_within(root, lore)) if lore.is_root(root) else []
        found = list_running(within, lore)
        if found:
            self._teams[root] = [(least, [pod.uid for pod in there]) for least, there in found]
        else:
            self._teams.pop(root, None)
        split = split_pods(lore.find_definition(root), found) if found else None
        if split is None:
            self._splits.pop(root, None)
        else:
            core, extras = split
            self._splits[root] = [pod.uid for pod in core], [pod.uid for pod in extras]
        self._put(root, list_kept(split))
        is_known = bool(found) or any(lore.list_members(one) for one in within)
        new = frozenset(within if is_known else ())
        old = self._within.pop(root, frozenset())
        if new:
            self._within[root] = new
        for key in new - old:
            self._around.setdefault(key, set()).add(root)
        for key in old - new:
            self._around[key].discard(root)
            if not self._around[key]:
                del self._around[key]
        return (old | new) - {root}

    def _put(self, root: GroupKey, new: frozenset[str]) -> None:
        """Take over which pods a root group keeps now."""
        self._of_root.pop(root, None)
        if new:
            self._of_root[root] = new
        # A pod that comes to a node again has another row.
        rows = sorted(row for uid in new if (row := self._find_row(uid)) >= 0)
        before = self._rows.pop(root, [])
        if rows:
            self._rows[root] = rows
        if rows == before:
            return
        most = max(rows, default=0) + 1
        if most > self._n_roots.size:
            self._n_roots = np.pad(self._n_roots, (0, max(most, 2 * most - self._n_roots.size)))
        self.changed.add_many(sorted({*before} ^ {*rows}))
        # The pods of a group have a row each.
        self._n_roots[before] -= 1
        self._n_roots[rows] += 1

    def _find_row(self, uid: str) -> int:
        """Find the row of a pod, also while a trial has taken the pod from its node; -1 for a pod without a node."""
        pod = self._known.away.get(uid) or self._known.pods[uid]
        return pod.row
