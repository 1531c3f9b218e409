"""Pods counted by what rules about other pods say of them, for as long as somebody looks.

Pods on nodes that such rules cannot tell apart are a class: they are in one namespace, have the same labels,
are being deleted or not, and have the same rules of their own. A class is matched against a rule once, and
not each of its pods on every node. Classes are kept from the first time that anybody looks on; in a cluster
without such rules they cost nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakValueDictionary, ref

from scheduler.api import names
from scheduler.api.pods.affinity import Peers
from scheduler.api.pods.templates import PodTemplate
from scheduler.api.selectors import Labels
from scheduler.state.counting.counts import Count
from scheduler.state.counting.owned import OwnedTerm, OwnedTerms, Stance, owned_by
from scheduler.state.pods import PodRecord

_NO_LABELS: dict[str, str] = {}
# So many counts that are gone are no burden to a class.
_SPARE = 64
_LabelsOf = Callable[[str], Labels]


class ClassKey(NamedTuple):
    """What tells classes apart; ``template`` is None for pods without rules of their own about other pods."""

    namespace: str
    labels: frozenset[tuple[str, str]]
    deleting: bool
    template: PodTemplate | None


def key_of(pod: PodRecord) -> ClassKey:
    """The class of a pod."""
    template = pod.template if pod.template.has_terms else None
    labels = frozenset((pod.labels or _NO_LABELS).items())
    return ClassKey(pod.namespace, labels, pod.deleting, template)


@dataclass(slots=True, eq=False)
class _Class:
    """Pods that rules about other pods cannot tell apart: how many are on which row, and who counts them."""

    namespace: str
    labels: Labels
    deleting: bool
    owned: tuple[OwnedTerm, ...]
    rows: Counter[int] = field(default_factory=Counter)
    counts: list[tuple[ref[_Counting], int]] = field(default_factory=list)


class _Counting(Count, ABC):
    """A count of pods by class."""

    __slots__ = ()

    @abstractmethod
    def each(self, one: _Class, labels_of: _LabelsOf) -> int:
        """What each pod of a class counts."""


class PeerCount(_Counting):
    """How many pods on each row are among all of several sets of peers."""

    __slots__ = ("_all_of", "_with_deleting")

    def __init__(self, all_of: tuple[Peers, ...], *, with_deleting: bool) -> None:
        super().__init__(0)
        self._all_of, self._with_deleting = all_of, with_deleting

    def each(self, one: _Class, labels_of: _LabelsOf) -> int:
        """1 for pods that are counted."""
        if one.deleting and not self._with_deleting:
            return 0
        there = labels_of(one.namespace)
        return int(all(set_.include(one.namespace, there, one.labels) for set_ in self._all_of))


class Seen(NamedTuple):
    """A pod as the terms of other pods see it: its namespace, and the labels that any of them looks at."""

    namespace: str
    labels: frozenset[tuple[str, str]]


class OwnerCount(_Counting):
    """The weights of the terms, of one stance and topology key, that pods on each row have about a pod."""

    __slots__ = ("_key", "_labels", "_namespace", "_stance")

    def __init__(self, seen: Seen, stance: Stance, key: str) -> None:
        super().__init__(0)
        self._namespace, self._labels = seen.namespace, dict(seen.labels)
        self._stance, self._key = stance, key

    def each(self, one: _Class, labels_of: _LabelsOf) -> int:
        """The sum of the weights."""
        if not one.owned:
            return 0
        there = labels_of(self._namespace)
        return sum(
            term.weight
            for term in one.owned
            if (term.stance, term.key) == (self._stance, self._key)
            and term.peers.include(self._namespace, there, self._labels)
        )


class Terms:
    """The classes of pods on nodes, the counts that somebody looks at, and the terms that pods on nodes have.

    Attributes:
        owned: the terms; empty until somebody looks.
        version: rises when an answer about a pod may be another though nothing on the pod has changed.
    """

    def __init__(self, on_nodes: Callable[[], Iterable[tuple[int, PodRecord]]]) -> None:
        """``on_nodes``: all pods that are charged to a node, with its row."""
        self._on_nodes = on_nodes
        self._is_kept = False
        self._may_own = False
        self._classes: dict[ClassKey, _Class] = {}
        self._namespaces: dict[str, dict[str, str]] = {}
        self._counts: WeakValueDictionary[object, _Counting] = WeakValueDictionary()
        # Counts made since classes let go of those that are gone.
        self._n_made = 0
        self.owned = OwnedTerms()
        self.version = 0

    @property
    def has_owners(self) -> bool:
        """Whether any pod on a node may have terms about other pods."""
        return self.owned.are_there if self._is_kept else self._may_own

    def follow(self, pod: PodRecord, node_row: int, sign: int) -> None:
        """A pod came to a node (1), or left it (-1)."""
        if not self._is_kept:
            if pod.template.has_terms and not self._may_own:
                self._may_own = True
                self.version += 1
            return
        key = key_of(pod)
        one = self._classes.get(key) or self._begin(key, pod)
        one.rows[node_row] += sign
        for reference, each in one.counts:
            count = reference()
            if count is not None:
                count.change(node_row, sign * each)
        if not one.rows[node_row]:
            del one.rows[node_row]
            if not one.rows:
                del self._classes[key]
                if self.owned.drop(one.owned):
                    self.version += 1

    def counted(self, pod: PodRecord) -> Iterator[tuple[Count, int]]:
        """Where a pod on a node is counted, and what it counts there."""
        one = self._classes.get(key_of(pod))
        for reference, each in one.counts if one else ():
            count = reference()
            if count is not None:
                yield count, each

    def peers(self, all_of: tuple[Peers, ...], *, with_deleting: bool) -> Count:
        """The pods on each row that are among all of these peers, kept up as long as somebody has it."""
        key = all_of, with_deleting
        return self._counts.get(key) or self._count(
            key, PeerCount(all_of, with_deleting=with_deleting)
        )

    def owners(self, seen: Seen, stance: Stance, key: str) -> Count:
        """The weights of the terms on each row that are about a pod, likewise."""
        by = seen, stance, key
        return self._counts.get(by) or self._count(by, OwnerCount(seen, stance, key))

    def about(
        self, namespace: str, labels: Labels
    ) -> tuple[frozenset[str], set[tuple[Stance, str]]]:
        """The labels that terms of pods on nodes look at in a namespace, and what those about a pod mean.

        Of the latter stance and topology key.
        """
        self._keep()
        return self.owned.about(namespace, self.labels_of(namespace), labels)

    def see_namespace(self, name: str, labels: dict[str, str]) -> bool:
        """A namespace was added or changed; whether that may change an answer about a pod that waits."""
        if self._namespaces.get(name) == labels:
            return False
        self._namespaces[name] = dict(labels)
        self.version += 1
        self.owned.forget_answers()
        for one in self._classes.values():
            self._withdraw(one)
            self._introduce(one, self._counts.values())
        return self._is_kept

    def labels_of(self, namespace: str) -> Labels:
        """The labels of a namespace, its name among them."""
        return {names.NAMESPACE_NAME: namespace, **self._namespaces.get(namespace, {})}

    def held(self) -> dict[ClassKey, dict[int, int]] | None:
        """How many pods of each class are on each row; None as long as nobody has looked."""
        if not self._is_kept:
            return None
        return {key: dict(one.rows) for key, one in self._classes.items()}

    def _keep(self) -> None:
        if not self._is_kept:
            self._is_kept = True
            for row, pod in self._on_nodes():
                self.follow(pod, row, 1)

    def _begin(self, key: ClassKey, pod: PodRecord) -> _Class:
        labels = pod.labels or _NO_LABELS
        owned = owned_by(pod.template, pod.namespace, labels)
        one = self._classes[key] = _Class(pod.namespace, labels, pod.deleting, owned)
        if self.owned.add(owned):
            self.version += 1
        self._introduce(one, self._counts.values())
        return one

    def _count(self, key: object, made: _Counting) -> _Counting:
        self._keep()
        self._n_made += 1
        if self._n_made > len(self._counts) + _SPARE:
            self._n_made = 0
            for one in self._classes.values():
                one.counts = [held for held in one.counts if held[0]() is not None]
        for one in self._classes.values():
            self._introduce(one, (made,))
        self._counts[key] = made
        return made

    def _introduce(self, one: _Class, counts: Iterable[_Counting]) -> None:
        """Add the pods of a class to the counts that count it."""
        for count in counts:
            each = count.each(one, self.labels_of)
            if each:
                one.counts.append((ref(count), each))
                for row, n in one.rows.items():
                    count.change(row, n * each)

    def _withdraw(self, one: _Class) -> None:
        """Take the pods of a class out of all counts."""
        for reference, each in one.counts:
            count = reference()
            if count is not None:
                for row, n in one.rows.items():
                    count.change(row, -n * each)
        one.counts = []
