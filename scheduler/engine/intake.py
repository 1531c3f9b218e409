"""Pods with very large specs wait here until they are compiled; namespaces take turns.

A pod within the bounds can still cost milliseconds to compile, and a tenant can make hundreds of them a
second, no two alike. What waits here is not known to the cluster yet; nothing is charged for it, because a
pod with a node never waits.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container
from typing import NamedTuple

from scheduler.api import limits, wire


class Waiting(NamedTuple):
    """A pod as it was last seen; ``listed``: it came with the first list, nobody saw it arrive."""

    pod: wire.Pod
    listed: bool


class Intake:
    """The last seen state of each pod that waits, by namespace in turns."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, OrderedDict[str, Waiting]] = OrderedDict()
        self._namespaces: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._namespaces)

    def was_listed(self, uid: str) -> bool:
        """Whether the pod waits here and came with the first list."""
        namespace = self._namespaces.get(uid)
        return namespace is not None and self._turns[namespace][uid].listed

    def takes(self, pod: wire.Pod, *, listed: bool = False) -> bool:
        """Whether a pod that was just seen waits here now, in the place of what was seen of it before."""
        uid, namespace = pod.metadata.uid, pod.metadata.namespace
        if pod.spec.node_name or limits.words(pod) <= limits.LIGHT_WORDS:
            self.drop(uid)
            return False
        self._turns.setdefault(namespace, OrderedDict())[uid] = Waiting(pod, listed)
        self._namespaces[uid] = namespace
        return True

    def drop(self, uid: str) -> None:
        """The pod is gone, or is no longer one that waits."""
        namespace = self._namespaces.pop(uid, None)
        if namespace is None:
            return
        waiting = self._turns[namespace]
        del waiting[uid]
        if not waiting:
            del self._turns[namespace]

    def missing(self, present: Container[str], scheduler: str) -> list[str]:
        """Uids of pods of one scheduler's name that wait here and are not among those present."""
        return [
            uid
            for uid, namespace in self._namespaces.items()
            if uid not in present
            and self._turns[namespace][uid].pod.spec.scheduler_name == scheduler
        ]

    def next(self) -> Waiting:
        """The oldest pod of the namespace whose turn it is. There must be one."""
        namespace, waiting = next(iter(self._turns.items()))
        uid, oldest = next(iter(waiting.items()))
        self.drop(uid)
        if namespace in self._turns:
            self._turns.move_to_end(namespace)
        return oldest
