"""Notes which barriers keep the pods of a kind off nodes; the kind is looked at again when a rule may judge otherwise."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from scheduler.api.door.decisions import Barriers
from scheduler.cycle.asking import Answers
from scheduler.plugins.contract import Hint
from scheduler.state.entities import Entity
from scheduler.state.pods import PodRecord
from scheduler.waiting.entries import Entry
from scheduler.waiting.parked import Parked
from scheduler.waiting.watching import Watch
from scheduler.waiting.wider import widen_hints


class Barring:
    """Hangs the hints of parked kinds."""

    def __init__(self, cycle: Answers, parked: Parked, watch: Watch) -> None:
        self._cycle, self._parked, self._watch = cycle, parked, watch

    def keep_off(self, kind: Hashable, pod: PodRecord, barriers: Barriers) -> None:
        """Note what keeps a kind off nodes; ``pod`` is one of the kind."""
        known = self._parked.barriers.get(kind)
        if known is not None and known.merge(barriers) == known:
            # Such pods wait already, for the same changes.
            return
        hints = self._cycle.list_hints(pod, barriers)
        self._parked.keep_off(kind, barriers, hints)
        for entry in self._parked.list_entries(kind):
            self._widen(kind, entry, barriers, hints)
        self._parked.versions.setdefault(kind, self._cycle.version)
        self._watch.follows_pods = self._parked.hooks.follows_pods

    def keep_entry_off(self, kind: Hashable, entry: Entry, barriers: Barriers) -> None:
        """Note what keeps an entity off nodes that has just joined a kind."""
        self.keep_off(kind, entry.pod, barriers)
        if isinstance(entry.entity, Entity):
            self._widen(kind, entry, barriers, self._cycle.list_hints(entry.pod, barriers))

    def _widen(
        self, kind: Hashable, entry: Entry, barriers: Barriers, hints: Sequence[Hint]
    ) -> None:
        """Note what may help a group beside what helps one of its pods: the kind may have been known before it came."""
        if isinstance(entry.entity, Entity):
            self._parked.keep_off(kind, barriers, widen_hints(entry.entity, hints))
