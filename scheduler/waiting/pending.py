"""The waiting entities: their order, their backoff, and which of them a change could help.

    offer ─▶ active ─ pop ─▶ (in the cycle) ─ failed ─▶ unschedulable ─ helped ─▶ backoff ─▶ active
      └─▶ gated (held by admissions)     └─ retry ─▶ backoff

One that failed waits in ``unschedulable`` until something changed that could help its shape; if it
failed only just now it sits out its backoff first (1 s doubling to 10 s by default), while others are active.

Nearly all entities are one pod. Of several pods one entry waits, which any of them stands for: what is said here of a
pod by its uid is said of the entity that it is a member of.

Who may be tried at all say ``admissions``, and who comes first says one order (``orders``). Those that wait for a
change are kept by ``parked``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence

from scheduler.api.selectors import Labels
from scheduler.config import Config
from scheduler.state.entities import AnyEntity, Entity
from scheduler.state.pods import PodRecord
from scheduler.waiting.admissions import ADMISSIONS, Admission, Door
from scheduler.waiting.dues import Dues
from scheduler.waiting.entries import Came, Entry, Where, is_alike
from scheduler.waiting.orders import Order, PriorityAndAge
from scheduler.waiting.parked import Parked
from scheduler.waiting.turns import Turns

_STALE_MAX = 64
# As kube-scheduler: whatever an event missed is tried again after five minutes. Of thousands a few at a time, lest
# all others wait for them.
_FLUSH_SECONDS, _FLUSHED_MOST = 300.0, 100
_EVER = float("inf")


class Pending:
    """The pods of ours that have no node, by entity. One writer, like the cluster.

    Attributes:
        parked: those that wait for a change.
        came: how often an entity came to which part of the queue, by why.
        order: who comes first.
    """

    def __init__(
        self,
        config: Config,
        labels_of: Callable[[str], Labels] = lambda _: {},
        *,
        is_shared: bool = True,
        order: Order | None = None,
        admissions: Sequence[Admission] = ADMISSIONS,
    ) -> None:
        """``labels_of`` finds the labels of a namespace; ``is_shared``: namespaces pay for what is expensive.

        All ``admissions`` have to say yes before an entity is tried.
        """
        self.order = order or PriorityAndAge()
        self._config, self._is_shared = config, is_shared
        self._entries: dict[str, Entry] = {}
        # By the uid of a pod, that of the entity of several pods that it is a member of.
        self._joined: dict[str, str] = {}
        self._turns = Turns(self.order, self._is_stale)
        # Of those that were helped, and of those whose bind failed.
        self._backoff, self._penance = Dues(self._is_stale), Dues(self._is_stale)
        # When those that wait for a change began to.
        self._failed = Dues(self._is_stale)
        self.parked = Parked(labels_of, self.order)
        self._door = Door(admissions, self.parked.hooks)
        self.came: Counter[tuple[Where, Came]] = Counter()
        self._popped: set[str] = set()
        self._tickets = 0
        # Since stale entries were looked for.
        self._n_changes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def offer(self, entity: AnyEntity, now: float) -> None:
        """One that waits was added or changed. A change that could matter makes it active at once.

        Members of an entity wait no longer by themselves. Who is none any more has to be offered anew.
        """
        if isinstance(entity, Entity):
            self._join(entity, now)
        elif (joined := self._several(entity.uid)) is not None:
            entity = joined.with_member(entity)
        uid = entity.uid
        entry = self._entries.get(uid)
        if entry is None:
            pod = entity.members[0] if isinstance(entity, Entity) else entity
            entry = self._entries[uid] = Entry(entity, pod, Where.GATED, 0)
            self._activate(entry, now, Came.POD_ADDED)
            return
        makes_no_difference = is_alike(entry.entity, entity)
        entry.stand_for(entity)
        # Of several pods only those are tried whose bind is not under way: one may have come meanwhile.
        is_tried = uid in self._popped and not isinstance(entity, Entity)
        if not makes_no_difference and not is_tried:
            self._activate(entry, now, Came.POD_CHANGED)

    def _several(self, uid: str) -> Entity | None:
        """The entity of several pods that a pod is a member of."""
        if uid not in self._joined:
            return None
        entity = self._entries[self._joined[uid]].entity
        return entity if isinstance(entity, Entity) else None

    def _join(self, entity: Entity, now: float) -> None:
        if (known := self._entries.get(entity.uid)) is not None:
            for pod in known.entity.members:
                self._joined.pop(pod.uid, None)
        for pod in entity.members:
            self.drop(pod.uid, now)
            self._joined[pod.uid] = entity.uid

    def drop(self, uid: str, now: float, *, is_bound: bool = False) -> None:
        """A pod is bound, finished, deleted, or no longer ours; without it the rest of its entity may be placed."""
        if (several := self._several(uid)) is not None:
            del self._joined[uid]
            if len(several.members) > 1:
                left = several.without(uid, is_bound=is_bound)
                if is_bound:
                    self._entries[several.uid].stand_for(left)
                else:
                    self.offer(left, now)
                return
            uid = several.uid
        entry = self._entries.pop(uid, None)
        if entry is not None:
            self._leave(entry)
            self._popped.discard(entry.uid)
        self._compact()

    def pop(
        self,
        limit: int,
        now: float,
        cost: Callable[[PodRecord], int] = lambda _: 0,
        most: int = 0,
    ) -> list[AnyEntity]:
        """Active entities in their order, of up to ``limit`` pods. They count as tried.

        ``cost`` is what a pod costs beyond the usual, and is paid by its namespace; a batch ends before it has more
        pods or costs more than ``most``, with one entity at least.
        """
        self._release(limit, now)
        self.order.fade(now)
        batch: list[AnyEntity] = []
        paid: set[tuple[str, int]] = set()
        n_pods = spent = 0
        while n_pods < limit and (uid := self._turns.head()) is not None:
            entry = self._entries[uid]
            entity = entry.entity
            n_pods += len(entity.members) if isinstance(entity, Entity) else 1
            if batch and n_pods > limit:
                break
            # A pod that is like one of the batch is not expensive.
            like = (entry.pod.namespace, id(entry.pod.template))
            extra = cost(entry.pod) if self._is_shared and like not in paid else 0
            if batch and extra and spent + extra > most:
                break
            self._turns.pop()
            if extra:
                paid.add(like)
                spent += extra
                self.order.pay(entry.pod.namespace, extra)
            entry.attempts += 1
            entry.waited = now - entry.active_at
            self._popped.add(uid)
            batch.append(entity)
        return batch

    def charge(self, namespace: str, cost: float) -> None:
        """Work for a namespace has cost so much beyond the usual; nobody pays where tenants do not share."""
        if cost and self._is_shared:
            self.order.pay(namespace, cost)

    def take(self, uid: str, now: float) -> None:
        """Take a pod out as if it had just been popped, wherever it stands: it counts as tried."""
        entry = self.entry(uid)
        if entry is not None:
            self._move(entry, Where.ACTIVE, Came.POD_ADDED)
            entry.active_at = now
            entry.since = now if entry.since is None else entry.since
            entry.attempts += 1
            self._popped.add(entry.uid)

    def peek(self, now: float) -> PodRecord | None:
        """The pod that would be popped next; None when none is active."""
        self._release(1, now)
        uid = self._turns.head()
        return None if uid is None else self._entries[uid].pod

    def _is_stale(self, uid: str, ticket: int) -> bool:
        entry = self._entries.get(uid)
        return entry is None or entry.ticket != ticket

    def _compact(self) -> None:
        """Drop stale entries once they may be more than the others: a standby never pops."""
        most = _STALE_MAX + 2 * len(self._entries)
        self._n_changes += 1
        if self._n_changes <= most:
            return
        self._n_changes = 0
        self._turns.compact(most)
        for heap in (self._backoff, self._penance, self._failed):
            heap.compact(most)

    def failed(self, uid: str, now: float, kind: Hashable) -> None:
        """Nothing fits a pod: wait until a change could help it, and so its entity.

        ``kind`` is equal for pods that fit the same nodes; they all have one template.
        """
        entry = self._returned(uid, now)
        if entry is not None:
            self._move(entry, Where.UNSCHEDULABLE, Came.FAILED)
            self._failed.push(now, entry.ticket, entry.uid)
            if entry.pod.uid != uid:
                entry.pod = next(pod for pod in entry.entity.members if pod.uid == uid)
            self.parked.add(entry, kind)

    def retry(self, uid: str, now: float) -> None:
        """The bind failed through no fault of the pod: try its entity again after its backoff."""
        entry = self._returned(uid, now)
        if entry is not None:
            self._back_off(entry, now, Came.FAILED, self._penance)

    def is_alone(self, uid: str) -> bool:
        """Whether a pod waits by itself."""
        return uid not in self._joined

    def is_parked(self, uid: str) -> bool:
        """Whether a pod waits for a change."""
        entry = self.entry(uid)
        return entry is not None and entry.kind is not None

    def helped(self, kind: Hashable, now: float) -> None:
        """A change helps the pods of a kind: try them again, after their backoff."""
        for entry in self.parked.entries(kind):
            self._back_off(entry, now, Came.CLUSTER_CHANGED, self._backoff)

    def help_one(self, uid: str, now: float) -> None:
        """As ``helped`` of one pod; nothing unless it waits for a change."""
        self._help_one(uid, now, self._backoff)

    def help_at_once(self, uid: str, now: float) -> None:
        """The room that was made for a pod is free: try it now, as its victims went for no one else.

        Nothing unless it waits for a change.
        """
        entry = self.entry(uid)
        if entry is not None and entry.kind is not None:
            self._activate(entry, now, Came.CLUSTER_CHANGED)

    def help_promised(self, uid: str, now: float) -> None:
        """As ``help_one``, for what is promised; the pod sits out its backoff, even if nobody else is active.

        Pods that take from each other what is promised would else do so without end.
        """
        self._help_one(uid, now, self._penance)

    def _help_one(self, uid: str, now: float, heap: Dues) -> None:
        entry = self.entry(uid)
        if entry is not None and entry.kind is not None:
            self._back_off(entry, now, Came.CLUSTER_CHANGED, heap)

    def put_back(self, uid: str) -> None:
        """There was no time for an entity that was popped: it was not tried, and its turn comes again."""
        self._popped.discard(uid)
        entry = self._entries.get(uid)
        if entry is not None:
            entry.attempts -= 1
            self._move(entry, Where.ACTIVE, Came.POD_ADDED)
            self._turns.push(entry.entity, entry.ticket)

    def flush(self, now: float) -> None:
        """Try again what has waited for five minutes, should an event have been missed; the oldest few of it."""
        for _ in range(_FLUSHED_MOST):
            if (uid := self._failed.pop(now - _FLUSH_SECONDS)) is None:
                return
            self._activate(self._entries[uid], now, Came.WAITED_LONG)

    def next_due(self) -> float | None:
        """When the next pod is tried that is not active; None when none is in its backoff.

        While nobody is active a pod that was helped need not wait for the end of its backoff.
        """
        return 0.0 if self._backoff.first() is not None else self._penance.first()

    @property
    def has_active(self) -> bool:
        """Whether a pod may be waiting for the cycle (stale entries count)."""
        return len(self._turns) > 0

    def in_order(self) -> list[PodRecord]:
        """The active pods, in the order in which they would be popped if nobody had to pay."""
        active = (e.entity for e in self._entries.values() if e.where == Where.ACTIVE)
        ordered = sorted(active, key=self.order.place)
        return [pod for one in ordered for pod in one.members]

    def entries(self) -> Iterator[Entry]:
        """How all waiting pods stand, to be read."""
        return iter(self._entries.values())

    def pods(self) -> Iterator[PodRecord]:
        """All waiting pods."""
        return (pod for entry in self._entries.values() for pod in entry.entity.members)

    def counts(self) -> dict[Where, int]:
        """Pods in each part of the queue."""
        counts = dict.fromkeys(Where, 0)
        for entry in self._entries.values():
            counts[entry.where] += len(entry.entity.members)
        return counts

    def entry(self, uid: str) -> Entry | None:
        """How a waiting pod stands, to be read; None when it does not wait."""
        return self._entries.get(self._joined.get(uid, uid))

    def reconsider(self, now: float) -> None:
        """Try all waiting pods at once: something that steers every pod changed, such as a policy."""
        for entry in self._entries.values():
            if (
                entry.where in {Where.UNSCHEDULABLE, Where.BACKOFF}
                and entry.uid not in self._popped
            ):
                self._activate(entry, now, Came.STEERING_CHANGED)

    def _returned(self, uid: str, now: float) -> Entry | None:
        entry = self.entry(uid)
        if entry is not None:
            self._popped.discard(entry.uid)
            entry.failed_at = now
        return entry

    def ask_again(self, uid: str, now: float) -> None:
        """What an entity is held until has happened."""
        entry = self._entries.get(uid)
        if entry is not None and entry.held is not None:
            self._activate(entry, now, Came.CLUSTER_CHANGED)

    def _activate(self, entry: Entry, now: float, why: Came) -> None:
        """Let an entity be tried, if it may be."""
        if (held := self._door.judge(entry.entity)) is not None:
            self._move(entry, Where.GATED, why)
            entry.held = held
            self._door.hold(entry.uid, held)
            return
        self._move(entry, Where.ACTIVE, why)
        entry.active_at = now
        if entry.since is None:
            entry.since = now
        self._compact()
        self._turns.push(entry.entity, entry.ticket)

    def _back_off(self, entry: Entry, now: float, why: Came, heap: Dues) -> None:
        config = self._config
        wait = min(
            config.backoff_max_seconds,
            config.backoff_seconds * 2.0 ** min(30, max(0, entry.attempts - 1)),
        )
        due = entry.failed_at + wait
        if due <= now:
            self._activate(entry, now, why)
            return
        self._move(entry, Where.BACKOFF, why)
        heap.push(due, entry.ticket, entry.uid)

    def _release(self, most: int, now: float) -> None:
        """Whose backoff is over is active.

        While nobody else is, so many that were helped need not wait any longer. Of failed binds that says nothing.
        """
        while (uid := self._backoff.pop(now) or self._penance.pop(now)) is not None:
            self._activate(self._entries[uid], now, Came.BACKOFF_OVER)
        if self._turns.head() is None:
            while most and (uid := self._backoff.pop(_EVER)) is not None:
                self._activate(self._entries[uid], now, Came.BACKOFF_OVER)
                most -= 1

    def _move(self, entry: Entry, where: Where, why: Came) -> None:
        self.came[where, why] += 1
        self._tickets += 1
        entry.ticket = self._tickets
        entry.where = where
        self._leave(entry)

    def _leave(self, entry: Entry) -> None:
        """Whatever an entry has waited for, it does so no longer."""
        self.parked.drop(entry)
        if entry.held is not None:
            self._door.let_go(entry.uid)
            entry.held = None
