"""The nodes on which the claims of one kind of pods can be used or bound; follows changes of volumes, classes and labels.

Nodes that all terms about volumes treat alike form a group, and each group is evaluated once. When a volume changes, only
the groups that can use the volume are evaluated again.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from scheduler.api.kube_plugins import Curve
from scheduler.api.selectors import Labels, NodeTerm
from scheduler.plugins import node_terms
from scheduler.plugins.volumes import choosing
from scheduler.plugins.volumes.choosing import Choice, Provisioning, There
from scheduler.plugins.volumes.index import ByLabel, Word, find_words
from scheduler.plugins.volumes.needs import Bound, Unbound
from scheduler.schema import shared
from scheduler.schema.columns import Flags, Ints
from scheduler.state.cluster import Cluster
from scheduler.state.volumes.objects import Capacity, Class, Terms, Volume

# The figures of a node: one for each reason that may refuse it, in the order of the reports, and its score.
AFFINITY, NO_MATCH, NO_ROOM, MISSING, SCORE, N_FIGURES = 0, 1, 2, 3, 4, 5
_NOTHING = Choice(0)


class _Group(NamedTuple):
    labels: Labels
    rows: Ints


class Verdict:
    """The state of all nodes for pods whose claims have these needs.

    Attributes:
        version: rises when any figure changes.
        figures: [N_FIGURES, N] 1 for a reason that refuses the node; the score 0..100.
    """

    def __init__(
        self,
        cluster: Cluster,
        bound: tuple[Bound, ...],
        unbound: tuple[Unbound, ...],
        curve: Curve,
    ) -> None:
        self._nodes, self._storage = cluster.nodes, cluster.storage
        self._bound = bound
        self._curve = shared.make_curve(curve)
        volumes = self._storage.volumes
        self._unbound = tuple(
            one._replace(
                own=tuple(
                    name
                    for name in one.own
                    if name in volumes and choosing.has_properties(one.wish, volumes[name])
                )
            )
            for one in unbound
        )
        self._own = {name for one in self._unbound for name in one.own}
        self._of_classes = {one.wish.of_class for one in unbound}
        self._seen: tuple[object, ...] = ()
        self._changed = 0
        self.version = 0
        self.figures: Ints = np.zeros((N_FIGURES, 0), np.int64)
        self._clear()

    def _clear(self) -> None:
        self._keys: tuple[str, ...] = ()
        self._groups: list[_Group] = []
        self._choices: list[Choice] = []
        self._group_of: Ints = np.zeros(0, np.int64)
        self._by_word: defaultdict[Word, list[int]] = defaultdict(list)
        self._there: dict[str, Volume] = {}
        self._near: ByLabel[str] = ByLabel()
        self._capacities: dict[tuple[str, str], Capacity] = {}
        self._room_near: ByLabel[tuple[str, str]] = ByLabel()
        self._provisioning = Provisioning({}, (), self._curve)

    def refresh(self) -> None:
        """Evaluate again the groups that changes since the last call may concern."""
        seen = self._read_versions()
        if seen != self._seen:
            self._seen, self._changed = seen, self._storage.changed.position
            self._judge_all()
            self.version += 1
        elif self._unbound and self._changed != self._storage.changed.position:
            changed = self._storage.changed.list_since(self._changed)
            self._changed = self._storage.changed.position
            if changed is None:
                self._judge_all()
                self.version += 1
            else:
                self._take_in_changes(list(changed))

    def get_choice(self, row: int) -> Choice:
        """Return the volumes that unbound claims get on the node of a row."""
        self.refresh()
        group = int(self._group_of[row]) if self._groups else -1
        return self._choices[group] if group >= 0 else _NOTHING

    def _read_versions(self) -> tuple[object, ...]:
        versions = self._storage.versions
        moved = any(one.plugin for one in self._bound)
        return (
            self._storage.labelled.position,
            self._nodes.capacity,
            versions["CSINode"] if moved else 0,
            versions["StorageClass"] if self._unbound else 0,
            versions["CSIDriver"] if self._unbound else 0,
            *(versions["CSIStorageCapacity", one] for one in sorted(self._of_classes)),
        )

    def _judge_all(self) -> None:
        nodes = self._nodes
        self.figures = np.zeros((N_FIGURES, nodes.capacity), np.int64)
        rows = np.array(sorted(nodes.rows.values()), np.int64)
        if rows.size:
            self._judge_bound(rows)
            if self._unbound:
                self._judge_unbound(rows)

    # Bound claims: the first claim that refuses the node gives the reason.

    def _judge_bound(self, rows: Ints) -> None:
        fine = np.ones(rows.size, np.bool_)
        for one in self._bound:
            if one.is_missing:
                self.figures[MISSING, rows[fine]] = 1
                return
            usable = self._find_usable(one.affinity, rows)
            if one.plugin:
                moved = self._find_moved(one.plugin, rows)
                usable = np.where(moved, self._find_usable(one.moved, rows), usable)
            self.figures[AFFINITY, rows[fine & ~usable]] = 1
            fine &= usable

    def _find_usable(self, terms: Terms, rows: Ints) -> Flags:
        if terms is None:
            return np.ones(rows.size, np.bool_)
        return node_terms.match_any(terms, self._nodes, rows)

    def _find_moved(self, plugin: str, rows: Ints) -> Flags:
        drivers = self._storage.uses.drivers
        told = (drivers.get(self._nodes.find_name(row)) for row in rows.tolist())
        return np.array([one is not None and plugin in one.moved for one in told], np.bool_)

    # Unbound claims.

    def _judge_unbound(self, rows: Ints) -> None:
        self._clear()
        storage = self._storage
        classes = {
            name: storage.classes[name] for name in self._of_classes if name in storage.classes
        }
        self._provisioning = Provisioning(
            classes,
            {name for name, one in classes.items() if self._tells_capacity(one)},
            self._curve,
        )
        names = {*self._own, *(name for one in self._of_classes for name in storage.list_free(one))}
        self._there = {name: storage.volumes[name] for name in sorted(names)}
        for name, volume in self._there.items():
            self._near.add(name, find_words(volume.affinity))
        for of_class in self._provisioning.telling:
            for capacity in storage.list_capacities(of_class):
                if capacity.nodes is not None:
                    self._capacities[capacity.key] = capacity
                    terms = (NodeTerm(capacity.nodes.requirements),)
                    self._room_near.add(capacity.key, find_words(terms))
        self._group_rows(rows)
        selected = {one.selected for one in self._unbound if one.selected is not None}
        if selected:
            # Only the selected node is possible; none, if claims have selected different nodes.
            only = rows[[self._nodes.find_name(row) in selected for row in rows.tolist()]]
            self.figures[NO_MATCH, rows] = 1
            if len(selected) == 1 and only.size:
                labels = self._get_labels(int(only[0]))
                self._groups = [_Group(labels, only)]
                self._group_of = np.full(self._nodes.capacity, -1, np.int64)
                self._group_of[only] = 0
            else:
                self._groups = []
        for number, group in enumerate(self._groups):
            words = ((key, group.labels[key]) for key in self._keys if key in group.labels)
            for word in words:
                self._by_word[word].append(number)
        self._choices = [_NOTHING] * len(self._groups)
        for number in range(len(self._groups)):
            self._choose_for_group(number)

    def _tells_capacity(self, of_class: Class) -> bool:
        driver = self._storage.drivers.get(of_class.provisioner)
        return driver is not None and driver.tells_capacity

    def _group_rows(self, rows: Ints) -> None:
        """Group the nodes by the values of the labels that any term reads."""
        terms = [
            *(one.affinity for one in self._there.values()),
            *(one.topologies for one in self._provisioning.classes.values()),
        ]
        keys = {one.key for found in terms for term in found or () for one in term.labels}
        for capacity in self._capacities.values():
            keys.update(capacity.nodes.keys if capacity.nodes is not None else ())
        self._keys = tuple(sorted(keys))
        numbers = np.zeros(rows.size, np.int64)
        for key in self._keys:
            column = self._nodes.get_label_column(key)[rows]
            numbers = numbers * (int(column.max()) + 2) + column + 1
            numbers = np.unique(numbers, return_inverse=True)[1].reshape(-1)
        order = np.argsort(numbers, kind="stable")
        starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
        self._groups = [
            _Group(self._get_labels(int(part[0])), part)
            for part in np.split(rows[order], starts[1:])
        ]
        self._group_of = np.full(self._nodes.capacity, -1, np.int64)
        self._group_of[rows] = numbers

    def _get_labels(self, row: int) -> Labels:
        facts = self._nodes.facts[row]
        return facts.labels if facts is not None else {}

    def _choose_for_group(self, number: int) -> None:
        labels, rows = self._groups[number]
        near = sorted(set(self._near.find_near(labels)))
        volumes = {
            name: self._there[name]
            for name in near
            if choosing.includes_node(self._there[name].affinity, labels)
        }
        capacities = [
            one
            for key in sorted(set(self._room_near.find_near(labels)))
            if (one := self._capacities[key]).nodes is not None and one.nodes.matches(labels)
        ]
        there = There(labels, volumes, capacities, self._own)
        choice = choosing.choose_volumes(self._unbound, there, self._provisioning)
        if choice != self._choices[number]:
            self.version += 1
        self._choices[number] = choice
        self.figures[NO_MATCH, rows] = choice.bits == choosing.NO_MATCH
        self.figures[NO_ROOM, rows] = choice.bits == choosing.NO_ROOM
        self.figures[SCORE, rows] = choice.score

    # Volumes that have changed.

    def _take_in_changes(self, changed: list[str]) -> None:
        concerned: dict[int, None] = {}
        for name in changed:
            old, new = self._there.get(name), self._get_usable_volume(name)
            if old == new:
                continue
            if new is not None and any(
                one.key not in self._keys for term in new.affinity or () for one in term.labels
            ):
                # The volume selects by a label by which the nodes are not grouped yet.
                self._judge_all()
                self.version += 1
                return
            for one in (old, new):
                if one is not None:
                    concerned.update(dict.fromkeys(self._list_groups(one.affinity)))
            if old is not None:
                del self._there[name]
                self._near.drop(name, find_words(old.affinity))
            if new is not None:
                self._there[name] = new
                self._near.add(name, find_words(new.affinity))
        for number in concerned:
            self._choose_for_group(number)

    def _get_usable_volume(self, name: str) -> Volume | None:
        volume = self._storage.volumes.get(name)
        if volume is None or name in self._own:
            return volume
        is_free = volume.of_class in self._of_classes and name in self._storage.list_free(
            volume.of_class
        )
        return volume if is_free else None

    def _list_groups(self, terms: Terms) -> list[int]:
        words = find_words(terms)
        if words is None:
            return list(range(len(self._groups)))
        return [number for word in words for number in self._by_word.get(word, ())]


class Figures:
    """One figure of a ``Verdict``, as a count that a tally reads."""

    def __init__(self, verdict: Verdict, figure: int) -> None:
        self._verdict, self._figure = verdict, figure

    @property
    def version(self) -> int:
        """Rises when the figure of any row may have changed."""
        self._verdict.refresh()
        return self._verdict.version

    def list_by_row(self, capacity: int) -> Ints:
        """[capacity] the figure of every row."""
        self._verdict.refresh()
        found: Ints = self._verdict.figures[self._figure, :capacity]
        return found


def get_verdict(
    cluster: Cluster, bound: tuple[Bound, ...], unbound: tuple[Unbound, ...], curve: Curve
) -> Verdict:
    """Return the state of all nodes for pods whose claims have these needs; it is kept while it is in use."""
    judged = cluster.storage.judged
    key = bound, unbound, curve
    found: Verdict | None = judged.get(key)
    if found is None:
        found = judged[key] = Verdict(cluster, bound, unbound, curve)
    return found
