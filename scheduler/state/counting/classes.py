"""Classes of pods that rules about other pods cannot tell apart, and the counts of these pods.

Pods on nodes are of one class when they are in one namespace, have the same labels, are being deleted or not, and
have the same rules of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from scheduler.api import selectors
from scheduler.api.pods.affinity import Peers
from scheduler.api.pods.templates import PodTemplate
from scheduler.api.selectors import Labels
from scheduler.schema.columns import Ints
from scheduler.state.counting.counts import Count
from scheduler.state.counting.owned import OwnedTerm, Stance
from scheduler.state.pods import PodRecord
from scheduler.state.structures.matching import Postings, unpack_bits

_NO_LABELS: dict[str, str] = {}
LabelsOf = Callable[[str], Labels]


class ClassKey(NamedTuple):
    """What tells classes apart; ``template`` is None for pods without rules of their own about other pods."""

    namespace: str
    labels: frozenset[tuple[str, str]]
    deleting: bool
    template: PodTemplate | None


def make_key(pod: PodRecord) -> ClassKey:
    """Return the key of a pod's class."""
    template = pod.template if pod.template.has_terms else None
    labels = frozenset((pod.labels or _NO_LABELS).items())
    return ClassKey(pod.namespace, labels, pod.deleting, template)


@dataclass(slots=True, eq=False)
class Class:
    """Pods that rules about other pods cannot tell apart."""

    namespace: str
    labels: Labels
    deleting: bool
    owned: tuple[OwnedTerm, ...]
    number: int


class PeerCount(Count):
    """Counts on each row the pods that are in all of several sets of peers."""

    __slots__ = ("all_of", "with_deleting")

    def __init__(self, all_of: tuple[Peers, ...], *, with_deleting: bool) -> None:
        super().__init__(0)
        self.all_of, self.with_deleting = all_of, with_deleting

    def is_counted(self, one: Class, there: Labels) -> bool:
        """Whether a class is counted that is in the first set of peers; ``there`` are the labels of its namespace."""
        if one.deleting and not self.with_deleting:
            return False
        return all(peers.include(one.namespace, there, one.labels) for peers in self.all_of[1:])


class TermView(NamedTuple):
    """A pod as the terms of other pods see it: its namespace, and the labels that any of them looks at."""

    namespace: str
    labels: frozenset[tuple[str, str]]


class OwnerCount(Count):
    """Sums on each row the weights of the terms about one pod; all terms have one stance and one topology key."""

    __slots__ = ("group", "labels", "namespace")

    def __init__(self, seen: TermView, stance: Stance, key: str) -> None:
        super().__init__(0)
        self.namespace, self.labels = seen.namespace, dict(seen.labels)
        self.group = stance, key


class Numbered:
    """Classes by number, found by peers: only classes with a label that the peers name are compared with them.

    A set of classes is one integer with a bit for each class.
    """

    def __init__(self) -> None:
        self._classes: list[Class | None] = []
        self._free: list[int] = []
        self._postings = Postings()
        self._within: dict[str, int] = {}
        # The classes whose pods are being deleted.
        self._deleting = 0

    @property
    def end(self) -> int:
        """One more than the highest number of a class."""
        return len(self._classes)

    def find_free_number(self) -> int:
        """Find the number for the next class: the lowest free one, so that the numbers at the end become free."""
        while self._free and self._free[0] >= len(self._classes):
            heappop(self._free)
        if not self._free:
            self._classes.append(None)
            self._free.append(len(self._classes) - 1)
        return self._free[0]

    def add(self, one: Class) -> None:
        """Add a class, with the next number."""
        heappop(self._free)
        self._classes[one.number] = one
        self._deleting |= one.deleting << one.number
        self._within[one.namespace] = self._within.get(one.namespace, 0) | 1 << one.number
        self._postings.add({one.number: one.labels.items()})

    def drop(self, one: Class) -> None:
        """Drop a class."""
        self._classes[one.number] = None
        heappush(self._free, one.number)
        while self._classes and self._classes[-1] is None:
            self._classes.pop()
        self._deleting &= ~(one.deleting << one.number)
        self._within[one.namespace] &= ~(1 << one.number)
        if not self._within[one.namespace]:
            del self._within[one.namespace]
        self._postings.drop({one.number: one.labels.items()})

    def list_among(
        self, all_of: tuple[Peers, ...], labels_of: LabelsOf, *, with_deleting: bool
    ) -> Ints:
        """List [k] the numbers of the classes whose pods are in all of these sets of peers, ascending."""
        found = self._postings.all
        for peers in all_of:
            found &= self._postings.match(peers.selector)
            if found:
                found &= self._find_within(peers, labels_of)
        if not with_deleting:
            found &= ~self._deleting
        return unpack_bits(found) if found else np.zeros(0, np.int64)

    def list_within(self, namespace: str) -> list[Class]:
        """List the classes of a namespace."""
        bits = self._within.get(namespace, 0)
        numbers = unpack_bits(bits).tolist() if bits else ()
        return [one for number in numbers if (one := self._classes[number]) is not None]

    def _find_within(self, peers: Peers, labels_of: LabelsOf) -> int:
        """Find the classes in the namespaces of these peers."""
        if peers.namespace_selector == selectors.EVERYTHING:
            return self._postings.all
        names: Iterable[str] = peers.namespaces
        if peers.namespace_selector != selectors.NOTHING:
            names = (
                name
                for name in self._within
                if name in peers.namespaces or peers.namespace_selector.matches(labels_of(name))
            )
        found = 0
        for name in names:
            found |= self._within.get(name, 0)
        return found
