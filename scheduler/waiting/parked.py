"""Pods that wait until something changes, grouped by kind: one check is enough for a kind."""

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
    """A kind is equal for pods that fit the same nodes; they all have one template and one priority.

    Attributes:
        hooks: what happened wakes which kinds.
        barriers: what keeps the pods of each kind off nodes, as far as anybody has looked.
        versions: up to which version of the cluster a kind's pods are all of it.
    """

    def __init__(self, labels_of: Callable[[str], Labels], order: Order) -> None:
        """``labels_of`` tells the labels of a namespace; ``order`` who comes first."""
        self._order = order
        self.hooks = Hooks(labels_of)
        self.barriers: dict[Hashable, Barriers] = {}
        self.versions: dict[Hashable, Hashable] = {}
        self._kinds: dict[Hashable, dict[str, Entry]] = {}
        self._priorities: dict[Hashable, int] = {}
        self._needs = Needs()
        # Kinds that may take the place of others, by their priority.
        self._takers: dict[int, dict[Hashable, None]] = {}
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def add(self, entry: Entry, kind: Hashable) -> None:
        """A pod begins to wait."""
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
        """These keep a kind off nodes, beside what is known; what ends that, ``hints`` say."""
        self.barriers[kind] = self.barriers.get(kind, barriers).also(barriers)
        for hint in hints:
            for resource, _ in hint.amounts:
                self._needs.wait_for(kind, resource)
        self.hooks.hang(kind, hints)

    def drop(self, entry: Entry) -> None:
        """A pod waits no longer; nothing when it did not."""
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
        """The kinds that may take the place of others, of the priorities that are asked for, in order."""
        kinds = [kind for one in filter(may_take, self._takers) for kind in self._takers[one]]
        return sorted(kinds, key=self.find_place)

    def __contains__(self, kind: Hashable) -> bool:
        return kind in self._kinds

    @property
    def n_kinds(self) -> int:
        """How many kinds of pods wait."""
        return len(self._kinds)

    def find_place(self, kind: Hashable) -> tuple[Any, ...]:
        """Where a kind stands among the kinds that wait: there where its first entity does."""
        return self._order.place(next(iter(self._kinds[kind].values())).entity)

    def kinds(self) -> list[Hashable]:
        """The kinds of pods that wait."""
        return list(self._kinds)

    def kinds_within(self, most: Ints) -> list[Hashable]:
        """All kinds but those that wait for more than ``most`` of one of ``needs.RESOURCES``."""
        return self._needs.within(most)

    def entries(self, kind: Hashable) -> list[Entry]:
        """Those of a kind; none when all have moved on."""
        return list(self._kinds.get(kind, {}).values())

    def alike(self, kind: Hashable) -> list[PodRecord]:
        """The pods of a kind; none when all have moved on."""
        return [entry.pod for entry in self._kinds.get(kind, {}).values()]

    def one_of(
        self, kind: Hashable, is_meant: Callable[[PodRecord], bool] = lambda _: True
    ) -> PodRecord | None:
        """A pod of a kind, of those that are meant; None when all such have moved on."""
        pods = (entry.pod for entry in self._kinds.get(kind, {}).values())
        return next(filter(is_meant, pods), None)
