"""Finds the waiting pods that are concerned if another pod comes to a node or leaves it.

Found by namespace and by a label that they must have, so that thousands who look for others cost nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple

from scheduler.api import selectors
from scheduler.api.pods.affinity import Peers
from scheduler.api.selectors import Labels
from scheduler.state.counting.classes import Seen
from scheduler.state.structures.matching import Anchor, find_anchors, list_anchors

_Kind = Hashable


class _Place(NamedTuple):
    """Where something is kept; a namespace of None stands for all, an anchor of None for any labels."""

    namespace: str | None
    anchor: Anchor | None


class Seekers:
    """Kinds by the peers that they look for."""

    def __init__(self) -> None:
        self._at: dict[_Place, dict[tuple[Peers, _Kind], None]] = {}

    def __bool__(self) -> bool:
        return bool(self._at)

    def add(self, kind: _Kind, peers: Peers) -> None:
        """A kind looks for these."""
        for place in _places(peers):
            self._at.setdefault(place, {})[peers, kind] = None

    def drop(self, kind: _Kind, peers: Peers) -> None:
        """It does so no longer; nothing when it did not."""
        for place in _places(peers):
            there = self._at.get(place, {})
            there.pop((peers, kind), None)
            if not there:
                self._at.pop(place, None)

    def of(self, namespace: str, namespace_labels: Labels, labels: Labels) -> Iterator[_Kind]:
        """The kinds that look for a pod."""
        for there in (namespace, None):
            for anchor in list_anchors(labels):
                for peers, kind in self._at.get(_Place(there, anchor), ()):
                    if peers.include(namespace, namespace_labels, labels):
                        yield kind


def _places(peers: Peers) -> list[_Place]:
    names: tuple[str | None, ...] = peers.namespaces
    if peers.namespace_selector != selectors.NOTHING:
        names = (None,)
    return [_Place(name, anchor) for name in names for anchor in find_anchors(peers.selector)]


class Shunned:
    """Kinds by what terms of pods on nodes see of them."""

    def __init__(self) -> None:
        self._at: dict[_Place, dict[tuple[Seen, _Kind], None]] = {}

    def __bool__(self) -> bool:
        return bool(self._at)

    def add(self, kind: _Kind, seen: Seen) -> None:
        """A kind is seen so."""
        for place in self._places(seen):
            self._at.setdefault(place, {})[seen, kind] = None

    def drop(self, kind: _Kind, seen: Seen) -> None:
        """It is so no longer; nothing when it was not."""
        for place in self._places(seen):
            there = self._at.get(place, {})
            there.pop((seen, kind), None)
            if not there:
                self._at.pop(place, None)

    def by(self, peers: Peers, labels_of: Mapping[str, Labels]) -> Iterator[_Kind]:
        """The kinds that a term is about, of these namespaces and their labels."""
        for namespace, namespace_labels in labels_of.items():
            for anchor in find_anchors(peers.selector):
                for seen, kind in self._at.get(_Place(namespace, anchor), ()):
                    if peers.include(namespace, namespace_labels, dict(seen.labels)):
                        yield kind

    def namespaces(self) -> set[str]:
        """Where there are any."""
        return {place.namespace for place in self._at if place.namespace is not None}

    @staticmethod
    def _places(seen: Seen) -> list[_Place]:
        return [_Place(seen.namespace, anchor) for anchor in list_anchors(dict(seen.labels))]
