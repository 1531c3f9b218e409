"""KAI's queues in the engine: keeps their objects, and decides for the pods and groups in them, one after another.

First everything is tried that fits as things are. Then, in the order of the queues, who fits nowhere takes the place of
pods of other queues, and who still waits that of pods of its own queue.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from scheduler.api import kai
from scheduler.api.door import events, notes
from scheduler.api.door.decisions import Hold, Outcome, Plan
from scheduler.api.door.notes import HeldByQueue, Note
from scheduler.api.groups.definitions import GroupKey
from scheduler.api.queues.kai import KaiQueue, read_queue
from scheduler.api.queues.kai_usage import read_record
from scheduler.api.queues.settings import KaiSettings
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.disruption.group_promises import awaits_victims, end_nominations
from scheduler.disruption.queue_victims import Action
from scheduler.engine.kai_room import KaiRoom, Wanting
from scheduler.engine.keeping import Keeper
from scheduler.errors import BadInput
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity, Entity
from scheduler.state.seniority import Seniority
from scheduler.tenancy.kai.accounts import Accounts
from scheduler.tenancy.kai.rules import Reason, find_over, make_taker
from scheduler.tenancy.kai.tree import Tree
from scheduler.tenancy.kai.turns import cut_turn, list_next
from scheduler.tenancy.kai.usage import Usage
from scheduler.waiting.admissions import Admission, Held, InQueue
from scheduler.waiting.orders import PriorityAndAge
from scheduler.waiting.pending import Pending
from scheduler.waiting.queue_order import QueueOrder

_NEVER = float("inf")
# Pods that could go for others are looked for again that often at most.
_LOOK_SECONDS = 1.0
_NOTHING: tuple[Note, ...] = ()
# Why a queue holds what is in it, whatever it has room for.
_BY_QUEUE = Reason.NO_QUEUE, Reason.RIVAL
# What was said of those that are gone is forgotten when there is more of it.
_SAID_LEAST = 1024
Restored = events.ShareUsageKnown | events.KaiQueuesHeld
RESTORED = events.ShareUsageKnown, events.KaiQueuesHeld
KIND = str(kai.Queue.__struct_config__.tag)


class KaiQueues:
    """Keeps the queues, and decides for what is in them."""

    def __init__(
        self,
        config: Config,
        cycle: Cycle,
        pending: Pending,
        in_queue: InQueue,
        pause: float,
    ) -> None:
        """Without a ``pause`` between other looks nothing happens by time alone."""
        self._is_on, settings = config.queues.kai is not None, config.queues.kai or KaiSettings()
        self._cluster = in_queue.accounts.cluster
        self._cycle, self._pending, self._in_queue = cycle, pending, in_queue
        accounts = self.accounts = in_queue.accounts
        self._tree = accounts.tree
        self._room = KaiRoom(settings, cycle, pending, accounts)
        self._wanting: dict[str, Wanting] = {}
        # The uids of entities that wait for quota, or for their queue.
        self._held: set[str] = set()
        self._pause, self._looked_at = pause and _LOOK_SECONDS, -_NEVER
        self._looked: Hashable = None
        self._judged: Hashable = None
        # Of what was last looked at: the version of the tree, and who else decides.
        self._version: Hashable = None
        # By uid: why the queue of an entity held it, as it was said last; and what is to be said.
        self._said: dict[str, Hashable] = {}
        self._notes: list[HeldByQueue] = []

    # Objects.

    def make_keepers(self) -> dict[str, Keeper]:
        """Make the keeper of queues, who keeps none if they are not managed."""
        return {KIND: Keeper(self._see, self._drop, lambda: tuple(self._tree.queues))}

    def _see(self, found: kai.Queue, _: float) -> Sequence[Note]:
        if not self._is_on:
            return _NOTHING
        meta, problem = found.metadata, ""
        try:
            queue = read_queue(found)
        except BadInput as error:
            problem = str(error)
            known = self._tree.queues.get(meta.name)
            before = (
                KaiQueue(meta.name, meta.creation_timestamp) if known is None else known.defined
            )
            queue = before._replace(mistake=problem)
        try:
            record = read_record(meta.annotations)
        except BadInput as error:
            record, problem = None, problem or str(error)
        self.accounts.usage.note_record(meta.name, record)
        is_first, is_new = not len(self._tree), meta.name not in self._tree.queues
        self._tree.put(queue)
        if is_first or is_new:
            # Pods may be in it that were in no queue.
            self.accounts.recount()
        return (notes.QueueRead(KIND, meta.name, meta.generation, problem),)

    def _drop(self, name: str, _: float) -> Sequence[Note]:
        self.accounts.usage.note_record(name, None)
        if self._tree.drop(name):
            self.accounts.recount()
        return _NOTHING

    def list_known(self) -> Iterator[events.Event]:
        """Yield an event for what no object says: who else decides, and what was used."""
        if self.accounts.rival:
            yield events.KaiQueuesHeld(self.accounts.rival, self.accounts.is_rival_known)
        known = self.accounts.usage.list_known()
        if known is not None:
            yield events.ShareUsageKnown(known)

    def restore(self, event: Restored, _: float) -> Sequence[Note]:
        """Take over what ``list_known`` has said, or what has changed of it."""
        match event:
            case events.KaiQueuesHeld(by, is_known):
                self.accounts.rival, self.accounts.is_rival_known = by, is_known
            case events.ShareUsageKnown(known):
                self.accounts.usage.take_over(known)
        return _NOTHING

    # Decisions.

    @property
    def has_queues(self) -> bool:
        """Whether there is any queue."""
        return bool(len(self._tree))

    def is_queued(self, entity: AnyEntity) -> bool:
        """Whether a pod or group is in a queue."""
        return self.has_queues and bool(self.accounts.find_terms_of(entity).queue)

    def is_left(self, key: GroupKey) -> bool:
        """Whether a group is in a queue, and left to another scheduler."""
        pods = self._cluster.groups.list_pods(key) if self.accounts.rival else ()
        return any(self.accounts.is_queued(pod) for pod in pods)

    def find_due(self) -> float:
        """Return when others are to be looked for again that could go; infinite if nothing has to change before."""
        if not self._wanting or self.accounts.rival:
            return _NEVER
        if any(one.tried_at is None for one in self._wanting.values()):
            return 0.0
        if self._looked != self._make_mark():
            return max(0.0, self._looked_at + self._pause)
        if not self._pause:
            # Nothing happens by time alone.
            return _NEVER
        again = [one.again_at for one in self._wanting.values() if one.again_at is not None]
        return min(again, default=_NEVER)

    def _make_mark(self) -> Hashable:
        """Make a value of all that decides who could go, and whether a queue has room."""
        nominations = self._cluster.nominations
        promised = tuple(
            (node, uid) for node in nominations.list_nodes() for uid in nominations.list_on(node)
        )
        return self.accounts.make_mark(), tuple(nominations.going), promised

    def begin(self, now: float) -> None:
        """Begin a decision: let those be tried again that were held, and that their queues have room for now."""
        pending = self._pending
        self.accounts.sample(now)
        version = self._tree.version, self.accounts.rival
        if version != self._version:
            self._version = version
            for one in list(pending.list_entries()):
                if one.held is not None and one.held.by in _BY_QUEUE:
                    pending.judge_again([one.uid], now)
        if self.accounts.rival:
            return
        self._held = {uid for uid in self._held if pending.find_entry(uid) is not None}
        mark = self._make_mark() if self._held else None
        if mark == self._judged:
            return
        self._judged = mark
        self.accounts.settle_shares()
        for uid in sorted(self._held):
            entry = pending.find_entry(uid)
            if entry is None or entry.held is None:
                continue
            entity = entry.entity
            if awaits_victims(self._cluster, entity):
                continue
            with self.accounts.lift_promises(entity):
                taker = make_taker(self.accounts, entity)
                has_room = taker is not None and find_over(taker) is None
            if has_room or taker is None:
                self._held.discard(uid)
                pending.judge_again([uid], now)

    def schedule(self, batch: Sequence[AnyEntity], now: float, *, explain: bool) -> Outcome:
        """Decide for a batch; who is in a queue comes alone."""
        if self.is_queued(batch[0]):
            return self._decide(batch[0], now, explain=explain)
        return self._cycle.schedule(batch, explain=explain)

    def _decide(self, entity: AnyEntity, now: float, *, explain: bool) -> Outcome:
        """Decide for a pod or group, of which the next turn is tried; without room in its queue it is held."""
        known = self._wanting.pop(entity.uid, None)
        if known is not None and awaits_victims(self._cluster, entity):
            # What is promised to it stays so.
            self._wanting[entity.uid] = known
            return self._leave(entity, known, now)
        if self.accounts.rival and (held := self._in_queue.judge(entity)) is not None:
            self._pending.hold(entity.uid, held, now)
            return Outcome()
        self.accounts.settle_shares()
        made = Outcome()
        with self.accounts.lift_promises(entity):
            taker = make_taker(self.accounts, entity)
            over = None if taker is None else find_over(taker)
            if taker is not None and over is None:
                turn = cut_turn(self._cluster, entity)
                made = self._cycle.schedule([turn], explain=explain, makes_room=False)
        if over is not None:
            hold = Hold(entity.members[0].uid, said=over.describe())
            about = over.reason, over.queue, over.resource
            known = self._wanting[entity.uid] = Wanting(hold, over.reason, about)
            return self._leave(entity, known, now)
        if taker is None:
            # Its queue has gone since it became active.
            if (held := self._in_queue.judge(entity)) is not None:
                self._pending.hold(entity.uid, held, now)
        elif made.holds:
            if made.holds[0].problem is None:
                self._wanting[entity.uid] = Wanting(made.holds[0])
        elif not made.left and self._has_more(entity):
            made.left.append(entity.uid)
        return made

    def _leave(self, entity: AnyEntity, known: Wanting, now: float) -> Outcome:
        """Let an entity wait on as it has waited."""
        if not known.over:
            return Outcome(plans=[Plan(entity.uid, hold=known.hold)])
        self._held.add(entity.uid)
        held = Held(known.over, why=known.hold.said)
        self._pending.hold(entity.uid, held, now)
        self._note_held(entity, held, known.about)
        return Outcome()

    def _note_held(self, entity: AnyEntity, held: Held, about: Hashable) -> None:
        """Note why the queue of an entity holds it, once for each ``about``."""
        if self._said.get(entity.uid) != about:
            self._said[entity.uid] = about
            group = entity.key if isinstance(entity, Entity) else None
            if held.by == Reason.RIVAL:
                # The object of the group is the other scheduler's.
                group = None
            note = HeldByQueue(group, entity.members[0].uid, held.by, held.why)
            self._notes.append(note)

    def _take_notes(self) -> list[HeldByQueue]:
        """Return what is to be said of those that are held."""
        for uid, held in self._in_queue.take_held().items():
            entry = self._pending.find_entry(uid)
            if entry is not None and entry.held is held:
                self._note_held(entry.entity, held, held.why)
        taken, self._notes = self._notes, []
        if len(self._said) > _SAID_LEAST + 2 * len(self._pending):
            self._said = {
                uid: one for uid, one in self._said.items() if self._pending.find_entry(uid)
            }
        return taken

    def _has_more(self, entity: AnyEntity) -> bool:
        """Whether pods of an entity wait for its next turn."""
        return isinstance(entity, Entity) and bool(list_next(self._cluster, entity))

    # Room that others make.

    def make_room(self, now: float, outcome: Outcome) -> None:
        """Look for others that could go for those that fit nowhere, as KAI does: from other queues, then from their own.

        Nobody is looked for while pods are still to be tried.
        """
        self.accounts.sample(now)
        outcome.notes += self._take_notes()
        if not self._wanting or self._pending.has_active or self.find_due() > now:
            return
        self._looked_at = now
        mark = self._make_mark()
        found: list[Plan] = []
        left: dict[str, AnyEntity] = {}
        for uid, one in list(self._wanting.items()):
            entry = self._pending.find_entry(uid)
            if entry is None:
                del self._wanting[uid]
                continue
            is_due = one.again_at is not None and one.again_at <= now
            if (one.tried_at != mark or is_due) and not awaits_victims(self._cluster, entry.entity):
                one.again_at = None
                left[uid] = entry.entity
        for action in Action:
            found += self._room.make_all(left, self._wanting, action)
        for uid, entity in left.items():
            ended = end_nominations(self._cluster, [pod.uid for pod in entity.members])
            if ended:
                found.append(Plan(uid, nominates=tuple(ended)))
        after = self._make_mark()
        for one in self._wanting.values():
            one.tried_at = after
        self._looked = after
        outcome.plans += found


def make_pending(
    config: Config,
    cluster: Cluster,
    policies: PolicyBook,
    admissions: Sequence[Admission],
    *,
    is_shared: bool,
) -> tuple[Pending, InQueue]:
    """Make the queue of those that wait, and who holds pods of KAI's queues; the accounts follow all pods if these are managed."""
    settings = config.queues.kai
    shares = settings or KaiSettings()
    accounts = Accounts(cluster, Tree(shares.k), Usage(shares.half_life_seconds))
    seniority = Seniority(config.ageing_per_hour)
    order, in_queue = PriorityAndAge(seniority), InQueue(accounts)
    if settings is not None:
        cluster.roster.followers.append(accounts)
        policies.is_queued = accounts.is_queued
        order, admissions = (
            QueueOrder(seniority, cluster, accounts),
            (*admissions, in_queue),
        )
    find_labels = cluster.terms.find_labels
    pending = Pending(config, find_labels, is_shared=is_shared, order=order, admissions=admissions)
    return pending, in_queue
