"""Counts of pods for rules about other pods, kept up for as long as they are in use.

A class of pods is matched against a rule once, and not each of its pods on every node. Classes are kept from the
first count on, or from the first pod with terms that has a node; in a cluster without such rules they cost nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from weakref import WeakValueDictionary

from scheduler.api import names
from scheduler.api.pods.affinity import Peers
from scheduler.api.selectors import Labels
from scheduler.schema.columns import Ints
from scheduler.state.counting.classes import (
    Class,
    ClassKey,
    Numbered,
    OwnerCount,
    PeerCount,
    TermView,
    make_key,
)
from scheduler.state.counting.counters import Counters
from scheduler.state.counting.counts import Count
from scheduler.state.counting.owned import Group, OwnedTerms, Stance, list_owned
from scheduler.state.counting.places import Places
from scheduler.state.pods import PodRecord

_NO_LABELS: dict[str, str] = {}


class Terms:
    """The classes of pods on nodes, the counts that are in use, and the terms that pods on nodes have.

    Attributes:
        owned: the terms.
        counters: the counts, found by the classes that they count.
        version: changes whenever an answer about a pod may change though nothing on the pod has changed. No
            number comes twice, but a trial that is rolled back restores the number of before.
    """

    def __init__(self, on_nodes: Callable[[], Iterable[tuple[int, PodRecord]]]) -> None:
        """``on_nodes`` lists all pods that are charged to a node, with the row of the node."""
        self._on_nodes = on_nodes
        self._is_kept = False
        self._classes: dict[ClassKey, Class] = {}
        self._numbered = Numbered()
        self._namespaces: dict[str, dict[str, str]] = {}
        self._counts: WeakValueDictionary[object, Count] = WeakValueDictionary()
        self._places = Places()
        self.counters = Counters(self.find_labels, self._places)
        self.owned = OwnedTerms()
        self._versions = itertools.count(1)
        self.version = 0

    @property
    def has_owners(self) -> bool:
        """Whether any pod on a node may have terms about other pods."""
        return self.owned.are_there

    def follow_pod(self, pod: PodRecord, node_row: int, sign: int) -> None:
        """Note that a pod came to a node (1), or left it (-1)."""
        if not self._is_kept:
            if not pod.template.has_terms:
                return
            # To begin with all pods with terms at the first count would take a second in a cluster that has many.
            self._keep(but=pod.uid)
        key = make_key(pod)
        one = self._classes.get(key) or self._begin(key, pod)
        for count, each in self.counters.find_counts(one.number):
            count.change(node_row, sign * each)
        if not self._places.change(one.number, node_row, sign):
            self._end(key, one)

    def ignores(self, pods: Sequence[PodRecord]) -> bool:
        """Whether none of these pods has terms, while nobody counts pods."""
        # Thousands of pods have a few templates.
        templates = {pod.template for pod in pods}
        return not self._is_kept and not any(one.has_terms for one in templates)

    def find_counts(self, pod: PodRecord) -> Iterator[tuple[Count, int]]:
        """Find the counts that count a pod on a node, and what the pod adds to each."""
        one = self._classes.get(make_key(pod))
        return self.counters.find_counts(one.number) if one else iter(())

    def count_peers(self, all_of: tuple[Peers, ...], *, with_deleting: bool) -> Count:
        """Count the pods on each row that are among all of these peers; the count is kept up as long as it is in use."""
        key = all_of, with_deleting
        found = self._counts.get(key)
        if found is None:
            self._keep()
            made = PeerCount(all_of, with_deleting=with_deleting)
            classes = self._numbered.list_among(
                all_of, self.find_labels, with_deleting=with_deleting
            )
            self.counters.add_peers(made, classes)
            found = self._counts[key] = made
        return found

    def count_owners(self, seen: TermView, stance: Stance, key: str) -> Count:
        """Sum up the weights of the terms on each row that are about a pod; kept up likewise."""
        by = seen, stance, key
        found = self._counts.get(by)
        if found is None:
            self._keep()
            made = OwnerCount(seen, stance, key)
            self.counters.add_owners(made, self._weigh(made))
            found = self._counts[by] = made
        return found

    def find_about(
        self, namespace: str, labels: Labels
    ) -> tuple[Callable[[str], bool], set[Group]]:
        """Return whether terms of pods on nodes look at a label in a namespace, and what the terms about a pod mean.

        What they mean is given as stance and topology key.
        """
        self._keep()
        return self.owned.find_about(namespace, self.find_labels(namespace), labels)

    def see_namespace(self, name: str, labels: dict[str, str]) -> bool:
        """Take over the labels of a namespace; return whether this may change an answer about a waiting pod."""
        if self._namespaces.get(name) == labels:
            return False
        self._namespaces[name] = dict(labels)
        self.version = next(self._versions)
        for one in self._numbered.list_within(name):
            self.counters.withdraw(one.number)
            self.counters.introduce(one)
        for count in self.counters.list_owner_counts(name):
            self.counters.recount(count, self._weigh(count))
        return self._is_kept

    def find_labels(self, namespace: str) -> Labels:
        """Return the labels of a namespace, its name among them."""
        return {names.NAMESPACE_NAME: namespace, **self._namespaces.get(namespace, {})}

    def read_held(self) -> dict[ClassKey, dict[int, int]] | None:
        """Return how many pods of each class are on each row; None as long as no count is in use."""
        if not self._is_kept:
            return None
        return {key: self._places.get_rows(one.number) for key, one in self._classes.items()}

    def _keep(self, but: str = "") -> None:
        """Keep the classes of all pods on nodes from now on; the pod of the uid ``but`` is left out."""
        if not self._is_kept:
            self._is_kept = True
            for row, pod in self._on_nodes():
                if pod.uid != but:
                    self.follow_pod(pod, row, 1)

    def _begin(self, key: ClassKey, pod: PodRecord) -> Class:
        labels = pod.labels or _NO_LABELS
        owned = list_owned(pod.template, pod.namespace, labels)
        one = Class(pod.namespace, labels, pod.deleting, owned, self._numbered.find_free_number())
        self._classes[key] = one
        self._numbered.add(one)
        if owned and self.owned.add(owned, one.number):
            self.version = next(self._versions)
        self.counters.introduce(one)
        return one

    def _end(self, key: ClassKey, one: Class) -> None:
        del self._classes[key]
        self.counters.leave(one.number)
        if one.owned and self.owned.drop(one.number):
            self.version = next(self._versions)
        self._numbered.drop(one)
        self.counters.trim(self._numbered.end)

    def _weigh(self, count: OwnerCount) -> tuple[Ints, Ints]:
        """Return [k] the classes that add to a count, and [k] what a pod of each adds."""
        there = self.find_labels(count.namespace)
        return self.owned.weigh(count.namespace, there, count.labels, count.group)
