"""Rules about other pods, found by a pod that they may be about, and pods by a rule: neither scans all of the other."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar

from scheduler.api import selectors
from scheduler.api.packing import PackedTexts
from scheduler.api.pods.affinity import Peers
from scheduler.api.selectors import Labels, Selector
from scheduler.state.counting.lists import ValueLists
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
        self._lists: dict[Place, ValueLists[T]] = {}
        # Of rules that are about any labels but some: the keys of these.
        self._keys: dict[T, frozenset[str]] = {}
        # The last pod that was asked about, and the rules about it: each pod is asked about twice.
        self._last: tuple[object, list[T]] | None = None
        self.n_compared = 0

    def add(self, peers: Peers, rule: T) -> None:
        """A rule about these peers is there."""
        self._last = None
        places, values = _places(peers), _find_list(peers.selector)
        for place in places:
            if values:
                self._lists.setdefault(place, ValueLists()).add(rule, values, peers)
            else:
                self._at.setdefault(place, {})[rule] = peers
        if any(place.anchor is None for place in places):
            self._keys[rule] = frozenset(peers.selector.keys)

    def drop(self, peers: Peers, rule: T) -> None:
        """The rule is there no longer."""
        self._last = None
        has_list = _find_list(peers.selector) is not None
        for place in _places(peers):
            if has_list:
                self._lists[place].drop(rule)
                if not self._lists[place]:
                    del self._lists[place]
            else:
                del self._at[place][rule]
                if not self._at[place]:
                    del self._at[place]
        self._keys.pop(rule, None)

    def about(self, namespace: str, namespace_labels: Labels, labels: Labels) -> list[T]:
        """The rules about a pod."""
        pod = namespace, frozenset(namespace_labels.items()), frozenset(labels.items())
        if self._last is None or self._last[0] != pod:
            found = list(self._find(namespace, namespace_labels, labels))
            found += self._find_by_value(namespace, namespace_labels, labels)
            self._last = pod, found
        return self._last[1]

    def _find_by_value(
        self, namespace: str, namespace_labels: Labels, labels: Labels
    ) -> Iterator[T]:
        """Those among the rules about one label of very many values."""
        for name in (namespace, None) if self._lists else ():
            for key, value in labels.items():
                lists = self._lists.get(Place(name, (key, None)))
                for rule, peers in lists.find(value) if lists else ():
                    self.n_compared += 1
                    if name is not None or _is_within(peers, namespace, namespace_labels):
                        yield rule

    def _find(self, namespace: str, namespace_labels: Labels, labels: Labels) -> Iterator[T]:
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


def _find_list(selector: Selector) -> PackedTexts | None:
    """The values of a selector that selects by very many values of one label; else None."""
    if len(selector.requirements) == 1:
        (one,) = selector.requirements
        if one.operator == "In" and isinstance(one.values, PackedTexts):
            return one.values
    return None


def _is_within(peers: Peers, namespace: str, namespace_labels: Labels) -> bool:
    return namespace in peers.namespaces or peers.namespace_selector.matches(namespace_labels)


def _places(peers: Peers) -> list[Place]:
    names: tuple[str | None, ...] = peers.namespaces
    if peers.namespace_selector != selectors.NOTHING:
        names = (None,)
    return [Place(name, anchor) for name in names for anchor in find_anchors(peers.selector)]
