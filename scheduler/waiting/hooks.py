"""Finds the kinds of waiting pods that a change could help, by the sort of change, without trying all kinds.

Every rule that keeps a kind off a node names the changes that could end this (``contract.Hint``). The kind is
registered here for these changes until no pod of it waits any more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from scheduler.api.selectors import Labels
from scheduler.plugins.contract import ANYTHING, VOLUMES_IN_USE, Change, Hint, Trigger
from scheduler.state.counting.owned import Stance, list_owned
from scheduler.state.pods import PodRecord
from scheduler.waiting.amounts import Amounts
from scheduler.waiting.peers import Seekers, Shunned

_Kind = Hashable
# When a resource became free on more rows than this, the rows are handled as one: from the lowest amount that was free
# before to the highest that is free now.
_ROWS_MAX = 16
_NO_LABELS: dict[str, str] = {}


@dataclass(slots=True)
class News:
    """What changed in the cluster between two looks.

    Attributes:
        is_unknown: anything may have changed.
        added: rows of nodes that were added, or that may take pods for a reason that no other field names.
        moved: rows on which anything changed.
        triggers: by sort of change the rows on which it happened.
        rises: by resource the rows on which more of it is free, each with the amount free before and now.
        came, left: pods that came to a node, or left a node; only one of those that no rule tells apart.
    """

    is_unknown: bool = False
    added: set[int] = field(default_factory=set)
    moved: set[int] = field(default_factory=set)
    triggers: defaultdict[Trigger, set[int]] = field(default_factory=lambda: defaultdict(set))
    rises: defaultdict[str, list[tuple[int, int, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    came: dict[Hashable, PodRecord] = field(default_factory=dict)
    left: dict[Hashable, PodRecord] = field(default_factory=dict)

    def list_changed(self) -> set[int]:
        """List the rows on which anything is different now: a trial that was undone moves rows and changes none."""
        found = set(self.added)
        found.update(row for rises in self.rises.values() for row, *_ in rises)
        for trigger, rows in self.triggers.items():
            if trigger != ANYTHING:
                found |= rows
        return found


class Hooks:
    """The changes that kinds wait for. One writer, like the queue."""

    def __init__(self, labels_of: Callable[[str], Labels]) -> None:
        """``labels_of`` finds the labels of a namespace."""
        self._labels_of = labels_of
        self._held: dict[_Kind, dict[Hint, None]] = {}
        # Whether the change may help the kind on any node, and not only on the node where it happened.
        self._triggers: dict[Trigger, dict[_Kind, bool]] = {}
        self._amounts: defaultdict[str, Amounts] = defaultdict(Amounts)
        self._comers, self._leavers, self._shunned = Seekers(), Seekers(), Shunned()
        # How many hints wait until pods free something else than amounts, such as ports.
        self._n_of_pods = 0

    def __len__(self) -> int:
        return len(self._held)

    @property
    def follows_pods(self) -> bool:
        """Whether any kind waits for certain pods to come or leave, and not only for what becomes free."""
        return bool(self._comers or self._leavers or self._shunned or self._n_of_pods)

    def hang(self, kind: _Kind, hints: Iterable[Hint]) -> None:
        """Register a kind for the changes that these hints name, beside those that it is registered for."""
        held = self._held.setdefault(kind, {})
        for hint in hints:
            if hint not in held:
                held[hint] = None
                self._hang(kind, hint)

    def take_off(self, kind: _Kind) -> None:
        """Remove a kind, of which no pod waits any more."""
        for hint in self._held.pop(kind, ()):
            self._n_of_pods -= _waits_for_pods(hint)
            for trigger in (*hint.here, *hint.anywhere):
                there = self._triggers.get(trigger, {})
                there.pop(kind, None)
                if not there:
                    self._triggers.pop(trigger, None)
            for resource, amount in hint.amounts:
                self._amounts[resource].drop(kind, amount)
                if not self._amounts[resource]:
                    del self._amounts[resource]
            for peers in hint.came:
                self._comers.drop(kind, peers)
            for peers in hint.left:
                self._leavers.drop(kind, peers)
            if hint.shunned is not None:
                self._shunned.drop(kind, hint.shunned)

    def find_kinds(self, news: News) -> Iterator[tuple[_Kind, frozenset[int] | None]]:
        """Find the kinds that the news could help, each with the rows on which; None stands for all rows.

        A kind that came with None does not come again. Equal sets of rows are one object, which thousands of kinds may
        share. Added nodes could help any kind; the caller handles them.
        """
        everywhere: set[_Kind] = set()
        for kind, rows in self._find_repeatedly(news):
            if kind in everywhere:
                continue
            yield kind, rows
            if rows is None:
                everywhere.add(kind)
                # One pod that left may wake thousands of kinds, and ten more that left would wake the same kinds.
                if len(everywhere) == len(self._held):
                    return

    def _find_repeatedly(self, news: News) -> Iterator[tuple[_Kind, frozenset[int] | None]]:
        """Find the kinds as ``find_kinds`` does, some of them several times."""
        shared: dict[frozenset[int], frozenset[int]] = {}

        def share(rows: Iterable[int]) -> frozenset[int]:
            frozen = frozenset(rows)
            return shared.setdefault(frozen, frozen)

        if news.is_unknown:
            yield from ((kind, None) for kind in self._held)
            return
        for trigger, found in news.triggers.items():
            rows = share(found)
            for kind, is_wide in self._triggers.get(trigger, {}).items():
                yield kind, None if is_wide else rows
        for resource, rises in news.rises.items():
            yield from self._find_risen(resource, rises, share)
        for pod in news.came.values():
            yield from ((kind, None) for kind in self._find_seekers(self._comers, pod))
        for pod in news.left.values():
            yield from ((kind, None) for kind in self._find_seekers(self._leavers, pod))

        yield from ((kind, None) for kind in self._find_freed(news.left.values()))

    def _hang(self, kind: _Kind, hint: Hint) -> None:
        self._n_of_pods += _waits_for_pods(hint)
        for trigger in hint.here:
            self._triggers.setdefault(trigger, {}).setdefault(kind, False)
        for trigger in hint.anywhere:
            self._triggers.setdefault(trigger, {})[kind] = True
        for resource, amount in hint.amounts:
            self._amounts[resource].add(kind, amount)
        for peers in hint.came:
            self._comers.add(kind, peers)
        for peers in hint.left:
            self._leavers.add(kind, peers)
        if hint.shunned is not None:
            self._shunned.add(kind, hint.shunned)

    def _find_risen(
        self,
        resource: str,
        rises: list[tuple[int, int, int]],
        share: Callable[[Iterable[int]], frozenset[int]],
    ) -> Iterator[tuple[_Kind, frozenset[int]]]:
        waiting = self._amounts.get(resource)
        if waiting is None:
            return
        if len(rises) > _ROWS_MAX:
            lowest, highest = min(low for _, low, _ in rises), max(high for _, _, high in rises)
            rows = share(row for row, _, _ in rises)
            yield from ((kind, rows) for kind in waiting.list_within(lowest, highest))
            return
        for row, low, high in rises:
            rows = share((row,))
            yield from ((kind, rows) for kind in waiting.list_within(low, high))

    def _find_seekers(self, seekers: Seekers, pod: PodRecord) -> Iterator[_Kind]:
        if seekers:
            there = self._labels_of(pod.namespace)
            yield from seekers.find(pod.namespace, there, pod.labels or _NO_LABELS)

    def _find_freed(self, pods: Iterable[PodRecord]) -> Iterator[_Kind]:
        """Find the kinds that the anti-affinity of pods that left has kept away."""
        if not self._shunned:
            return
        # The terms of all these pods are compared at once, as there may be thousands of kinds to compare them with.
        refusing = [
            term.peers
            for pod in pods
            if pod.template.anti_affinity
            for term in list_owned(pod.template, pod.namespace, pod.labels or _NO_LABELS)
            if term.stance == Stance.REFUSES
        ]
        if refusing:
            everywhere = {name: self._labels_of(name) for name in self._shunned.list_namespaces()}
            yield from self._shunned.find(refusing, everywhere)


def _waits_for_pods(hint: Hint) -> bool:
    triggers = (*hint.here, *hint.anywhere)
    return any(one[0] == Change.POD_LEFT or one == VOLUMES_IN_USE for one in triggers)
