"""Finds the waiting pods that are concerned if another pod comes to a node or leaves it.

Kernels compare a pod with what thousands of waiting pods look for, and the terms of a pod with what other pods see of
each waiting pod.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple

from scheduler.api.pods.affinity import Peers
from scheduler.api.selectors import Labels
from scheduler.schema.columns import Ints
from scheduler.state.counting.classes import TermView
from scheduler.state.counting.index import RuleIndex
from scheduler.state.counting.records import ComparedPod, write_labels
from scheduler.state.structures.matching import Anchor, find_anchors, list_anchors

_Kind = Hashable


class Seekers:
    """Kinds by the peers that they look for."""

    def __init__(self) -> None:
        self._index: RuleIndex[Peers] = RuleIndex()
        self._kinds: dict[Peers, dict[_Kind, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def add(self, kind: _Kind, peers: Peers) -> None:
        """A kind looks for these."""
        if peers not in self._kinds:
            self._kinds[peers] = {}
            self._index.add(peers, peers)
        self._kinds[peers][kind] = None

    def drop(self, kind: _Kind, peers: Peers) -> None:
        """It does so no longer; nothing when it did not."""
        there = self._kinds.get(peers)
        if there is None:
            return
        there.pop(kind, None)
        if not there:
            del self._kinds[peers]
            self._index.drop(peers)

    def find(self, namespace: str, namespace_labels: Labels, labels: Labels) -> Iterator[_Kind]:
        """The kinds that look for a pod."""
        for number in self._index.about(namespace, namespace_labels, labels).tolist():
            peers = self._index.rules[number]
            yield from self._kinds.get(peers, ()) if peers is not None else ()


class _Place(NamedTuple):
    """Where a kind is kept; an anchor of None stands for any labels."""

    namespace: str
    anchor: Anchor | None


class Shunned:
    """Kinds by what terms of pods on nodes see of them."""

    def __init__(self) -> None:
        # With the labels as a kernel compares them.
        self._at: dict[_Place, dict[tuple[TermView, _Kind], Ints]] = {}

    def __bool__(self) -> bool:
        return bool(self._at)

    def add(self, kind: _Kind, seen: TermView) -> None:
        """A kind is seen so."""
        labels = write_labels(dict(seen.labels))
        for place in _list_places(seen):
            self._at.setdefault(place, {})[seen, kind] = labels

    def drop(self, kind: _Kind, seen: TermView) -> None:
        """It is so no longer; nothing when it was not."""
        for place in _list_places(seen):
            there = self._at.get(place, {})
            there.pop((seen, kind), None)
            if not there:
                self._at.pop(place, None)

    def find(self, terms: Iterable[Peers], labels_of: Mapping[str, Labels]) -> Iterator[_Kind]:
        """The kinds that any of these terms is about, of these namespaces and their labels; some of them twice."""
        index: RuleIndex[Peers] = RuleIndex()
        anchors: dict[Anchor | None, None] = {}
        for peers in dict.fromkeys(terms):
            index.add(peers, peers)
            anchors.update(dict.fromkeys(find_anchors(peers.selector)))
        for namespace, namespace_labels in labels_of.items():
            there = write_labels(namespace_labels)
            is_meant: dict[TermView, bool] = {}
            for anchor in anchors:
                for (seen, kind), labels in self._at.get(_Place(namespace, anchor), {}).items():
                    if seen not in is_meant:
                        pod = ComparedPod(hash(namespace), there, labels)
                        is_meant[seen] = index.find(pod).size > 0
                    if is_meant[seen]:
                        yield kind

    def namespaces(self) -> set[str]:
        """Where there are any."""
        return {place.namespace for place in self._at}


def _list_places(seen: TermView) -> list[_Place]:
    return [_Place(seen.namespace, anchor) for anchor in list_anchors(dict(seen.labels))]
