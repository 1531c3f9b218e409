"""Tries to move a set of pods, one after the other, on the cluster itself.

A move is tried as it would come about. Most controllers make a successor as soon as a pod begins to end: the successor is
placed while the pod still holds its place, then the pod is gone, then those that wait have their turn. A StatefulSet makes
it when the pod is gone: those that wait and that the scheduler would try before a new pod have their turn first. So it is
where the successor has no room before.

The scheduler puts the successor where it would put it, also on or beside its old place: then nothing has moved, and the try
has failed. So no plan hangs on where the new pod is sent, and what was moved does not come back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import structs

from scheduler.defrag.contract import Freed, Held, LetIn, Move, Seat, Terms, What
from scheduler.defrag.waiters import Waiters
from scheduler.defrag.whole import Gauge, Whole
from scheduler.state.cluster import Cluster
from scheduler.state.pods import Life, PodRecord

# The end of the uid of a successor; no object has such a uid.
_SUCCESSOR = "/successor"


class Bundle(NamedTuple):
    """Moves that were tried together.

    Attributes:
        moves: in their order; what is whole after each is no less than before the first.
        gain: cards and nodes that are whole after the last one and were not before, and pods that were let in.
        weight: GPU memory in MiB, memory in bytes and CPU in milli of all that moves.
    """

    moves: tuple[Move, ...]
    gain: int
    weight: tuple[int, int, int]

    @property
    def uids(self) -> tuple[str, ...]:
        """Who is moved, in this order."""
        return tuple(move.uid for move in self.moves)

    @property
    def rank(self) -> tuple[bool, float, tuple[int, int, int], tuple[str, ...]]:
        """The sort key, less for a better one: whether a waiting pod is let in, gain for each move, what has to move."""
        helps_nobody = not any(move.lets_in for move in self.moves)
        return helps_nobody, -self.gain / len(self.moves), self.weight, self.uids


class Trier:
    """Tries sets of pods, within the caller's trial.

    Attributes:
        tried: how many moves were tried.
    """

    def __init__(
        self,
        cluster: Cluster,
        gauge: Gauge,
        waiters: Waiters,
        runs: Mapping[str, float],
        terms: Terms,
    ) -> None:
        """``runs``: the pods that may be moved, with the seconds for which each has run."""
        self._cluster, self._gauge, self._waiters = cluster, gauge, waiters
        self._runs, self._terms = runs, terms
        self._moved: set[str] = set()
        self.tried = 0

    def try_set(self, uids: Iterable[str], *, most: int) -> Bundle | None:
        """Find the best moves for a set of pods, and undo them; None if they gain nothing or would break something."""
        with self._cluster.trial():
            bundle = self._move_all(list(uids), most)
        if bundle is None:
            return None
        moves, gains = bundle
        helps = [any(move.lets_in for move in moves[: k + 1]) for k in range(len(moves))]
        best = max(range(len(moves)), key=lambda k: (helps[k], gains[k] / (k + 1), -k))
        if gains[best] <= 0 or not (helps[best] or not self._terms.only_waiting):
            return None
        return self._make_bundle(moves[: best + 1], gains[best])

    def carry_out(self, uids: Sequence[str]) -> Bundle | None:
        """Move pods in this order for good, as far as the caller's trial lasts; None if it gains nothing by now."""
        with self._cluster.trial() as trial:
            found = self._move_all(list(uids), len(uids), in_order=True)
            if found is None or found[1][-1] <= 0 or len(found[0]) < len(uids):
                return None
            if self._terms.only_waiting and not any(move.lets_in for move in found[0]):
                return None
            trial.commit()
        self._moved.update(uids)
        return self._make_bundle(found[0], found[1][-1])

    def _make_bundle(self, moves: Sequence[Move], gain: int) -> Bundle:
        weight = np.zeros(3, np.int64)
        for move in moves:
            amounts = dict(self._cluster.pods[move.uid].template.requests.amounts)
            mib = sum(one.mib for one in move.left.cards)
            weight += [mib, amounts.get("memory", 0), amounts.get("cpu", 0)]
        gpu, memory, cpu = weight.tolist()
        return Bundle(tuple(moves), gain, (gpu, memory, cpu))

    def _move_all(
        self, left: list[str], most: int, *, in_order: bool = False
    ) -> tuple[list[Move], list[int]] | None:
        """Move pods one by one, each time the first one that can go; return the moves, and the gain after each."""
        if self._moved.intersection(left) or any(uid not in self._runs for uid in left):
            return None
        before = self._gauge.read()
        moves, gains = list[Move](), list[int]()
        came: list[str] = []
        whole = before
        n_left = self._count_left()
        while left and len(moves) < most:
            for uid in left[:1] if in_order else left:
                if n_left.get(self._cluster.pods[uid].namespace, 1) <= 0:
                    continue
                is_last = len(left) == 1 or len(moves) + 1 == most
                step = self._try_move(uid, before, whole, came, is_last=is_last)
                if step is not None:
                    break
            else:
                break
            move, whole = step
            left.remove(move.uid)
            moves.append(move)
            namespace = self._cluster.pods[move.uid].namespace
            if namespace in n_left:
                n_left[namespace] -= 1
            came += [one.uid for one in move.lets_in]
            n_whole = whole.n_cards + whole.n_nodes - before.n_cards - before.n_nodes
            gains.append(n_whole + len(came))
        return (moves, gains) if moves else None

    def _count_left(self) -> dict[str, int]:
        """Count how many more moves each namespace allows that has a bound of its own."""
        n_left = dict(self._terms.most_in)
        for uid in self._moved:
            namespace = self._cluster.pods[uid].namespace
            if namespace in n_left:
                n_left[namespace] -= 1
        return n_left

    def _try_move(
        self, uid: str, begin: Whole, before: Whole, came: Sequence[str], *, is_last: bool
    ) -> tuple[Move, Whole] | None:
        """Move a pod, and return the move with what is whole then; None, and nothing done, if it may not be.

        ``begin`` is what was whole before the first move, and ``came`` are the pods that were let in since then.
        """
        self.tried += 1
        with self._cluster.trial() as trial:
            pod = self._cluster.pods[uid]
            seat, row = self._read_seat(pod), self._cluster.nodes.find_row(pod.node)
            ahead = None if uid in self._terms.ends_first else self._place_ahead(pod)
            trial.take_away(uid)
            if ahead is not None:
                self._cluster.assume(uid, ahead.node, ahead.claim, ahead.given)
            lets_in = self._let_in(pod, row, is_before=True, is_last=is_last)
            if ahead is None and not self._waiters.place_pod(self._cluster.pods[uid]):
                return None
            new = self._read_seat(self._cluster.pods[uid])
            if new == seat:
                return None
            lets_in += self._let_in(pod, row, is_before=False, is_last=is_last)
            whole = self._read_without([*came, *(one.uid for one in lets_in)])
            if not whole.is_no_worse_than(begin):
                return None
            trial.commit()
        freed = self._list_freed(before, whole)
        is_ahead = ahead is not None
        return Move(uid, seat, new, self._runs[uid], freed, tuple(lets_in), is_ahead), whole

    def _place_ahead(self, pod: PodRecord) -> PodRecord | None:
        """Find where a pod like one that is still there would go, and undo that; None if it has no room yet."""
        roster = self._cluster.roster
        uid = f"{pod.uid}{_SUCCESSOR}"
        roster.keep(
            structs.replace(pod, uid=uid, node="", life=Life.PENDING, claim=(), given=(), row=-1)
        )
        try:
            with self._cluster.trial():
                is_placed = self._waiters.place_pod(self._cluster.pods[uid])
                return self._cluster.pods[uid] if is_placed else None
        finally:
            roster.drop(uid)

    def _let_in(self, pod: PodRecord, row: int, *, is_before: bool, is_last: bool) -> list[LetIn]:
        """Place those that have room now, and that come before a new pod like one, or after it."""
        found = [
            LetIn(one.uid, self._read_seat(one))
            for one in self._waiters.place_pods(row, pod.priority, is_before=is_before)
        ]
        if is_last:
            for group, pods in self._waiters.place_groups(pod.priority, is_before=is_before):
                found += [LetIn(one.uid, self._read_seat(one), str(group.key)) for one in pods]
        return found

    def _read_without(self, uids: Sequence[str]) -> Whole:
        """Read what would be whole if pods that were let in had not come: their room is no loss."""
        if not uids:
            return self._gauge.read()
        with self._cluster.trial():
            for uid in uids:
                self._cluster.forget(uid)
            return self._gauge.read()

    def _list_freed(self, before: Whole, after: Whole) -> tuple[Freed, ...]:
        """List what a move made whole, as far as there is more of its kind than before."""
        cluster, cards = self._cluster, self._cluster.cards.columns
        more = (after.kinds - before.kinds)[: len(cluster.cards.models) + 1]
        found = []
        for d in np.flatnonzero(after.cards & ~before.cards).tolist():
            model = int(cards.model[d])
            if more[model] <= 0:
                continue
            more[model] -= 1
            node = cluster.nodes.find_name(int(self._gauge.node_of[d]))
            what = What.SLOT if cards.carving[d] else What.CARD
            uuid, position = cluster.cards.find_uuid(d), int(cards.position[d])
            found.append(Freed(what, node, uuid, position, cluster.cards.find_model(d)))
        rows = np.flatnonzero(after.nodes & ~before.nodes).tolist()
        n_more = max(0, after.n_nodes - before.n_nodes)
        found += [Freed(What.NODE, cluster.nodes.find_name(row)) for row in rows[:n_more]]
        return tuple(found)

    def _read_seat(self, pod: PodRecord) -> Seat:
        """Read where a pod is."""
        cluster, cards = self._cluster, self._cluster.cards.columns
        held = [
            Held(
                cluster.cards.find_uuid(d), int(cards.position[d]), cluster.cards.find_model(d),
                cores, mib,
            )
            for d, (cores, mib, _) in cluster.read_held(pod).items()
        ]  # fmt: skip
        return Seat(pod.node, tuple(sorted(held, key=lambda one: (one.position, one.uuid))))
