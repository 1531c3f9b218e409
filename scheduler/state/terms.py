"""Pods counted by what rules about other pods say of them, for as long as somebody looks.

Pods on nodes that such rules cannot tell apart are a class: they are in one namespace, have the same labels,
and are being deleted or not. A class is matched against a rule once, and not each of its pods on every node.
Classes are kept from the first time that anybody looks on; in a cluster without such rules they cost nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from weakref import WeakValueDictionary, ref

from scheduler.api import names
from scheduler.api.affinity import Peers
from scheduler.api.selectors import Labels
from scheduler.state.counts import Count
from scheduler.state.pods import PodRecord

_Key = tuple[str, frozenset[tuple[str, str]], bool]
_NO_LABELS: dict[str, str] = {}


@dataclass(slots=True, eq=False)
class _Class:
    """Pods that rules about other pods cannot tell apart: how many are on which row, and who counts them."""

    namespace: str
    labels: Labels
    deleting: bool
    rows: Counter[int] = field(default_factory=Counter)
    counts: list[ref[PeerCount]] = field(default_factory=list)


class PeerCount(Count):
    """How many pods on each row are among all of several sets of peers."""

    __slots__ = ("_all_of", "_with_deleting")

    def __init__(self, all_of: tuple[Peers, ...], *, with_deleting: bool) -> None:
        super().__init__(0)
        self._all_of, self._with_deleting = all_of, with_deleting

    def includes(self, one: _Class, namespace_labels: Labels) -> bool:
        """Whether pods of a class are counted."""
        if one.deleting and not self._with_deleting:
            return False
        return all(
            peers.include(one.namespace, namespace_labels, one.labels) for peers in self._all_of
        )


class Terms:
    """The classes of pods on nodes, and the counts that somebody looks at.

    Attributes:
        version: rises when an answer about a pod may be another though nothing on the pod has changed.
    """

    def __init__(self, on_nodes: Callable[[], Iterable[tuple[int, PodRecord]]]) -> None:
        """``on_nodes``: all pods that are charged to a node, with its row."""
        self._on_nodes = on_nodes
        self._is_kept = False
        self._classes: dict[_Key, _Class] = {}
        self._namespaces: dict[str, dict[str, str]] = {}
        self._counts: WeakValueDictionary[tuple[tuple[Peers, ...], bool], PeerCount] = (
            WeakValueDictionary()
        )
        self.version = 0

    def __len__(self) -> int:
        return len(self._classes)

    def follow(self, pod: PodRecord, node_row: int, sign: int) -> None:
        """A pod came to a node (1), or left it (-1)."""
        if not self._is_kept:
            return
        labels = pod.labels or _NO_LABELS
        key = pod.namespace, frozenset(labels.items()), pod.deleting
        one = self._classes.get(key)
        if one is None:
            one = self._classes[key] = _Class(pod.namespace, labels, pod.deleting)
            self._introduce(one, self._counts.values())
        one.rows[node_row] += sign
        for reference in one.counts:
            count = reference()
            if count is not None:
                count.change(node_row, sign)
        if not one.rows[node_row]:
            del one.rows[node_row]
            if not one.rows:
                del self._classes[key]

    def counting(self, all_of: tuple[Peers, ...], *, with_deleting: bool) -> PeerCount:
        """The pods on each row that are among all of these peers, kept up as long as somebody has it."""
        self._keep()
        key = all_of, with_deleting
        found = self._counts.get(key)
        if found is None:
            found = PeerCount(all_of, with_deleting=with_deleting)
            for one in self._classes.values():
                # Counts that are gone are let go of when there is a new one.
                one.counts = [reference for reference in one.counts if reference() is not None]
                self._introduce(one, (found,))
            self._counts[key] = found
        return found

    def held(self) -> dict[_Key, dict[int, int]] | None:
        """How many pods of each class are on each row; None as long as nobody has looked."""
        if not self._is_kept:
            return None
        return {key: dict(one.rows) for key, one in self._classes.items()}

    def see_namespace(self, name: str, labels: dict[str, str]) -> bool:
        """A namespace was added or changed; whether anything about it is new."""
        if self._namespaces.get(name) == labels:
            return False
        self._namespaces[name] = dict(labels)
        self.version += 1
        for one in self._classes.values():
            if one.namespace == name:
                self._withdraw(one)
                self._introduce(one, self._counts.values())
        return True

    def labels_of(self, namespace: str) -> Labels:
        """The labels of a namespace, its name among them."""
        return {names.NAMESPACE_NAME: namespace, **self._namespaces.get(namespace, {})}

    def _keep(self) -> None:
        if not self._is_kept:
            self._is_kept = True
            for row, pod in self._on_nodes():
                self.follow(pod, row, 1)

    def _introduce(self, one: _Class, counts: Iterable[PeerCount]) -> None:
        """Add the pods of a class to the counts that include it."""
        namespace_labels = self.labels_of(one.namespace)
        for count in counts:
            if count.includes(one, namespace_labels):
                one.counts.append(ref(count))
                for row, n in one.rows.items():
                    count.change(row, n)

    def _withdraw(self, one: _Class) -> None:
        """Take the pods of a class out of all counts."""
        for reference in one.counts:
            count = reference()
            if count is not None:
                for row, n in one.rows.items():
                    count.change(row, -n)
        one.counts = []
