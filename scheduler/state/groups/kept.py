"""The pods of groups that are on nodes: who is in which team, and who only goes with the whole group."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from scheduler.api.groups.definitions import Disruption, GroupKey
from scheduler.state.groups.forming import (
    Lore,
    Running,
    list_all_members,
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
        uids: the pods that do not go by themselves, each with the number of root groups that keep it.
        version: rises whenever other pods are kept.
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
        self.uids: Counter[str] = Counter()
        self.version = 0

    def mark(self, key: GroupKey) -> None:
        """Note that other pods of a group may be on nodes, or go together."""
        self._stale[key] = None

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
                    seen.add(root)
                    waiting += self._look_at(root, lore)
        if self._known.away:
            # When the trial ends they are there again.
            self._stale.update(stale | dict.fromkeys(seen))

    def list_running(self, root: GroupKey, lore: Lore) -> Running:
        """List the minimum and the pods on nodes of each team of a root group, the pods to keep first."""
        if self._known.away:
            # A trial has taken pods from their nodes.
            return list_running(root, lore)
        pods = self._known.pods
        return [(least, [pods[uid] for uid in uids]) for least, uids in self._teams.get(root, ())]

    def list_kept(self, root: GroupKey) -> frozenset[str]:
        """List the pods of a root group that do not go by themselves."""
        return self._of_root.get(root, frozenset())

    def _look_at(self, root: GroupKey, lore: Lore) -> frozenset[GroupKey]:
        """Find the teams of a root group, and who of them does not go alone.

        Returns the other groups that are or were within it: some may have another root now.
        """
        # A group that has become a part of another one is nobody's root any more.
        is_root = lore.find_root(root) == root
        found = list_running(root, lore) if is_root else []
        if found:
            self._teams[root] = [(least, [pod.uid for pod in there]) for least, there in found]
        else:
            self._teams.pop(root, None)
        self._put(root, frozenset(list_kept(root, found, lore)))
        is_known = bool(found) or (is_root and bool(list_all_members(root, lore)))
        new = frozenset(list_groups_within(root, lore) if is_known else ())
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
        old = self._of_root.pop(root, frozenset())
        if new:
            self._of_root[root] = new
        if old == new:
            return
        self.version += 1
        self.uids.update(new - old)
        for uid in old - new:
            self.uids[uid] -= 1
            if not self.uids[uid]:
                del self.uids[uid]


def list_kept(root: GroupKey, found: Running, lore: Lore) -> list[str]:
    """List the pods of a root group that go with the whole group or not at all; ``found`` are those on nodes."""
    definition = lore.find_definition(root)
    if definition is None or definition.disruption == Disruption.SINGLE:
        return []
    is_whole = definition.disruption == Disruption.WHOLE
    kept = [pod.uid for minimum, there in found for pod in (there if is_whole else there[:minimum])]
    # One pod is whole by itself.
    return kept if len(kept) > 1 else []
