"""The pods of groups that are on nodes: who is in which team, and who only goes with the whole group."""

from __future__ import annotations

from typing import Protocol

from scheduler.api.groups.definitions import Disruption, GroupKey
from scheduler.state.groups.forming import (
    Lore,
    Running,
    list_groups_within,
    list_running,
)
from scheduler.state.pods import PodRecord


class Pods(Protocol):
    """The pods of the cluster, by uid.

    Attributes:
        pods: the pods as they are.
        away: the former records of those that a trial has taken from their nodes.
    """

    pods: dict[str, PodRecord]
    away: dict[str, PodRecord]


class Kept:
    """Which pods of groups are on nodes. A change only marks its group; ``refresh`` looks at each marked group once.

    Attributes:
        uids: the pods that do not go by themselves.
        version: rises whenever other pods are kept.
    """

    def __init__(self, known: Pods) -> None:
        self._known = known
        self._stale: dict[GroupKey, None] = {}
        # The root of each group that has pods on nodes.
        self._root_of: dict[GroupKey, GroupKey] = {}
        # By root: the minimum of each team, and the uids of its pods on nodes, those to keep first.
        self._teams: dict[GroupKey, list[tuple[int, list[str]]]] = {}
        self._of_root: dict[GroupKey, frozenset[str]] = {}
        self.uids: set[str] = set()
        self.version = 0

    def mark(self, key: GroupKey) -> None:
        """Note that other pods of a group may be on nodes, or go together."""
        self._stale[key] = None

    def refresh(self, lore: Lore) -> None:
        """Look at the groups that were marked."""
        if not self._stale:
            return
        stale, self._stale = self._stale, {}
        roots: dict[GroupKey, None] = {}
        keys = dict.fromkeys(one for key in stale for one in list_groups_within(key, lore))
        for key in keys:
            root = lore.find_root(key)
            before = self._root_of.get(key, root)
            if before != root:
                # Others may have left that root as well.
                left = [one for one, was in self._root_of.items() if was == before]
                self._root_of.update((one, lore.find_root(one)) for one in left)
                roots.update(dict.fromkeys((before, *(self._root_of[one] for one in left))))
            self._root_of[key] = root
            roots[root] = None
        for root in roots:
            self._look_at(root, lore)
        for key in keys:
            if self._root_of[key] not in self._teams:
                del self._root_of[key]

    def list_running(self, root: GroupKey, lore: Lore) -> Running:
        """List the minimum and the pods on nodes of each team of a root group, the pods to keep first."""
        if self._known.away:
            # A trial has taken pods from their nodes.
            return list_running(root, lore)
        pods = self._known.pods
        return [(least, [pods[uid] for uid in uids]) for least, uids in self._teams.get(root, ())]

    def _look_at(self, root: GroupKey, lore: Lore) -> None:
        """Find the teams of a root group, and who of them does not go alone."""
        # A group that has become a part of another one is nobody's root any more.
        found = list_running(root, lore) if lore.find_root(root) == root else []
        if found:
            self._teams[root] = [(least, [pod.uid for pod in there]) for least, there in found]
        else:
            self._teams.pop(root, None)
        self._put(root, frozenset(self._list_kept(root, found, lore)))
        if self._known.away:
            # When the trial ends they are there again.
            self.mark(root)

    def _list_kept(self, root: GroupKey, found: Running, lore: Lore) -> list[str]:
        """List the pods of a root group that go with the whole group or not at all."""
        definition = lore.find_definition(root)
        if definition is None or definition.disruption == Disruption.SINGLE:
            return []
        is_whole = definition.disruption == Disruption.WHOLE
        kept = [
            pod.uid for minimum, there in found for pod in (there if is_whole else there[:minimum])
        ]
        # One pod is whole by itself.
        return kept if len(kept) > 1 else []

    def _put(self, root: GroupKey, new: frozenset[str]) -> None:
        """Take over which pods a root group keeps now."""
        old = self._of_root.get(root, frozenset())
        if old == new:
            return
        self.version += 1
        if new:
            self._of_root[root] = new
        else:
            del self._of_root[root]
        self.uids -= old - new
        self.uids |= new
