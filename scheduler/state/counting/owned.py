"""The terms about other pods that pods on nodes have: these terms decide where later pods may go, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple

import numpy as np

from scheduler.api import selectors
from scheduler.api.pods.affinity import Peers, Term
from scheduler.api.pods.templates import PodTemplate
from scheduler.api.selectors import Labels
from scheduler.schema.columns import Ints
from scheduler.state.counting.index import RuleIndex
from scheduler.state.structures.growing import Growing

_NO_KEYS: Counter[str] = Counter()
_NOBODY: tuple[Ints, Ints] = (np.zeros(0, np.int64), np.zeros(0, np.int64))
# So many rows of owners that are gone may stay.
_GONE_MIN = 1024


class Stance(Enum):
    """What a term of a pod on a node means for a pod that the term is about."""

    REFUSES = "refuses"
    # It draws pods to the node, or pushes them away where the weight is negative.
    DRAWS = "draws"
    # The owner required it; how much it counts for a later pod is set in the profile of the later pod.
    REQUIRED = "required"


class OwnedTerm(NamedTuple):
    """A term that pods on nodes have."""

    stance: Stance
    key: str
    peers: Peers
    weight: int


Group = tuple[Stance, str]


def list_owned(template: PodTemplate, namespace: str, labels: Labels) -> tuple[OwnedTerm, ...]:
    """List the terms of a pod that matter to other pods once it has a node."""

    def make_term(stance: Stance, term: Term, weight: int) -> OwnedTerm:
        return OwnedTerm(stance, term.topology_key, term.find_peers(namespace, labels), weight)

    return (
        *(make_term(Stance.REFUSES, term, 1) for term in template.anti_affinity),
        *(make_term(Stance.REQUIRED, term, 1) for term in template.affinity),
        *(make_term(Stance.DRAWS, term, term.weight) for term in template.preferred_affinity),
        *(make_term(Stance.DRAWS, term, -term.weight) for term in template.preferred_anti_affinity),
    )


class OwnedTerms:
    """Distinct terms and the classes of pods that have them, found by the pods that the terms are about.

    Terms and owners are columns: the weights of a hundred thousand terms about a pod are summed in a millisecond. An
    owner is a number, which is used again when the owner is gone.
    """

    def __init__(self) -> None:
        self._index: RuleIndex[OwnedTerm] = RuleIndex()
        # By the number of a term: the hash of its group, its weight, and the number of its owners.
        self._group, self._weight, self._n_owners = Growing(), Growing(), Growing()
        # One row for each term of each owner: the term, the owner, and how often it has the term (0: the row is free).
        self._term, self._owner, self._times = Growing(), Growing(), Growing()
        # By owner: the first of its rows and the number of its rows, which are neighbours.
        self._first, self._n_rows = Growing(), Growing()
        self._n_gone = 0
        # The last pod for which terms were weighed, and their weights by group.
        self._weighed: tuple[object, dict[int, tuple[Ints, Ints]]] | None = None
        # The labels that terms look at, by the namespace that they are about; None for terms that select namespaces.
        self._keys: dict[str | None, Counter[str]] = {}

    @property
    def are_there(self) -> bool:
        """Whether there is any term."""
        return len(self._index) > 0

    def add(self, terms: Iterable[OwnedTerm], owner: int) -> bool:
        """Add an owner with these terms; return whether any of the terms is new."""
        self._weighed = None
        times = Counter(terms)
        n_before = len(self._index)
        numbers = [self._number(term) for term in times]
        self._n_owners.all[numbers] += 1
        while self._first.n <= owner:
            self._first.put(0)
            self._n_rows.put(0)
        self._first.all[owner] = self._term.add(numbers)
        self._n_rows.all[owner] = len(numbers)
        self._owner.add([owner] * len(numbers))
        self._times.add(list(times.values()))
        return len(self._index) > n_before

    def drop(self, owner: int) -> bool:
        """Drop an owner with its terms; return whether any of the terms has no owner any more."""
        self._weighed = None
        first = int(self._first.all[owner])
        rows = slice(first, first + int(self._n_rows.all[owner]))
        numbers = self._term.all[rows]
        self._n_owners.all[numbers] -= 1
        gone = numbers[self._n_owners.all[numbers] == 0].tolist()
        self._times.all[rows] = 0
        self._n_rows.all[owner] = 0
        self._n_gone += len(numbers)
        for number in gone:
            self._forget(number)
        if self._n_gone > max(_GONE_MIN, self._term.n // 2):
            self._compact()
        return bool(gone)

    def find_about(
        self, namespace: str, namespace_labels: Labels, labels: Labels
    ) -> tuple[Callable[[str], bool], set[Group]]:
        """Return whether terms look at a label in a namespace, and the stance and topology key of the terms about a pod."""
        near, roaming = self._keys.get(namespace, _NO_KEYS), self._keys.get(None, _NO_KEYS)

        def looks_at(key: str) -> bool:
            return key in near or key in roaming

        found = self._index.find_about(namespace, namespace_labels, labels)
        _, firsts = np.unique(self._group.all[found], return_index=True)
        terms = [self._index.rules[number] for number in found[firsts].tolist()]
        return looks_at, {_group(term) for term in terms if term is not None}

    def weigh(
        self, namespace: str, namespace_labels: Labels, labels: Labels, group: Group
    ) -> tuple[Ints, Ints]:
        """Sum up the weights of the terms of a group that are about a pod.

        Returns:
            [k] the owners of these terms, ascending, and [k] the sum of each owner's weights; owners with 0 are left out.
        """
        pod = namespace, frozenset(namespace_labels.items()), frozenset(labels.items())
        if self._weighed is None or self._weighed[0] != pod:
            # All groups are weighed at once: each pass looks at all rows.
            found = self._index.find_about(namespace, namespace_labels, labels)
            self._weighed = pod, self._weigh_groups(found)
        return self._weighed[1].get(hash(group), _NOBODY)

    def _weigh_groups(self, found: Ints) -> dict[int, tuple[Ints, Ints]]:
        """Sum up the weights of these terms, by the hash of their group: the owners, and the sum for each owner."""
        if not found.size:
            return {}
        weights = np.zeros(self._group.n, np.int64)
        weights[found] = self._weight.all[found]
        each = weights[self._term.used] * self._times.used
        rows = np.flatnonzero(each)
        group = self._group.all[self._term.all[rows]]
        if rows.size and (group == group[0]).all():
            # The usual case needs no sorting.
            sums = np.bincount(self._owner.all[rows], each[rows]).astype(np.int64)
            owners = np.flatnonzero(sums)
            return {int(group[0]): (owners, sums[owners])}
        groups, group = np.unique(group, return_inverse=True)
        n_owners = self._first.n
        pairs, pair = np.unique(group * n_owners + self._owner.all[rows], return_inverse=True)
        # Sums of whole numbers below 2**53 are exact.
        sums = np.bincount(pair, each[rows]).astype(np.int64)
        pairs, sums = pairs[sums != 0], sums[sums != 0]
        ends = np.searchsorted(pairs, np.arange(len(groups) + 1) * n_owners)
        return {
            number: (pairs[start:end] % n_owners, sums[start:end])
            for number, start, end in zip(groups.tolist(), ends[:-1], ends[1:], strict=True)
        }

    def _number(self, term: OwnedTerm) -> int:
        """Return the number of a term, which may be new."""
        number = self._index.get(term)
        if number is None:
            number = self._index.add(term.peers, term)
            if number == self._group.n:
                for column in (self._group, self._weight, self._n_owners):
                    column.put(0)
            self._group.all[number] = hash(_group(term))
            self._weight.all[number] = term.weight
            self._n_owners.all[number] = 0
            for place in _list_namespaces(term.peers):
                self._keys.setdefault(place, Counter()).update(term.peers.selector.keys)
        return number

    def _forget(self, number: int) -> None:
        """Drop a term that no owner has any more."""
        term = self._index.rules[number]
        if term is None:
            return
        self._index.drop(term)
        for place in _list_namespaces(term.peers):
            keys = self._keys.get(place, Counter())
            for key in term.peers.selector.keys:
                keys[key] -= 1
                if not keys[key]:
                    del keys[key]
            if not keys:
                # Selectors of everything look at no label.
                self._keys.pop(place, None)

    def _compact(self) -> None:
        """Free the room of the owners that are gone."""
        rows = np.flatnonzero(self._times.used)
        for column in (self._term, self._owner, self._times):
            column.keep(column.all[rows])
        owners, first = np.unique(self._owner.used, return_index=True)
        self._first.all[owners] = first
        self._n_gone = 0
        # The index gives the lowest numbers first.
        n_terms = len(self._index.rules)
        if self._group.n > 2 * n_terms + _GONE_MIN:
            for column in (self._group, self._weight, self._n_owners):
                column.keep(column.all[:n_terms])


def _group(term: OwnedTerm) -> Group:
    return term.stance, term.key


def _list_namespaces(peers: Peers) -> tuple[str | None, ...]:
    return (None,) if peers.namespace_selector != selectors.NOTHING else peers.namespaces
