"""Finds the kinds of waiting pods that another pod could help when it comes to a node or leaves a node.

``Seekers`` compares that pod with the selectors of the waiting pods' own terms. ``Shunned`` compares the terms of that
pod with the labels of the waiting pods. Kernels do both for thousands of kinds at once.
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
    """Kinds of pods by the peers that their terms select."""

    def __init__(self) -> None:
        self._index: RuleIndex[Peers] = RuleIndex()
        self._kinds: dict[Peers, dict[_Kind, None]] = {}

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def add(self, kind: _Kind, peers: Peers) -> None:
        """Note that a kind has a term that selects these peers."""
        if peers not in self._kinds:
            self._kinds[peers] = {}
            self._index.add(peers, peers)
        self._kinds[peers][kind] = None

    def drop(self, kind: _Kind, peers: Peers) -> None:
        """Forget that a kind selects these peers; nothing when it is not noted."""
        there = self._kinds.get(peers)
        if there is None:
            return
        there.pop(kind, None)
        if not there:
            del self._kinds[peers]
            self._index.drop(peers)

    def find(self, namespace: str, namespace_labels: Labels, labels: Labels) -> Iterator[_Kind]:
        """Find the kinds whose terms select a pod with these labels in this namespace."""
        for number in self._index.find_about(namespace, namespace_labels, labels).tolist():
            peers = self._index.rules[number]
            yield from self._kinds.get(peers, ()) if peers is not None else ()


class _Place(NamedTuple):
    """The key under which ``Shunned`` keeps a kind; an anchor of None stands for any labels."""

    namespace: str
    anchor: Anchor | None


class Shunned:
    """Kinds of pods by what the anti-affinity terms of pods on nodes see of them: namespace and labels."""

    def __init__(self) -> None:
        # Beside each kind its labels, in the form that a kernel compares.
        self._at: dict[_Place, dict[tuple[TermView, _Kind], Ints]] = {}

    def __bool__(self) -> bool:
        return bool(self._at)

    def add(self, kind: _Kind, seen: TermView) -> None:
        """Note how terms see a kind."""
        labels = write_labels(dict(seen.labels))
        for place in _list_places(seen):
            self._at.setdefault(place, {})[seen, kind] = labels

    def drop(self, kind: _Kind, seen: TermView) -> None:
        """Forget how terms see a kind; nothing when it is not noted."""
        for place in _list_places(seen):
            there = self._at.get(place, {})
            there.pop((seen, kind), None)
            if not there:
                self._at.pop(place, None)

    def find(self, terms: Iterable[Peers], labels_of: Mapping[str, Labels]) -> Iterator[_Kind]:
        """Find the kinds in these namespaces that any of these terms selects; some kinds come twice.

        ``labels_of`` has the labels of each namespace.
        """
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

    def list_namespaces(self) -> set[str]:
        """List the namespaces that the kinds are in."""
        return {place.namespace for place in self._at}


def _list_places(seen: TermView) -> list[_Place]:
    return [_Place(seen.namespace, anchor) for anchor in list_anchors(dict(seen.labels))]
