"""What the pods of each of KAI's queues hold and want; it follows the charges of pods as the totals of nodes do.

A pod holds what it is charged, of a shared card the part of its memory that it holds. A pod on its way out holds nothing
any more, and one that is promised room holds it already, as in KAI.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from scheduler.api.groups.definitions import GroupKey
from scheduler.api.queues.kai import CARD, NOTHING, Vector, add
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity, Entity
from scheduler.state.pods import Life, PodRecord
from scheduler.tenancy.kai.reservations import Reservations, is_reservation
from scheduler.tenancy.kai.terms import Terms, find_in_slices, find_wants, read_terms
from scheduler.tenancy.kai.totals import Totals
from scheduler.tenancy.kai.tree import Figures, Queue, Tree
from scheduler.tenancy.kai.usage import Usage

_MIB = 1


@dataclass(slots=True)
class _Counted:
    """A pod as it counts in its queue.

    Attributes:
        holds: what it holds; None if it holds nothing.
        waits: whether it wants something while it holds nothing; pods on their way out do not.
    """

    terms: Terms
    wants: Vector
    holds: Vector | None = None
    waits: bool = False

    def make_figures(self) -> Figures:
        """Make the amounts that it adds to its queue."""
        if self.holds is None:
            return Figures(requested=self.wants if self.waits else NOTHING)
        fixed = NOTHING if self.terms.is_preemptible else self.holds
        return Figures(self.holds, fixed, self.holds)


class Accounts:
    """Follows the pods of all queues. Without a queue it does nothing.

    Attributes:
        cluster: has the pods.
        tree: the queues, whose figures it keeps.
        usage: what queues have used lately.
        rival: says which other scheduler decides for the queues; empty if there is none.
        is_rival_known: whether it is known that there is one.
    """

    def __init__(self, cluster: Cluster, tree: Tree, usage: Usage) -> None:
        self.cluster, self.tree, self.usage = cluster, tree, usage
        self.rival, self.is_rival_known = "", False
        self._pods: dict[str, _Counted] = {}
        # By pod: how often it counts as charged.
        self._charged: dict[str, int] = {}
        # By queue the pods that hold something in it.
        self._holding: dict[str, dict[str, _Counted]] = {}
        # Of pods that are in no queue: what they hold, and the row of their node.
        self._apart: dict[str, tuple[int, Vector]] = {}
        # By pod: what counts of it as long as it is promised room or on its way out.
        self._moving: dict[str, tuple[str, Figures]] = {}
        self._moved_at: object = None
        self._totals = Totals(cluster)
        self._reservations = Reservations(cluster)

    # Pods.

    def follow_pod(self, pod: PodRecord, node_row: int, sign: int) -> None:
        """Note that a pod was charged to a node (1), or its charge was taken back (-1)."""
        if not len(self.tree) or self._is_repeated(pod.uid, sign):
            return
        known = self._pods.get(pod.uid)
        if sign < 0:
            if known is None:
                self._count_apart(pod, node_row, -1)
            else:
                self._put(pod.uid, replace(known, holds=None) if known.waits else None)
            return
        terms = self.find_terms(pod)
        if not terms.queue:
            self._put(pod.uid, None)
            self._count_apart(pod, node_row, 1)
            return
        wants = self._find_wants(pod) if known is None else known.wants
        holds = None if pod.deleting else self._find_holds(pod, wants)
        waits = known is not None and known.waits and not pod.deleting
        self._put(pod.uid, _Counted(terms, wants, holds, waits))

    def _is_repeated(self, uid: str, sign: int) -> bool:
        """Whether a pod is charged already, or stays charged: a trial may put back what only seemed to be away."""
        n = self._charged.get(uid, 0) + sign
        if n:
            self._charged[uid] = n
        else:
            self._charged.pop(uid, None)
        return n != (1 if sign > 0 else 0)

    def ignores(self, pods: Sequence[PodRecord]) -> bool:
        """Whether there is no queue."""
        del pods
        return not len(self.tree)

    def note_pod(self, pod: PodRecord) -> None:
        """Note a pod that was added or has changed; one that does not wait counts by its charge."""
        if not len(self.tree):
            return
        self._reservations.note_pod(pod)
        if pod.life == Life.PENDING:
            waits = pod.ours and not pod.deleting and not pod.gated
            terms = self.find_terms(pod)
            self._put(pod.uid, _Counted(terms, self._find_wants(pod), waits=True) if waits and terms.queue else None)  # fmt: skip

    def drop_pod(self, uid: str) -> None:
        """Forget a pod that is gone."""
        if len(self.tree):
            self._reservations.drop_pod(uid)
            self._put(uid, None)

    def note_group(self, key: GroupKey) -> None:
        """Note that what is said of a group may have changed."""
        if not len(self.tree):
            return
        for pod in self.cluster.groups.list_pods(self.cluster.groups.find_root(key)):
            self._count(pod)

    def recount(self) -> None:
        """Count all pods anew."""
        self._pods.clear()
        self._holding.clear()
        self._charged.clear()
        self._apart.clear()
        self._totals.forget_apart()
        self._moving.clear()
        self.tree.forget_figures()
        self._moved_at = None
        self._reservations.forget()
        pods = list(self.cluster.pods.values()) if len(self.tree) else []
        for pod in pods:
            self._reservations.note_pod(pod)
        self._reservations.settle()
        for pod in pods:
            self._count(pod)

    def _count(self, pod: PodRecord) -> None:
        self._charged.pop(pod.uid, None)
        self._put(pod.uid, None)
        self._count_apart(pod, -1, -1)
        if pod.node:
            row = self.cluster.nodes.find_row(pod.node)
            if row >= 0:
                self.follow_pod(pod, row, 1)
        else:
            self.note_pod(pod)

    def _put(self, uid: str, new: _Counted | None) -> None:
        if uid in self._moving:
            # It may be in another queue now, or hold something else.
            self._moved_at = None
        old = self._pods.pop(uid, None)
        if old is not None:
            self.tree.add(old.terms.queue, old.make_figures(), -1)
            if old.holds is not None:
                there = self._holding[old.terms.queue]
                del there[uid]
                if not there:
                    # Pods may name any queue.
                    del self._holding[old.terms.queue]
        if new is not None:
            self._pods[uid] = new
            if new.holds is not None:
                self._holding.setdefault(new.terms.queue, {})[uid] = new
            self.tree.add(new.terms.queue, new.make_figures(), 1)

    def _count_apart(self, pod: PodRecord, node_row: int, sign: int) -> None:
        if sign > 0:
            holds = self._find_holds(pod, self._find_wants(pod))
            if is_reservation(pod):
                # The pods that share its card hold it.
                holds = holds[0], holds[1], 0
            self._apart[pod.uid] = node_row, holds
        elif pod.uid in self._apart:
            node_row, holds = self._apart.pop(pod.uid)
        else:
            return
        self._totals.add_apart(node_row, holds, sign)

    # Pods in words of queues.

    def find_terms(self, pod: PodRecord) -> Terms:
        """Find how a pod stands in the queues."""
        says = pod.member
        definition = None if says is None else self.cluster.groups.find_definition(says.group)
        return read_terms(pod, definition, self.tree.queues)

    def is_queued(self, pod: PodRecord) -> bool:
        """Whether a pod is in a queue."""
        return bool(len(self.tree) and self.find_terms(pod).queue)

    def find_terms_of(self, entity: AnyEntity) -> Terms:
        """Find how a pod or group that waits stands in the queues."""
        pod = entity.members[0]
        definition = entity.definition if isinstance(entity, Entity) else None
        return read_terms(pod, definition, self.tree.queues)

    def find_held(self, uid: str) -> Vector:
        """Find what a pod holds, NOTHING for one that holds nothing in a queue."""
        known = self._pods.get(uid)
        return known.holds or NOTHING if known is not None else NOTHING

    def sum_wants(self, pods: Collection[PodRecord]) -> Vector:
        """Sum up what waiting pods want."""
        total = NOTHING
        for pod in pods:
            total = add(total, self._find_wants(pod))
        return total

    def _find_wants(self, pod: PodRecord) -> Vector:
        return find_wants(pod.template, self._totals.card_mib)

    def _find_holds(self, pod: PodRecord, wants: Vector) -> Vector:
        """Find what a pod on a node holds, of shared cards the part that it holds."""
        if not pod.template.most:
            cards = self._reservations.find_held(pod.uid)
            return wants[0], wants[1], cards + find_in_slices(pod.template)
        held = self.cluster.read_held(pod)
        if not held:
            return wants
        totals = self.cluster.cards.columns.total[_MIB]
        cards = 0
        for card, (_, mib, _) in held.items():
            whole = int(totals[card])
            cards += min(CARD, -(-mib * CARD // whole)) if whole > 0 else CARD
        return wants[0], wants[1], cards + find_in_slices(pod.template)

    # What is there.

    @property
    def total(self) -> Vector:
        """All that pods of queues could hold."""
        return self._totals.total

    def settle(self) -> None:
        """Take over what has changed of nodes, and of promises."""
        if self._totals.settle():
            # What waiting pods want in MiB is another part of a card.
            self.recount()
        for uid in self._reservations.settle():
            if (pod := self.cluster.pods.get(uid)) is not None:
                self._count(pod)
        self.settle_promises()

    # Promises.

    def settle_promises(self) -> None:
        """Let pods on their way out hold nothing, and those that are promised room hold it."""
        nominations = self.cluster.nominations
        by = nominations.version, nominations.n_moves
        if by == self._moved_at:
            return
        self._moved_at = by
        wanted: dict[str, tuple[str, Figures]] = {}
        for uid in nominations.going:
            known = self._pods.get(uid)
            if known is not None and known.holds is not None:
                fixed = NOTHING if known.terms.is_preemptible else known.holds
                wanted[uid] = known.terms.queue, _negate(known.holds, fixed)
        for node in nominations.list_nodes():
            for uid in nominations.list_on(node):
                known = self._pods.get(uid)
                if known is not None and known.holds is None:
                    fixed = NOTHING if known.terms.is_preemptible else known.wants
                    wanted[uid] = known.terms.queue, Figures(known.wants, fixed)
        for uid in [uid for uid, one in self._moving.items() if wanted.get(uid) != one]:
            self._end_moving(uid)
        for uid, one in wanted.items():
            if uid not in self._moving:
                self._move(uid, *one)

    def _move(self, uid: str, queue: str, amounts: Figures) -> None:
        self._moving[uid] = queue, amounts
        self.tree.add(queue, amounts, 1)

    def _end_moving(self, uid: str) -> tuple[str, Figures] | None:
        found = self._moving.pop(uid, None)
        if found is not None:
            self.tree.add(*found, -1)
        return found

    @contextmanager
    def lift_promises(self, entity: AnyEntity) -> Iterator[None]:
        """Let an entity hold nothing of what it is promised, while it is decided about."""
        self.settle_promises()
        lifted = {pod.uid: self._end_moving(pod.uid) for pod in entity.members}
        try:
            yield
        finally:
            for uid, found in lifted.items():
                if found is not None:
                    self._move(uid, *found)
            # What was promised may have changed meanwhile.
            self._moved_at = None

    @contextmanager
    def lift_leaving(self, leaving: Sequence[str]) -> Iterator[None]:
        """Let pods on their way out hold what they hold, while a trial takes them away."""
        lifted = {uid: self._end_moving(uid) for uid in leaving}
        try:
            yield
        finally:
            for uid, found in lifted.items():
                if found is not None:
                    self._move(uid, *found)

    def settle_shares(self) -> None:
        """Take over what has changed, and find the fair shares."""
        self.settle()
        self.share_out()

    def share_out(self) -> None:
        """Find the fair shares of all queues, as things are."""
        self.tree.share_out(self.total, self.usage.find_parts())

    def list_holders(self, queue: str) -> Iterator[tuple[str, Terms]]:
        """List the pods that hold something in a queue, with how they stand there."""
        return ((uid, one.terms) for uid, one in self._holding.get(queue, {}).items())

    def sample(self, now: float) -> None:
        """Note what queues hold now, for what they have used."""
        if len(self.tree):
            self.settle()
            self.tree.settle()
            self.usage.sample(self.tree, self.total, now)

    def list_charged(self) -> list[tuple[Queue, Figures]]:
        """List each queue with what its pods are charged, whatever is promised, and its fair share as things are."""
        self.settle()
        self.share_out()
        lifted = {uid: self._end_moving(uid) for uid in list(self._moving)}
        found = [(one, replace(one.figures)) for one in self.tree.list_by_age()]
        for uid, moved in lifted.items():
            if moved is not None:
                self._move(uid, *moved)
        return found

    def make_mark(self) -> Hashable:
        """Make a value of all that is there, held and wanted."""
        self.settle()
        position = self.cluster.described.position
        return self.tree.version, position, self.total, self.tree.make_mark()


def _negate(holds: Vector, fixed: Vector) -> Figures:
    return Figures(add(NOTHING, holds, -1), add(NOTHING, fixed, -1))
