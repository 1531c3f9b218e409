"""The counts that somebody looks at, found by the classes that they count; a count ends when nobody has it any more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from weakref import ref

import numpy as np

from scheduler.state.counting.classes import Class, LabelsOf, OwnerCount, PeerCount
from scheduler.state.counting.counts import Count
from scheduler.state.counting.index import RuleIndex
from scheduler.state.counting.owned import OwnedTerm, Stance
from scheduler.state.counting.records import ComparedPod, write_pod
from scheduler.state.structures.matching import Anchor, find_anchors, list_anchors

_Group = tuple[Stance, str]


@dataclass(slots=True)
class _Held:
    """What is known of a count beside itself, to be undone when it ends.

    Attributes:
        pod: the pod about which terms are counted; None for a count of peers.
        places: where a count of terms is found.
        classes: whom it counts.
    """

    pod: ComparedPod | None = None
    places: list[tuple[_Group, Anchor | None]] = field(default_factory=list)
    classes: set[Class] = field(default_factory=set)


class Counters:
    """Counts of pods by class.

    Attributes:
        index: counts of peers, by what they are about.
    """

    def __init__(self, labels_of: LabelsOf) -> None:
        self._labels_of = labels_of
        self.index: RuleIndex[ref[Count]] = RuleIndex()
        self._owners: dict[tuple[_Group, Anchor | None], dict[ref[Count], None]] = {}
        self._held: dict[ref[Count], _Held] = {}
        # Counts that nobody has any more: they may end while others are gone through.
        self._ended: list[ref[Count]] = []

    def __len__(self) -> int:
        self._sweep()
        return len(self._held)

    def add_peers(self, count: PeerCount, classes: Iterable[Class]) -> None:
        """A count of peers begins with these classes."""
        self._sweep()
        reference: ref[Count] = ref(count, self._ended.append)
        held = self._held[reference] = _Held()
        self.index.add(count.all_of[0], reference)
        for one in classes:
            _put(reference, count, held, one, 1)

    def add_owners(self, count: OwnerCount, weighed: Mapping[Class, int]) -> None:
        """A count of terms begins with these classes, each with what it adds."""
        self._sweep()
        reference: ref[Count] = ref(count, self._ended.append)
        places = [(count.group, anchor) for anchor in list_anchors(count.labels)]
        held = self._held[reference] = _Held(self._write_pod(count), places)
        for place in places:
            self._owners.setdefault(place, {})[reference] = None
        for one, each in weighed.items():
            _put(reference, count, held, one, each)

    def introduce(self, one: Class) -> None:
        """Add the pods of a class to the counts that count it."""
        self._sweep()
        there = self._labels_of(one.namespace)
        for number in self.index.about(one.namespace, there, one.labels).tolist():
            reference = self.index.rules[number]
            count = reference() if reference is not None else None
            if reference is not None and isinstance(count, PeerCount) and count.counts(one, there):
                _put(reference, count, self._held[reference], one, 1)
        for reference, each in self._weigh(one).items():
            count = reference()
            if count is not None:
                _put(reference, count, self._held[reference], one, each)

    def withdraw(self, one: Class) -> None:
        """Take the pods of a class out of all counts."""
        for reference, each in one.counts.items():
            count = reference()
            if count is not None:
                for row, n in one.rows.items():
                    count.change(row, -n * each)
        self.leave(one)

    def leave(self, one: Class) -> None:
        """A class has no pods any more."""
        for reference in one.counts:
            held = self._held.get(reference)
            if held is not None:
                held.classes.discard(one)
        one.counts = {}

    def of_owners(self, namespace: str) -> list[OwnerCount]:
        """The counts of terms about the pods of a namespace."""
        counts = [reference() for reference in self._held]
        return [
            count
            for count in counts
            if isinstance(count, OwnerCount) and count.namespace == namespace
        ]

    def recount(self, count: OwnerCount, weighed: Mapping[Class, int]) -> None:
        """Begin anew with a count of terms."""
        reference = next(one for one in self._held if one() is count)
        held = self._held[reference]
        held.pod = self._write_pod(count)
        for one in held.classes:
            each = one.counts.pop(reference)
            for row, n in one.rows.items():
                count.change(row, -n * each)
        held.classes = set()
        for one, each in weighed.items():
            _put(reference, count, held, one, each)

    def _weigh(self, one: Class) -> dict[ref[Count], int]:
        """What each pod of a class adds to the counts of terms."""
        terms: defaultdict[_Group, list[OwnedTerm]] = defaultdict(list)
        for term in one.owned:
            terms[term.stance, term.key].append(term)
        found: dict[ref[Count], int] = {}
        for group, same in terms.items():
            anchors = {anchor for term in same for anchor in find_anchors(term.peers.selector)}
            counts = {
                reference: self._held[reference].pod
                for anchor in anchors
                for reference in self._owners.get((group, anchor), ())
            }
            index: RuleIndex[int] = RuleIndex()
            for i, term in enumerate(same if counts else ()):
                index.add(term.peers, i)
            weights = np.array([term.weight for term in same], np.int64)
            for reference, pod in counts.items():
                if pod is not None:
                    found[reference] = int(weights[index.find(pod)].sum())
        return found

    def _write_pod(self, count: OwnerCount) -> ComparedPod:
        return write_pod(count.namespace, self._labels_of(count.namespace), count.labels)

    def _sweep(self) -> None:
        while self._ended:
            reference = self._ended.pop()
            held = self._held.pop(reference)
            if held.pod is None:
                self.index.drop(reference)
            for place in held.places:
                there = self._owners[place]
                del there[reference]
                if not there:
                    del self._owners[place]
            for one in held.classes:
                one.counts.pop(reference, None)


def _put(reference: ref[Count], count: Count, held: _Held, one: Class, each: int) -> None:
    """A count counts so much of each pod of a class."""
    if not each:
        return
    one.counts[reference] = each
    held.classes.add(one)
    for row, n in one.rows.items():
        count.change(row, n * each)
