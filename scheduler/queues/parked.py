"""Pods that wait until something changes, by kind: one question is enough for all of a kind."""

from __future__ import annotations

from collections.abc import Hashable

from scheduler.queues.entries import Entry
from scheduler.queues.needs import Needs
from scheduler.schema.columns import Ints
from scheduler.state.pods import PodRecord


class Parked:
    """A kind is equal for pods that fit the same nodes; they all have one template."""

    def __init__(self) -> None:
        self._kinds: dict[Hashable, dict[str, Entry]] = {}
        self._needs = Needs()
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def add(self, entry: Entry, kind: Hashable) -> None:
        """A pod begins to wait."""
        entry.kind = kind
        if kind not in self._kinds:
            self._kinds[kind] = {}
            self._needs.add(kind, entry.pod.template)
        self._kinds[kind][entry.pod.uid] = entry
        self._n += 1

    def drop(self, entry: Entry) -> None:
        """A pod waits no longer; nothing when it did not."""
        if entry.kind is None:
            return
        alike = self._kinds[entry.kind]
        del alike[entry.pod.uid]
        if not alike:
            del self._kinds[entry.kind]
            self._needs.drop(entry.kind)
        entry.kind = None
        self._n -= 1

    def look_far(self, kind: Hashable) -> None:
        """From now on a change on one node may help the pods of a kind on another.

        What is free on the node that changed then does not rule them out.
        """
        if kind in self._kinds:
            self._needs.widen(kind)

    def looks_far(self, kind: Hashable) -> bool:
        """Whether a change on one node may help the pods of a kind on another."""
        return self._needs.is_wide(kind)

    def kinds(self) -> list[Hashable]:
        """The kinds of pods that wait."""
        return list(self._kinds)

    def kinds_within(self, most: Ints) -> list[Hashable]:
        """The kinds among these that ask no more than ``most`` of each of ``needs.RESOURCES``."""
        return self._needs.within(most)

    def entries(self, kind: Hashable) -> list[Entry]:
        """Those of a kind; none when all have moved on."""
        return list(self._kinds.get(kind, {}).values())

    def alike(self, kind: Hashable) -> list[PodRecord]:
        """The pods of a kind; none when all have moved on."""
        return [entry.pod for entry in self._kinds.get(kind, {}).values()]

    def one_of(self, kind: Hashable) -> PodRecord | None:
        """A pod of a kind; None when all have moved on."""
        for entry in self._kinds.get(kind, {}).values():
            return entry.pod
        return None
