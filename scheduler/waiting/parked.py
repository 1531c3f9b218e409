"""Pods that wait for a change, grouped by kind: one check answers for all pods of a kind."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from scheduler.api.door.decisions import Barriers
from scheduler.api.selectors import Labels
from scheduler.plugins.contract import Hint
from scheduler.schema.columns import Ints
from scheduler.state.pods import PodRecord
from scheduler.waiting.entries import Entry
from scheduler.waiting.hooks import Hooks
from scheduler.waiting.needs import Needs
from scheduler.waiting.orders import Order


class Parked:
    """The parked pods. Pods of one kind fit the same nodes, and have one template and one priority.

    Attributes:
        hooks: which changes wake which kinds.
        barriers: what keeps the pods of each kind off nodes, as far as the cycle has looked.
        versions: for each kind the version of the cluster at which all its pods were checked to be of this kind.
    """

    def __init__(self, labels_of: Callable[[str], Labels], order: Order) -> None:
        """``labels_of`` finds the labels of a namespace; ``order`` says which entity comes first."""
        self._order = order
        self.hooks = Hooks(labels_of)
        self.barriers: dict[Hashable, Barriers] = {}
        self.versions: dict[Hashable, Hashable] = {}
        self._kinds: dict[Hashable, dict[str, Entry]] = {}
        self._priorities: dict[Hashable, int] = {}
        self._needs = Needs()
        # The kinds whose pods may preempt, by their priority.
        self._takers: dict[int, dict[Hashable, None]] = {}
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def add(self, entry: Entry, kind: Hashable) -> None:
        """Add a pod of a kind."""
        entry.kind = kind
        if kind not in self._kinds:
            self._kinds[kind] = {}
            self._needs.add(kind, entry.pod.template)
            self._priorities[kind] = entry.pod.priority
            if entry.pod.preempts:
                self._takers.setdefault(entry.pod.priority, {})[kind] = None
        self._kinds[kind][entry.uid] = entry
        self._n += 1

    def keep_off(self, kind: Hashable, barriers: Barriers, hints: Sequence[Hint]) -> None:
        """Note more barriers that keep a kind off nodes, with hints about the changes that could end this."""
        self.barriers[kind] = self.barriers.get(kind, barriers).merge(barriers)
        for hint in hints:
            for resource, _ in hint.amounts:
                self._needs.wait_for(kind, resource)
        self.hooks.hang(kind, hints)

    def drop(self, entry: Entry) -> None:
        """Remove a pod; nothing when it is not parked."""
        kind = entry.kind
        if kind is None:
            return
        alike = self._kinds[kind]
        del alike[entry.uid]
        if not alike:
            del self._kinds[kind]
            self._needs.drop(kind)
            self.hooks.take_off(kind)
            self.barriers.pop(kind, None)
            self.versions.pop(kind, None)
            self._drop_taker(kind)
        entry.kind = None
        self._n -= 1

    def _drop_taker(self, kind: Hashable) -> None:
        priority = self._priorities.pop(kind)
        there = self._takers.get(priority, {})
        there.pop(kind, None)
        if not there:
            self._takers.pop(priority, None)

    def list_takers(self, may_take: Callable[[int], bool]) -> list[Hashable]:
        """List the kinds that may preempt, in order, of those priorities for which ``may_take`` says yes."""
        kinds = [kind for one in filter(may_take, self._takers) for kind in self._takers[one]]
        return sorted(kinds, key=self.find_place)

    def __contains__(self, kind: Hashable) -> bool:
        return kind in self._kinds

    @property
    def n_kinds(self) -> int:
        """The number of kinds of parked pods."""
        return len(self._kinds)

    def find_place(self, kind: Hashable) -> tuple[Any, ...]:
        """Return the place of a kind in the order: the place of its first entity."""
        return self._order.find_place(next(iter(self._kinds[kind].values())).entity)

    def list_kinds(self) -> list[Hashable]:
        """List the kinds of parked pods."""
        return list(self._kinds)

    def list_kinds_within(self, most: Ints) -> list[Hashable]:
        """List all kinds except those that wait for more than ``most`` of one of ``needs.RESOURCES``."""
        return self._needs.list_within(most)

    def list_entries(self, kind: Hashable) -> list[Entry]:
        """List the entries of a kind; none when no pod of the kind is parked any more."""
        return list(self._kinds.get(kind, {}).values())

    def list_pods(self, kind: Hashable) -> list[PodRecord]:
        """List the pods of a kind; none when no pod of the kind is parked any more."""
        return [entry.pod for entry in self._kinds.get(kind, {}).values()]

    def find_pod(
        self, kind: Hashable, is_meant: Callable[[PodRecord], bool] = lambda _: True
    ) -> PodRecord | None:
        """Return a pod of a kind for which ``is_meant`` says yes; None when no such pod is parked any more."""
        pods = (entry.pod for entry in self._kinds.get(kind, {}).values())
        return next(filter(is_meant, pods), None)
