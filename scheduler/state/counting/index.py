"""Rules about other pods, found by a pod that they may be about, and pods by a rule: neither scans all of the other."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

from scheduler.api import selectors
from scheduler.api.pods.affinity import Peers
from scheduler.api.selectors import Labels
from scheduler.state.structures.matching import Anchor, find_anchors, list_anchors

T = TypeVar("T", bound=Hashable)


class Place(NamedTuple):
    """Where something is kept; a namespace of None stands for all, an anchor of None for any labels."""

    namespace: str | None
    anchor: Anchor | None


class RuleIndex(Generic[T]):
    """Rules by the peers that they are about.

    Attributes:
        n_compared: how many selectors were compared with the labels of a pod.
    """

    def __init__(self) -> None:
        self._at: dict[Place, dict[T, Peers]] = {}
        # Of rules that are about any labels but some: the keys of these.
        self._keys: dict[T, frozenset[str]] = {}
        self.n_compared = 0

    def add(self, peers: Peers, rule: T) -> None:
        """A rule about these peers is there."""
        places = _places(peers)
        for place in places:
            self._at.setdefault(place, {})[rule] = peers
        if any(place.anchor is None for place in places):
            self._keys[rule] = frozenset(peers.selector.keys)

    def drop(self, peers: Peers, rule: T) -> None:
        """The rule is there no longer."""
        for place in _places(peers):
            there = self._at[place]
            del there[rule]
            if not there:
                del self._at[place]
        self._keys.pop(rule, None)

    def about(self, namespace: str, namespace_labels: Labels, labels: Labels) -> Iterator[T]:
        """The rules about a pod."""
        for name in (namespace, None):
            for anchor in list_anchors(labels):
                for rule, peers in self._at.get(Place(name, anchor), {}).items():
                    if name is None and not _is_within(peers, namespace, namespace_labels):
                        continue
                    if anchor is None and self._keys[rule].isdisjoint(labels):
                        # What it forbids is not there.
                        yield rule
                        continue
                    self.n_compared += 1
                    if peers.selector.matches(labels):
                        yield rule


def _is_within(peers: Peers, namespace: str, namespace_labels: Labels) -> bool:
    return namespace in peers.namespaces or peers.namespace_selector.matches(namespace_labels)


def _places(peers: Peers) -> list[Place]:
    names: tuple[str | None, ...] = peers.namespaces
    if peers.namespace_selector != selectors.NOTHING:
        names = (None,)
    return [Place(name, anchor) for name in names for anchor in find_anchors(peers.selector)]
