"""The terms about other pods that pods on nodes have: they decide where pods to come may go, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

from scheduler.api import selectors
from scheduler.api.pods.affinity import Peers, Term
from scheduler.api.pods.templates import PodTemplate
from scheduler.api.selectors import Labels
from scheduler.state.counting.index import RuleIndex

C = TypeVar("C")
_NO_KEYS: Counter[str] = Counter()


class Stance(Enum):
    """What a term of a pod on a node means for a pod that it is about."""

    REFUSES = "refuses"
    # Or pushes away, where the weight is negative.
    DRAWS = "draws"
    # It was required; what it counts for a pod to come is that pod's profile's to say.
    REQUIRED = "required"


class OwnedTerm(NamedTuple):
    """A term that pods on nodes have."""

    stance: Stance
    key: str
    peers: Peers
    weight: int


def owned_by(template: PodTemplate, namespace: str, labels: Labels) -> tuple[OwnedTerm, ...]:
    """The terms of a pod that matter to others once it has a node."""

    def made(stance: Stance, term: Term, weight: int) -> OwnedTerm:
        return OwnedTerm(stance, term.topology_key, term.peers(namespace, labels), weight)

    return (
        *(made(Stance.REFUSES, term, 1) for term in template.anti_affinity),
        *(made(Stance.REQUIRED, term, 1) for term in template.affinity),
        *(made(Stance.DRAWS, term, term.weight) for term in template.preferred_affinity),
        *(made(Stance.DRAWS, term, -term.weight) for term in template.preferred_anti_affinity),
    )


class OwnedTerms(Generic[C]):
    """Distinct terms with the classes of pods that have them, found by the pods that they are about.

    Attributes:
        index: the terms.
    """

    def __init__(self) -> None:
        self.index: RuleIndex[OwnedTerm] = RuleIndex()
        # Of each term the classes that have it, and how often.
        self._owners: dict[OwnedTerm, Counter[C]] = {}
        # The labels that terms look at, by the namespace that they are about; None for namespaces by their labels.
        self._keys: dict[str | None, Counter[str]] = {}

    @property
    def are_there(self) -> bool:
        """Whether there is any."""
        return bool(self._owners)

    def add(self, terms: Iterable[OwnedTerm], owner: C) -> bool:
        """A class of pods with these terms came; whether any is new."""
        is_new = False
        for term in terms:
            owners = self._owners.get(term)
            if owners is None:
                is_new = True
                owners = self._owners[term] = Counter()
                self.index.add(term.peers, term)
                for place in _namespaces(term.peers):
                    self._keys.setdefault(place, Counter()).update(term.peers.selector.keys)
            owners[owner] += 1
        return is_new

    def drop(self, terms: Iterable[OwnedTerm], owner: C) -> bool:
        """A class of pods with these terms went; whether any was the last."""
        is_last = False
        for term in set(terms):
            owners = self._owners[term]
            del owners[owner]
            if owners:
                continue
            is_last = True
            del self._owners[term]
            self.index.drop(term.peers, term)
            for place in _namespaces(term.peers):
                self._forget_keys(place, term)
        return is_last

    def _forget_keys(self, place: str | None, term: OwnedTerm) -> None:
        keys = self._keys.get(place, Counter())
        for key in term.peers.selector.keys:
            keys[key] -= 1
            if not keys[key]:
                del keys[key]
        if not keys:
            # Selectors of everything look at none.
            self._keys.pop(place, None)

    def about(
        self, namespace: str, namespace_labels: Labels, labels: Labels
    ) -> tuple[Callable[[str], bool], set[tuple[Stance, str]]]:
        """Whether terms look at a label in a namespace; stance and topology key of those about a pod there."""
        near, roaming = self._keys.get(namespace, _NO_KEYS), self._keys.get(None, _NO_KEYS)

        def looks_at(key: str) -> bool:
            return key in near or key in roaming

        found = self.index.about(namespace, namespace_labels, labels)
        return looks_at, {(term.stance, term.key) for term in found}

    def owners(
        self, namespace: str, namespace_labels: Labels, labels: Labels
    ) -> Iterator[tuple[OwnedTerm, Counter[C]]]:
        """The terms about a pod, with the classes that have them and how often."""
        for term in self.index.about(namespace, namespace_labels, labels):
            yield term, self._owners[term]


def _namespaces(peers: Peers) -> tuple[str | None, ...]:
    return (None,) if peers.namespace_selector != selectors.NOTHING else peers.namespaces
