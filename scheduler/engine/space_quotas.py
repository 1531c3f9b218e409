"""Quotas of devices by namespace: keeps ResourceQuotas, and lets nobody be tried whose namespace has no room.

What pods take is known before nodes are looked at, but for parts of cards of whatever size and for init containers, which
may get other cards than the containers after them. Where these could matter, a pod is tried by itself: only nodes whose
cards are small enough are open to it, and what it holds is compared with the quota before anything comes of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from scheduler.api import kinds, steering
from scheduler.api.door import notes
from scheduler.api.door.decisions import Outcome
from scheduler.api.door.notes import HeldByQueue, Note
from scheduler.api.space_quotas import read_quota
from scheduler.cycle.schedule import Cycle
from scheduler.engine.kai_queues import KaiQueues
from scheduler.engine.keeping import Keeper
from scheduler.errors import BadInput
from scheduler.schema.world import ANYWHERE
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity, Entity
from scheduler.state.pods import PodRecord
from scheduler.state.space_amounts import Key
from scheduler.state.space_quotas import Amounts, Excess, SpaceQuotas
from scheduler.tenancy.kai.turns import cut_turn, list_next
from scheduler.waiting.admissions import Held
from scheduler.waiting.entries import Where
from scheduler.waiting.pending import Pending

REASON = "NamespaceQuota"
_NO_AMOUNTS: Mapping[Key, int] = {}


class NamespaceQuotas:
    """Decides for batches as far as their namespaces have room.

    Attributes:
        ledger: the quotas, and what is used of them.
    """

    def __init__(self, cluster: Cluster, cycle: Cycle, pending: Pending, kai: KaiQueues) -> None:
        self._cluster, self._cycle, self._pending, self._kai = cluster, cycle, pending, kai
        self.ledger = SpaceQuotas(
            cluster.nodes, cluster.cards, cluster.ledger, cluster.roster.list_charged
        )
        cluster.roster.followers.append(self.ledger)
        # By namespace: the uids of those that wait for room, with what was said of each last.
        self._waiting: dict[str, dict[str, str]] = {}
        # By namespace: the uids of those that were woken and not placed yet, and of those that were tried in vain since.
        self._woken: dict[str, set[str]] = {}
        self._vain: dict[str, set[str]] = {}
        # What has been tallied of each namespace for those that are about to be tried together.
        self._tally: dict[str, Counter[Key]] = {}
        self._cards_at = cluster.cards.version
        self._notes: list[Note] = []

    # Quotas.

    def make_keeper(self) -> Keeper:
        """Make the keeper of ResourceQuotas."""
        return Keeper(self._see, self._drop, self.ledger.list_keys)

    def _see(self, found: steering.ResourceQuota, _: float) -> Sequence[Note]:
        meta, problem = found.metadata, ""
        try:
            quota = read_quota(found)
        except BadInput as error:
            # What it said before, if anything, stays in force: no limit at all would let everybody in.
            problem = str(error)
        else:
            self.ledger.put(quota)
        return (notes.SpaceQuotaRead(kinds.make_key(found), meta, problem),)

    def _drop(self, key: str, _: float) -> Sequence[Note]:
        self.ledger.drop(*kinds.split_key(key))
        return (notes.SpaceQuotaLeft(key),)

    # Decisions.

    def schedule(
        self, batch: Sequence[AnyEntity], now: float, outcome: Outcome, *, explain: bool
    ) -> Outcome:
        """Decide for a batch, in its order; those without room in their namespaces are held. Notes go to ``outcome``."""
        if not self.ledger.has_any:
            return self._kai.schedule(batch, now, explain=explain)
        made, together = Outcome(), list[AnyEntity]()

        def decide() -> None:
            self._tally.clear()
            if together:
                _join(made, self._kai.schedule(together, now, explain=explain))
                together.clear()

        for i, entity in enumerate(batch):
            if made.left:
                # There was no time for those before it.
                made.left += [one.uid for one in batch[i:]]
                break
            if not self._has_room(entity):
                decide()
                if not self._has_room(entity):
                    self._decide_alone(entity, now, made, explain=explain)
                    continue
            together.append(entity)
        decide()
        outcome.notes += self._notes
        self._notes = []
        return made

    def _has_room(self, entity: AnyEntity) -> bool:
        """Whether its namespace has room for the most that an entity takes, beside those that are tried with it; note it."""
        if not self.ledger.has_quotas(entity.namespace):
            return True
        if self._find_excess(entity, self.ledger.find_most) is not None:
            return False
        tally = self._tally.setdefault(entity.namespace, Counter())
        for pod in self._list_waiting(entity):
            tally.update(self.ledger.find_most(pod))
        return True

    def _list_waiting(self, entity: AnyEntity) -> list[PodRecord]:
        """List the pods of an entity that have no node yet, by what is known of them now.

        A malformed pod is placed nowhere, and its figures may be of any size: it takes nothing.
        """
        known = (self._cluster.pods.get(pod.uid) for pod in entity.members)
        there = (pod for pod in known if pod is not None and not pod.node)
        return [pod for pod in there if pod.problem is None]

    def _find_excess(
        self, entity: AnyEntity, measure: Callable[[PodRecord], Amounts]
    ) -> Excess | None:
        """Find a limit that the pods of an entity would exceed together, beside those that are tried with it."""
        beside = self._tally.get(entity.namespace, _NO_AMOUNTS)
        return find_common_excess(self.ledger, self._list_waiting(entity), measure, beside)

    def _decide_alone(self, entity: AnyEntity, now: float, made: Outcome, *, explain: bool) -> None:
        """Decide for an entity that may not have room, by itself: for a group its minimum, and then pod by pod."""
        turn = cut_turn(self._cluster, entity)
        if isinstance(turn, Entity) or self._kai.is_queued(entity):
            excess = self._find_excess(turn, self.ledger.find_most)
            if excess is None:
                self._take_turn(entity, turn, now, made, explain=explain)
        else:
            excess = self._find_excess(turn, self.ledger.find_least)
            excess = excess or self._try(turn, made, explain=explain)
        if excess is not None:
            self._hold(entity, excess, now)

    def _take_turn(
        self, entity: AnyEntity, turn: AnyEntity, now: float, made: Outcome, *, explain: bool
    ) -> None:
        """Decide for what has room of an entity; the rest of it comes again."""
        # Who is in one of KAI's queues gets its turn there.
        tried = entity if self._kai.is_queued(entity) else turn
        placed = self._kai.schedule([tried], now, explain=explain)
        _join(made, placed)
        is_placed = placed.binds and not placed.left and not placed.holds
        if is_placed and isinstance(entity, Entity) and list_next(self._cluster, entity):
            made.left.append(entity.uid)

    def _try(self, pod: PodRecord, made: Outcome, *, explain: bool) -> Excess | None:
        """Place a pod where its cards are small enough; return the limit that it would exceed everywhere."""
        among, excess = self.ledger.find_rows(pod) or (ANYWHERE, None)
        if excess is not None:
            return excess
        with self._cluster.trial() as trial:
            placed = self._cycle.place_among(pod, among, explain=explain)
            over = self.ledger.find_over(self._cluster.pods[pod.uid])
            if over is None:
                trial.commit()
        if over is not None:
            return over
        _join(made, placed)
        if placed.holds:
            self._waiting.setdefault(pod.namespace, {}).setdefault(pod.uid, "")
        return None

    def _hold(self, entity: AnyEntity, excess: Excess, now: float) -> None:
        why = str(excess)
        self.ledger.note_held()
        self._pending.hold(entity.uid, Held(REASON, why=why), now)
        waiting = self._waiting.setdefault(entity.namespace, {})
        # What is used changes with every pod, and is no news.
        about = f"{excess.quota}/{excess.resource}/{excess.asked}/{excess.hard}"
        if waiting.get(entity.uid) != about:
            group = entity.key if isinstance(entity, Entity) else None
            self._notes.append(HeldByQueue(group, entity.members[0].uid, REASON, why))
        waiting[entity.uid] = about

    def wake(self, now: float) -> None:
        """Let those be tried again for whom there may be room since quotas or what is used of them have changed.

        Who was woken and got no node leaves its room to those behind it until the next change.
        """
        changed = self.ledger.take_changed()
        if self._cards_at != self._cluster.cards.version:
            # There may be smaller cards now, of which pods that ask a part take less.
            self._cards_at = self._cluster.cards.version
            changed |= self._waiting.keys()
        if not changed and not self._woken:
            return
        again = [space for space in list(self._woken) if self._note_vain(space)]
        for space in changed:
            self._vain.pop(space, None)
        for space in sorted(changed.union(again) & self._waiting.keys()):
            self._wake_in(space, now, is_changed=space in changed)

    def _note_vain(self, space: str) -> bool:
        """Note who was woken in a namespace and tried in vain; return whether anybody was."""
        entries = [(uid, self._pending.find_entry(uid)) for uid in self._woken.pop(space)]
        there = [(uid, entry) for uid, entry in entries if entry is not None]
        vain = {uid for uid, entry in there if entry.where != Where.ACTIVE}
        if untried := {uid for uid, entry in there if entry.where == Where.ACTIVE}:
            self._woken[space] = untried
        if vain:
            self._vain.setdefault(space, set()).update(vain)
        return bool(vain)

    def _wake_in(self, space: str, now: float, *, is_changed: bool) -> None:
        waiting, find = self._waiting[space], self._pending.find_entry
        entries = {uid: entry for uid in waiting if (entry := find(uid)) is not None}
        self._waiting[space] = {uid: waiting[uid] for uid in entries}
        if not entries:
            del self._waiting[space]
        find_place = self._pending.order.find_place
        woken, vain = self._woken.get(space, set()), self._vain.get(space, set())
        # Kinds of pods for which there is no room even beside those that come before them.
        full: set[tuple[int, str]] = set()
        self._tally.clear()
        tally = self._tally[space] = Counter()
        for uid, entry in sorted(entries.items(), key=lambda one: find_place(one[1].entity)):
            entity, pod = entry.entity, entry.pod
            kind = id(pod.template), pod.priority_class
            is_held = entry.held is not None and entry.held.by == REASON
            if uid in vain or (len(entity.members) == 1 and kind in full):
                continue
            turn = cut_turn(self._cluster, entity)
            is_group = isinstance(turn, Entity)
            measure = self.ledger.find_most if is_group else self.ledger.find_least
            if self._find_excess(turn, measure) is not None:
                full.add(kind)
                continue
            if not is_held and uid not in woken:
                # It waits for something else, perhaps for long: nobody leaves room for it.
                if is_changed:
                    self._pending.help_pod(uid, now)
                continue
            for one in self._list_waiting(turn):
                tally.update(measure(one))
            if is_held:
                self._woken.setdefault(space, set()).add(uid)
                self._pending.judge_again([uid], now)
        self._tally.clear()


def _join(made: Outcome, more: Outcome) -> None:
    made.plans += more.plans
    made.left += more.left
    made.notes += more.notes


def find_common_excess(
    ledger: SpaceQuotas,
    pods: Iterable[PodRecord],
    measure: Callable[[PodRecord], Amounts],
    beside: Mapping[Key, int],
) -> Excess | None:
    """Find a limit that pods would exceed together, one after another, beside what others are going to take."""
    sum_of = Counter(beside)
    for pod in pods:
        amounts = measure(pod)
        asked = {key: amount + sum_of[key] for key, amount in amounts.items() if amount}
        if (excess := ledger.find_excess(pod, asked)) is not None:
            return excess
        sum_of.update(amounts)
    return None
