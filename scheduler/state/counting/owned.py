"""The terms about other pods that pods on nodes have: they decide where pods to come may go, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from scheduler.api import selectors
from scheduler.api.pods.affinity import Peers, Term
from scheduler.api.pods.templates import PodTemplate
from scheduler.api.selectors import Labels


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


class OwnedTerms:
    """Distinct terms, found by the namespaces that they are about."""

    def __init__(self) -> None:
        self._owners: Counter[OwnedTerm] = Counter()
        self._near: dict[str, dict[OwnedTerm, None]] = {}
        # About namespaces by their labels.
        self._roaming: dict[OwnedTerm, None] = {}
        self._keys: dict[str, frozenset[str]] = {}

    @property
    def are_there(self) -> bool:
        """Whether there is any."""
        return bool(self._owners)

    def add(self, terms: Iterable[OwnedTerm]) -> bool:
        """A class of pods with these terms came; whether any is new."""
        is_new = False
        for term in terms:
            self._owners[term] += 1
            if self._owners[term] == 1:
                is_new = True
                for place in self._places(term):
                    place[term] = None
        if is_new:
            self.forget_answers()
        return is_new

    def drop(self, terms: Iterable[OwnedTerm]) -> bool:
        """A class of pods with these terms went; whether any was the last."""
        is_last = False
        for term in terms:
            self._owners[term] -= 1
            if not self._owners[term]:
                is_last = True
                del self._owners[term]
                for place in self._places(term):
                    del place[term]
        if is_last:
            self._near = {name: there for name, there in self._near.items() if there}
            self.forget_answers()
        return is_last

    def about(
        self, namespace: str, namespace_labels: Labels, labels: Labels
    ) -> tuple[frozenset[str], set[tuple[Stance, str]]]:
        """The labels that terms look at in a namespace; stance and topology key of those about a pod there."""
        terms = [*self._near.get(namespace, ()), *self._roaming]
        keys = self._keys.get(namespace)
        if keys is None:
            looked_at = (key for term in terms for key in term.peers.selector.keys)
            keys = self._keys[namespace] = frozenset(looked_at)
        return keys, {
            (term.stance, term.key)
            for term in terms
            if term.peers.include(namespace, namespace_labels, labels)
        }

    def forget_answers(self) -> None:
        """What was found of namespaces may be another by now."""
        self._keys = {}

    def _places(self, term: OwnedTerm) -> list[dict[OwnedTerm, None]]:
        if term.peers.namespace_selector != selectors.NOTHING:
            return [self._roaming]
        return [self._near.setdefault(name, {}) for name in term.peers.namespaces]
