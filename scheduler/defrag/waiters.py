"""The pods and groups that wait without room, and which of them have room now."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from scheduler.cycle.schedule import Cycle
from scheduler.schema import columns as c
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity, Entity
from scheduler.state.pods import Life, PodRecord

# The most kinds of pods, and the most groups, that are tried after a move; those first that come first.
_KINDS_MAX, _GROUPS_MAX = 32, 8


class Limits(NamedTuple):
    """What keeps who waits from room that is there.

    Attributes:
        let_try: whether its queue and the quotas of its namespace may have room for a pod or group.
        find_nodes: finds [N] the nodes whose cards are small enough for the quotas of a pod.
        let_stay: whether the quotas have room for a pod that has just been placed.
    """

    let_try: Callable[[AnyEntity], bool]
    find_nodes: Callable[[PodRecord], c.Flags]
    let_stay: Callable[[PodRecord], bool]


class Waiters:
    """Those that were tried in vain, in their order. Pods that no rule distinguishes are one kind."""

    def __init__(
        self, cluster: Cluster, cycle: Cycle, waiting: Iterable[AnyEntity], limits: Limits
    ) -> None:
        """``waiting``: who was tried and found no room, the first one first."""
        self._cluster, self._cycle, self._limits = cluster, cycle, limits
        self.entities = list(waiting)
        kinds: dict[Hashable, list[str]] = {}
        self.groups: list[Entity] = []
        for one in self.entities:
            if isinstance(one, Entity):
                self.groups.append(one)
            else:
                kinds.setdefault(cycle.find_kind(one), []).append(one.uid)
        self.kinds = list(kinds.values())[:_KINDS_MAX]
        del self.groups[_GROUPS_MAX:]

    def count(self) -> int:
        """Count the pods that wait without room."""
        return sum(
            self._cluster.pods[pod.uid].life == Life.PENDING
            for one in self.entities
            for pod in one.members
        )

    def place_pod(self, pod: PodRecord) -> bool:
        """Place a pod without a node if there is room for it, also in its queue and its quotas; whether it has a node."""
        if not self._limits.let_try(pod):
            return False
        with self._cluster.trial() as trial:
            among = self._limits.find_nodes(pod)
            is_placed = bool(self._cycle.place_among(pod, among, explain=False).binds)
            # How much it has depends on its cards.
            is_placed = is_placed and self._limits.let_stay(self._cluster.pods[pod.uid])
            if is_placed:
                trial.commit()
        return is_placed

    def place_pods(self, row: int, priority: int, *, is_before: bool) -> Iterator[PodRecord]:
        """Place the pods that have room now that something has left a node; yield each.

        ``is_before``: those that come before a new pod of a priority, which are all of no lower one; else the others.
        """
        at = np.array([row], np.int64)
        for uids in self.kinds:
            for uid in uids:
                pod = self._cluster.pods[uid]
                if pod.life != Life.PENDING:
                    continue
                if (pod.priority >= priority) != is_before:
                    break
                if self._cycle.find_barriers(pod, at) is not None:
                    break
                if not self.place_pod(pod):
                    break
                yield self._cluster.pods[uid]

    def place_groups(
        self, priority: int, *, is_before: bool
    ) -> Iterator[tuple[Entity, list[PodRecord]]]:
        """Place the groups that have room now; yield each with its pods that have a node.

        ``is_before``: as for ``place_pods``.
        """
        for group in self.groups:
            if (group.priority >= priority) != is_before or any(
                self._cluster.pods[pod.uid].life != Life.PENDING for pod in group.members
            ):
                continue
            if not self._limits.let_try(group) or not self._cycle.could_place_group(group):
                continue
            with self._cluster.trial() as trial:
                plan = self._cycle.place_group(group)
                pods = [self._cluster.pods[bind.uid] for bind in plan.binds]
                if not pods:
                    continue
                trial.commit()
            yield group, pods
