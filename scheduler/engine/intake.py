"""Pods with very large specs wait here until they are compiled; namespaces take turns.

A pod within the limits can still cost milliseconds to compile, and a tenant can make hundreds of such pods a second,
no two alike. The cluster does not know the pods that wait here yet. This loses no charge, because a pod that has a
node never waits here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container
from typing import NamedTuple

from scheduler.api import limits, wire


class Waiting(NamedTuple):
    """A pod as it was last seen; ``listed``: it came with the first list, so its arrival was not seen."""

    pod: wire.Pod
    listed: bool


class Intake:
    """The last seen state of each pod that waits to be compiled, by namespace; namespaces take turns."""

    def __init__(self) -> None:
        self._turns: OrderedDict[str, OrderedDict[str, Waiting]] = OrderedDict()
        self._namespaces: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._namespaces)

    def was_listed(self, uid: str) -> bool:
        """Whether the pod waits here and came with the first list."""
        namespace = self._namespaces.get(uid)
        return namespace is not None and self._turns[namespace][uid].listed

    def take_in(self, pod: wire.Pod, *, listed: bool = False) -> bool:
        """Keep a pod that was just seen if it is expensive, in place of its earlier state; return whether it is kept."""
        uid, namespace = pod.metadata.uid, pod.metadata.namespace
        if pod.spec.node_name or limits.count_words(pod) <= limits.LIGHT_WORDS:
            self.drop(uid)
            return False
        self._turns.setdefault(namespace, OrderedDict())[uid] = Waiting(pod, listed)
        self._namespaces[uid] = namespace
        return True

    def drop(self, uid: str) -> None:
        """Remove a pod that is gone or no longer has to wait here; nothing when it does not wait here."""
        namespace = self._namespaces.pop(uid, None)
        if namespace is None:
            return
        waiting = self._turns[namespace]
        del waiting[uid]
        if not waiting:
            del self._turns[namespace]

    def list_missing(self, present: Container[str], scheduler: str) -> list[str]:
        """List the uids of pods with one scheduler's name that wait here and are not among ``present``."""
        return [
            uid
            for uid, namespace in self._namespaces.items()
            if uid not in present
            and self._turns[namespace][uid].pod.spec.scheduler_name == scheduler
        ]

    def pop_next(self) -> Waiting:
        """Take out the oldest pod of the namespace whose turn it is. There must be a pod."""
        namespace, waiting = next(iter(self._turns.items()))
        uid, oldest = next(iter(waiting.items()))
        self.drop(uid)
        if namespace in self._turns:
            self._turns.move_to_end(namespace)
        return oldest
