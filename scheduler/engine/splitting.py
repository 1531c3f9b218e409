"""Splits a kind of waiting pods when its pods are no longer alike.

Pods are of one kind as long as no rule tells them apart. A new term of a pod on a node, or a new Service, can tell
thousands of waiting pods apart at once. So only some pods of a kind are looked at in one piece of work.
"""

from __future__ import annotations

from collections.abc import Hashable

from scheduler.cycle.asking import Answers
from scheduler.engine.barring import Barring
from scheduler.waiting.entries import Entry
from scheduler.waiting.parked import Parked

# How many pods are looked at in one piece of work, which takes about a millisecond.
PODS_A_PIECE = 64


class Splitting:
    """The kinds that are being split, each with the pods that are still to be looked at."""

    def __init__(self, cycle: Answers, parked: Parked, barring: Barring) -> None:
        self._cycle, self._parked, self._barring = cycle, parked, barring
        # By kind: the version of the cluster when the pass over its pods began, and the entries still to be looked at.
        self._passes: dict[Hashable, tuple[Hashable, list[Entry]]] = {}

    def is_due(self, kind: Hashable) -> bool:
        """Whether pods of a kind may belong to other kinds now."""
        first = self._parked.find_pod(kind)
        if first is None:
            return False
        if kind in self._passes or self._parked.versions.get(kind) != self._cycle.version:
            return True
        # The claims of a pod may change what decides its kind, and the version does not show this.
        return first.volumes is not None

    def split(self, kind: Hashable) -> list[Hashable]:
        """Look at some pods of a kind that is due, move each to its present kind, and return these other kinds."""
        if kind not in self._passes:
            self._passes[kind] = self._cycle.version, self._parked.list_entries(kind)
        begun, left = self._passes[kind]
        barriers = self._parked.barriers[kind]
        others: dict[Hashable, None] = {}
        for entry in left[:PODS_A_PIECE]:
            # An entry may have left the kind since the pass began.
            now = self._cycle.find_kind(entry.pod) if entry.kind == kind else kind
            if now == kind:
                continue
            self._parked.drop(entry)
            self._parked.add(entry, now)
            others[now] = None
            self._barring.keep_entry_off(now, entry, barriers)
        del left[:PODS_A_PIECE]
        if not left or kind not in self._parked:
            del self._passes[kind]
            if kind in self._parked:
                self._parked.versions[kind] = begun
        return list(others)

    def is_running(self, kind: Hashable) -> bool:
        """Whether some pods of a kind are still to be looked at."""
        return kind in self._passes

    def forget_gone(self) -> None:
        """Forget the kinds of which no pod waits any more."""
        for kind in [kind for kind in self._passes if kind not in self._parked]:
            del self._passes[kind]
