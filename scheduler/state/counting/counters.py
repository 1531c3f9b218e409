"""The counts that are in use, found by the classes that they count; a count ends when nothing holds it any more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from weakref import ref

import numpy as np

from scheduler.schema.columns import Ints
from scheduler.state.counting.classes import Class, LabelsOf, OwnerCount, PeerCount
from scheduler.state.counting.counts import Count
from scheduler.state.counting.index import RuleIndex
from scheduler.state.counting.links import Links
from scheduler.state.counting.owned import Group, OwnedTerm
from scheduler.state.counting.places import Places
from scheduler.state.counting.records import ComparedPod, write_pod
from scheduler.state.structures.matching import Anchor, find_anchors, list_anchors


@dataclass(slots=True)
class _Held:
    """What belongs to a count and must be undone when the count ends.

    Attributes:
        slot: the count's slot in the links.
        pod: the pod about which terms are counted; None for a count of peers.
        places: the keys under which a count of terms is found.
        weights: for a count of terms: what a pod of each class adds, by the number of the class.
    """

    slot: int
    pod: ComparedPod | None = None
    places: list[tuple[Group, Anchor | None]] = field(default_factory=list)
    weights: dict[int, int] = field(default_factory=dict)


class Counters:
    """Counts of pods by class.

    Attributes:
        index: counts of peers, by the pods that they count.
    """

    def __init__(self, labels_of: LabelsOf, places: Places) -> None:
        self._labels_of, self._places = labels_of, places
        self.index: RuleIndex[ref[Count]] = RuleIndex()
        self._owners: dict[tuple[Group, Anchor | None], dict[ref[Count], None]] = {}
        self._held: dict[ref[Count], _Held] = {}
        self._by_slot: dict[int, tuple[ref[Count], _Held]] = {}
        self._links = Links()
        # The counts that were found for each class, kept until a link changes: equal pods often come one after another.
        self._found: dict[int, list[tuple[ref[Count], int]]] = {}
        self._found_at = 0
        # Counts that nothing holds any more: a count may end while others are iterated.
        self._ended: list[ref[Count]] = []

    def __len__(self) -> int:
        self._sweep()
        return len(self._held)

    def add_peers(self, count: PeerCount, classes: Ints) -> None:
        """Add a count of peers, which begins with the classes of these numbers."""
        reference, held = self._open(count)
        self.index.add(count.all_of[0], reference)
        self._links.count(held.slot, classes)
        count.begin(self._places.sum_by_row(classes, np.ones(classes.size, np.int64)))

    def add_owners(self, count: OwnerCount, weighed: tuple[Ints, Ints]) -> None:
        """Add a count of terms, which begins with [k] the classes of these numbers, and [k] what each adds."""
        reference, held = self._open(count)
        held.pod = self._write_pod(count)
        held.places = [(count.group, anchor) for anchor in list_anchors(count.labels)]
        for place in held.places:
            self._owners.setdefault(place, {})[reference] = None
        self._begin(count, held, *weighed)

    def find_counts(self, number: int) -> Iterator[tuple[Count, int]]:
        """Find the counts that count a class, and what each adds for a pod of the class."""
        if self._found_at != self._links.version:
            self._found.clear()
            self._found_at = self._links.version
        found = self._found.get(number)
        if found is None:
            found = self._found[number] = [
                (reference, 1 if held.pod is None else held.weights[number])
                for reference, held in map(
                    self._by_slot.__getitem__, self._links.find_slots(number)
                )
            ]
        for reference, each in found:
            count = reference()
            if count is not None:
                yield count, each

    def introduce(self, one: Class) -> None:
        """Add the pods of a class to the counts that count it."""
        self._sweep()
        there = self._labels_of(one.namespace)
        slots = []
        for number in self.index.find_about(one.namespace, there, one.labels).tolist():
            reference = self.index.rules[number]
            count = reference() if reference is not None else None
            if (
                reference is not None
                and isinstance(count, PeerCount)
                and count.is_counted(one, there)
            ):
                slots.append(self._held[reference].slot)
        for reference, each in self._weigh(one).items():
            if each:
                held = self._held[reference]
                held.weights[one.number] = each
                slots.append(held.slot)
        self._links.enter(one.number, np.array(slots, np.int64))
        self._change(one.number, 1)

    def withdraw(self, number: int) -> None:
        """Take the pods of a class out of all counts."""
        self._change(number, -1)
        self.leave(number)

    def leave(self, number: int) -> None:
        """Note that a class has no pods any more."""
        for slot in self._links.find_slots(number):
            _, held = self._by_slot[slot]
            held.weights.pop(number, None)
        self._links.leave(number)

    def trim(self, n_classes: int) -> None:
        """Free the room of higher numbers: all classes have numbers below this one."""
        self._links.trim(n_classes)

    def list_owner_counts(self, namespace: str) -> list[OwnerCount]:
        """List the counts of terms about the pods of a namespace."""
        counts = [reference() for reference in self._held]
        return [
            count
            for count in counts
            if isinstance(count, OwnerCount) and count.namespace == namespace
        ]

    def recount(self, count: OwnerCount, weighed: tuple[Ints, Ints]) -> None:
        """Count the terms of a count anew."""
        held = self._held[ref(count)]
        held.pod = self._write_pod(count)
        self._links.clear(held.slot)
        self._begin(count, held, *weighed)

    def _open(self, count: Count) -> tuple[ref[Count], _Held]:
        self._sweep()
        reference: ref[Count] = ref(count, self._ended.append)
        held = self._held[reference] = _Held(self._links.open())
        self._by_slot[held.slot] = reference, held
        return reference, held

    def _begin(self, count: OwnerCount, held: _Held, classes: Ints, each: Ints) -> None:
        held.weights = dict(zip(classes.tolist(), each.tolist(), strict=True))
        self._links.count(held.slot, classes)
        count.begin(self._places.sum_by_row(classes, each))

    def _change(self, number: int, sign: int) -> None:
        """Add all pods of a class to its counts (1), or take them out (-1)."""
        rows = self._places.get_rows(number)
        for count, each in self.find_counts(number) if rows else ():
            for row, n in rows.items():
                count.change(row, sign * n * each)

    def _weigh(self, one: Class) -> dict[ref[Count], int]:
        """Weigh what each pod of a class adds to the counts of terms."""
        terms: defaultdict[Group, list[OwnedTerm]] = defaultdict(list)
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
            self._links.close(held.slot)
            del self._by_slot[held.slot]
