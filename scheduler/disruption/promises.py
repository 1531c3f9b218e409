"""Promised room: a node counts the pods that are nominated to it as if they already ran there.

A pod yields to nominated pods of its own priority or of a higher one. It has to fit both with these pods and without
them, because they may end up on other nodes. A pod also yields to the group that is promised room for a later time,
unless the pod will have ended by then. It has to fit beside the pods of that group once those in their way have ended.

A promise has the cards that were chosen when the victims were chosen: by the mode of the nominated pod, from the cards
that are free once all leaving pods have left. The cards are chosen anew each time in three cases: the nomination was
read from the API server, the cards do not suffice any more, or the room is promised for later.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from scheduler.api.cards import Grants, list_uses
from scheduler.disruption import protectors
from scheduler.disruption.plain import ByRow, PlainPromises
from scheduler.disruption.reserved import Reserved
from scheduler.placing.rooms import Rooms, are_by_cards, suffice_cards
from scheduler.schema import columns as c
from scheduler.shapes.boards import Boards, Key, Shape
from scheduler.shapes.keys import Keys
from scheduler.shapes.withheld import Withheld
from scheduler.state.cluster import Cluster
from scheduler.state.counting.owned import list_owned
from scheduler.state.pods import PodRecord
from scheduler.state.trials import Trial


class Promises:
    """What is promised on the nodes of one cluster.

    Attributes:
        n_trials: how many nodes have been tried by themselves so far.
    """

    def __init__(self, cluster: Cluster, boards: Boards, keys: Keys, rooms: Rooms) -> None:
        self._cluster, self._boards, self._rooms = cluster, boards, rooms
        self.make_key = keys.make_key
        self._plain = PlainPromises(cluster, boards, keys)
        self._nominations, self._later = cluster.nominations, cluster.later
        self.n_trials = 0
        self._looked_at = -1
        # The nodes of promised pods that say anything of other pods, with the labels that they look at.
        self._with_terms: dict[str, frozenset[str]] = {}
        self._labels_looked_at: frozenset[str] = frozenset()

    def choose_cards(self, pod: PodRecord, row: int, victims: Sequence[str]) -> Grants:
        """Choose the cards that a pod gets on a row once its victims and all leaving pods are gone.

        Empty if the pod requests no cards that are allocated one by one.
        """
        key = self.make_key(pod) if pod.template.most else None
        if key is None:
            return ()
        cluster, name = self._cluster, self._cluster.nodes.find_name(row)
        with self.keep_promises(self.list_before(pod, pod.uid, [name])) as trial:
            trial.take_away(*{*self._list_leaving(name, pod.priority), *victims})
            shape = self._boards.make_unscored(key)
            if not self.takes_cards(shape, row):
                return ()
            self._rooms.put(pod, shape, row)
            return cluster.pods[pod.uid].claim

    def find_own_cards(self, pod: PodRecord, shape: Shape, row: int) -> Grants:
        """Return the cards that were promised to a pod on a row, if they suffice for it now; else nothing."""
        cards = self._nominations.find_cards(pod.uid)
        if not cards or not are_by_cards(self._cluster, shape, row):
            return ()
        suffices = suffice_cards(self._cluster, self._boards, pod, shape, (row, cards))
        return cards if suffices else ()

    def tell_yielding(self, pod: PodRecord) -> Hashable:
        """Return a value that is equal for pods that yield to the same pods; None for a pod that yields to nobody."""
        if pod.priority > self._nominations.top and not self._cluster.is_bound_later(pod):
            return None
        return pod.priority, self.tell_apart(pod)

    def tell_apart(self, pod: PodRecord) -> Hashable:
        """Return a value that is equal for pods to which all promises mean the same, if their priority is the same.

        None if no promised pod has terms, and the pod need not regard what is promised for later.
        """
        later = self._later.find_share(pod.uid) or self._cluster.is_bound_later(pod)
        if not self._have_terms():
            return later or None
        looked_at = self._labels_looked_at
        labels = (pod.labels or {}).items()
        return pod.namespace, frozenset(one for one in labels if one[0] in looked_at), later

    @property
    def version(self) -> tuple[frozenset[str], int]:
        """The labels that promised pods look at, and the number of the promise for later.

        While these are the same, pods that yielded alike still do.
        """
        looked_at = self._labels_looked_at if self._have_terms() else frozenset[str]()
        return looked_at, self._later.number

    @property
    def are_any(self) -> bool:
        """Whether room is promised to any pod."""
        return bool(self._nominations) or self._later.room is not None

    def find_rows(self) -> c.Flags:
        """Find [N] the nodes on which room is promised to anybody."""
        nodes = self._cluster.nodes
        found = np.zeros(nodes.capacity, np.bool_)
        names = (*self._nominations.list_nodes(), *self._later.on)
        found[[row for row in map(nodes.find_row, names) if row >= 0]] = True
        return found

    def reach_beyond_nodes(self, key: Key) -> bool:
        """Whether promises may mean something for pods of a kind on nodes on which nothing is promised."""
        return key.view.is_wide or self._have_terms()

    def list_before(
        self, pod: PodRecord, but: str = "", nodes: Iterable[str] | None = None
    ) -> ByRow:
        """List by row the pods with promised room to which a pod yields; ``nodes`` are names, None: all nodes."""
        found: ByRow = {}
        later = self._later.on if self._cluster.is_bound_later(pod) else {}
        if nodes is None:
            nodes = dict.fromkeys((*self._nominations.list_nodes(), *later))
        pods = self._cluster.pods
        for name in nodes:
            row = self._cluster.nodes.find_row(name)
            first = [
                uid
                for uid, urgency in self._nominations.list_on(name).items()
                if urgency >= pod.priority
            ]
            # What a pod is promised now takes the place of what it was promised for later.
            then = (uid for uid in later.get(name, ()) if not self._nominations.find_node(uid))
            uids = dict.fromkeys((*first, *then))
            there = [pods[uid] for uid in uids if uid != but and uid in pods]
            there = [one for one in there if not one.node]
            if there and row >= 0:
                found[row] = sorted(there, key=lambda one: (-one.priority, one.order))
        return found

    @contextmanager
    def keep_promises(self, promised: ByRow, *, in_the_end: bool = False) -> Iterator[Trial]:
        """A quiet trial in which these pods are on their nodes.

        ``in_the_end``: pods that will have ended by the time of the promise for later are gone.
        """
        reserved = Reserved(self._cluster.cards.columns)
        try:
            with self._cluster.trial(is_quiet=True) as trial:
                shapes: dict[Key, Shape] = {}
                for row, pods in promised.items():
                    if in_the_end:
                        self.let_pods_end(trial, row, pods)
                    self._move_in(trial, row, pods, (reserved, shapes))
                yield trial
        finally:
            reserved.undo()

    def leaves_room(self, pod: PodRecord, rows: c.Ints, but: str = "") -> bool:
        """Whether what is promised on any of the rows, on which a pod fits, leaves room for it."""
        nodes = self._cluster.nodes
        before = self.list_before(pod, but, [nodes.find_name(row) for row in rows.tolist()])
        return len(before) < rows.size or bool((self.judge_beside(pod, before)[0] == 0).any())

    def find_refusals(self, pod: PodRecord, rows: c.Ints, words: int) -> c.Ints:
        """[words, n] why what is promised on n rows leaves no room for a pod; 0 where it does."""
        nodes, bits = self._cluster.nodes, np.zeros((words, rows.size), np.int64)
        before = self.list_before(pod, nodes=[nodes.find_name(row) for row in rows.tolist()])
        if before:
            at = {row: i for i, row in enumerate(rows.tolist())}
            bits[:, [at[row] for row in before]] = self.judge_beside(pod, before)
        return bits

    def judge_alone(self, pod: PodRecord, shape: Shape, rows: c.Ints) -> c.Ints:
        """[W, n] why a pod does not fit on n rows as they are; on its own node the cards that it was promised will do."""
        bits = self._boards.find_refusals(shape, rows)
        own = self._cluster.nodes.find_row(self._nominations.find_node(pod.uid))
        for i in np.flatnonzero(rows == own).tolist() if own >= 0 else ():
            if bits[0, i] and self.find_own_cards(pod, shape, own):
                bits[0, i] &= ~(1 << int(shape.ask.prefers.bits[c.BIT_CARDS]))
        return bits

    def judge_beside(self, pod: PodRecord, promised: ByRow) -> c.Ints:
        """[W, n] why a pod does not fit beside those nominated to n rows, in the order given; 0 where it does."""
        at = {row: i for i, row in enumerate(promised)}
        judged = [
            ([at[row] for row in part], self._judge_rows(pod, np.array(list(part), np.int64)))
            for part in self.try_parts(pod, promised, in_the_end=True)
        ]
        bits = np.zeros((len(judged[0][1]), len(at)), np.int64)
        for places, found in judged:
            bits[:, places] = found
        return bits

    def withhold(self, withheld: Withheld, pod: PodRecord, *, wide: bool) -> None:
        """Judge again the nodes on which anything has changed; ``pod`` is one of the kind, ``wide`` its view."""
        cluster = self._cluster
        now = cluster.moved.position, cluster.nominations.version
        capacity = cluster.nodes.capacity
        if withheld.seen == now and withheld.bits.shape[1] == capacity:
            return
        names = self._list_changed(withheld.seen, wide=wide)
        withheld.seen = now
        if withheld.bits.shape[1] != capacity:
            withheld.bits = np.zeros((len(withheld.bits), capacity), np.int64)
            names = None
        before = self.list_before(pod, nodes=names)
        if names is None:
            held = np.flatnonzero(withheld.bits[0])
        else:
            there = [row for row in map(cluster.nodes.find_row, names) if row >= 0]
            asked = np.array(there, np.int64)
            held = asked[withheld.bits[0, asked] != 0]
        withheld.bits[:, held] = 0
        rows = np.array(list(before), np.int64)
        if rows.size:
            withheld.bits[:, rows] = self.judge_beside(pod, before)
        if held.size or rows.size:
            withheld.changed = np.unique(np.concatenate((withheld.changed, held, rows)))

    def _list_changed(self, seen: tuple[int, int], *, wide: bool) -> set[str] | None:
        """The nodes to judge again; None for all."""
        cluster, (moved, version) = self._cluster, seen
        if moved < 0 or (wide and moved != cluster.moved.position):
            return None
        rows = cluster.moved.list_since(moved)
        names = cluster.nominations.list_since(version)
        if rows is None or names is None:
            return None
        facts = cluster.nodes.facts
        return names | {one.name for row in rows.tolist() if (one := facts[row]) is not None}

    def try_parts(
        self, pod: PodRecord, promised: ByRow, *, in_the_end: bool = False
    ) -> Iterator[ByRow]:
        """Its parts, each while those pods are on their nodes: what is promised elsewhere in a domain does not count.

        The nodes are one part on which only amounts are promised, and the others are one, unless somebody there is counted
        for the pod, or says something of it. ``in_the_end``: as for ``keep_promises``.
        """
        plain = {} if self._have_terms() else self._plain.list_plain(pod, promised)
        if plain:
            amounts = [(one.template, row) for row, pods in plain.items() for one in pods]
            with self._cluster.ledger.add_amounts(amounts):
                yield plain
        promised = {row: pods for row, pods in promised.items() if row not in plain}
        if promised:
            yield from self._try_others(pod, promised, in_the_end=in_the_end)

    def _try_others(self, pod: PodRecord, promised: ByRow, *, in_the_end: bool) -> Iterator[ByRow]:
        key = self.make_key(pod)
        is_alone = key is None or not (key.view.is_wide or self._have_terms())
        counted = self._boards.make_unscored(key).counted if key is not None else None
        versions = counted.read_versions() if counted is not None else ()
        with self.keep_promises(promised, in_the_end=in_the_end):
            if is_alone or (
                counted is not None
                and counted.read_versions() == versions
                and self.make_key(pod) == key
            ):
                yield promised
                return
        self.n_trials += len(promised)
        for row, pods in promised.items():
            with self.keep_promises({row: pods}, in_the_end=in_the_end):
                yield {row: pods}

    def _judge_rows(self, pod: PodRecord, rows: c.Ints) -> c.Ints:
        key = self.make_key(pod)
        if key is None:
            # Nothing is decided for a pod on which something must be mended.
            return np.zeros((1, rows.size), np.int64)
        return self.judge_alone(pod, self._boards.make_unscored(key), rows)

    def let_pods_end(self, trial: Trial, row: int, pods: Sequence[PodRecord]) -> None:
        """Take the pods away that will have ended when the promise for later falls due, if it is all that counts."""
        cluster, room = self._cluster, self._later.room
        name = cluster.nodes.find_name(row)
        if room is None or any(pod.uid not in room.on.get(name, ()) for pod in pods):
            return
        going, now, until = self._nominations.going, cluster.now, room.until
        there = cluster.pods_on.get(name, {}).values()
        find_end = cluster.ends.find_end
        trial.take_away(
            *(one.uid for one in there if find_end(one, now, is_leaving=one.uid in going) <= until)
        )

    def _move_in(
        self,
        trial: Trial,
        row: int,
        pods: Sequence[PodRecord],
        kept: tuple[Reserved, dict[Key, Shape]],
    ) -> None:
        """Put pods on the row that is promised to them; ``kept`` is what the trial keeps, with the shapes of like pods."""
        leaving = self._list_leaving(self._cluster.nodes.find_name(row), pods[0].priority)
        leaving += self._list_leaving_elsewhere(pods, leaving)
        trial.take_away(*leaving)
        for pod in pods:
            self._promise(pod, row, *kept)
        for uid in leaving:
            trial.put_back(uid)

    def _list_leaving(self, node: str, priority: int) -> list[str]:
        """Who is on the way out of a node, of those that go for a pod of a priority."""
        going, there = self._nominations.going, self._cluster.pods_on.get(node, {})
        return [
            one.uid
            for one in there.values()
            if (one.deleting or one.uid in going) and protectors.outranks(priority, one.priority)
        ]

    def _list_leaving_elsewhere(
        self, pods: Sequence[PodRecord], leaving: Sequence[str]
    ) -> list[str]:
        """Who is on the way out of other nodes for promised pods with claims, beside those who are ``leaving``."""
        uids = {pod.uid for pod in pods if self._cluster.claims.has_claims(pod)}
        known, away = self._cluster.pods, {*leaving}
        going = self._nominations.going.items() if uids else ()
        return [
            uid
            for uid, room in going
            if room in uids and uid not in away and uid in known and known[uid].node
        ]

    def _promise(
        self, pod: PodRecord, row: int, reserved: Reserved, shapes: dict[Key, Shape]
    ) -> None:
        """Charge a pod to the row that it is promised, with its cards."""
        cluster, name = self._cluster, self._cluster.nodes.find_name(row)
        # Most pods ask no cards, and are charged without being asked what they are.
        has_claims = cluster.claims.has_claims(pod)
        key = self.make_key(pod) if pod.template.most or has_claims else None
        if key is None:
            cluster.assume(pod.uid, name, ())
            return
        if (shape := shapes.get(key)) is None:
            shape = shapes[key] = self._boards.make_unscored(key)
        cards = self.find_own_cards(pod, shape, row)
        takes_devices = has_claims and not self._boards.find_refusals(shape, np.array([row]))[0, 0]
        if not takes_devices and (cards or not self.takes_cards(shape, row)):
            cluster.assume(pod.uid, name, cards)
        else:
            self._rooms.put(pod, shape, row)
        uses = list_uses(cluster.pods[pod.uid].claim)
        if not uses:
            return
        there = cluster.registers.list_all_cards(pod.uid, row)
        if shape.ask.rules.mutex:
            reserved.close(there[use.uuid] for use in uses)
        reserved.keep_a_core(there[use.uuid] for use in uses if not use.cores)

    def takes_cards(self, shape: Shape, row: int) -> bool:
        """Whether cards are to be chosen for a pod on a row, and suffice."""
        if not are_by_cards(self._cluster, shape, row):
            return False
        bits = self._boards.find_refusals(shape, np.array([row], np.int64))
        short = 1 << int(shape.ask.prefers.bits[c.BIT_CARDS]) | 1 << int(
            shape.ask.prefers.bits[c.BIT_RESOURCES]
        )
        return not bits[0, 0] & short

    def _have_terms(self) -> bool:
        """Whether a promised pod says anything of other pods."""
        nominations, pods, later = self._nominations, self._cluster.pods, self._later.on
        if self._looked_at != nominations.version:
            names = nominations.list_since(self._looked_at) if self._looked_at >= 0 else None
            if names is None:
                self._with_terms.clear()
            self._looked_at = nominations.version
            for name in {*nominations.list_nodes(), *later} if names is None else names:
                uids = (*nominations.list_on(name), *later.get(name, ()))
                there = [pods[uid] for uid in uids if uid in pods]
                if any(pod.template.has_terms for pod in there):
                    self._with_terms[name] = frozenset(
                        key for pod in there for key in _list_looked_at(pod)
                    )
                else:
                    self._with_terms.pop(name, None)
            self._labels_looked_at = frozenset().union(*self._with_terms.values())
        return bool(self._with_terms)


def _list_looked_at(pod: PodRecord) -> Iterator[str]:
    """The labels of other pods that a pod's terms look at."""
    for term in list_owned(pod.template, pod.namespace, pod.labels or {}):
        yield from term.peers.selector.keys
