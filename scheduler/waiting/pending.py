"""The waiting entities: their order, their backoff, and which of them a change could help.

    offer ─▶ active ─ pop ─▶ (in the cycle) ─ park_pod ─▶ unschedulable ─ help_kind ─▶ backoff ─▶ active
      └─▶ gated (held by admissions)     └─ retry_pod ─▶ backoff

An entity that fits nowhere waits in ``unschedulable`` until something changes that could help its kind. If it was
tried only just now, it then sits out its backoff (1 s, doubling to 10 s by default) while other entities are active.

Nearly every entity is one pod. Several pods that are one entity have one entry. A method that takes the uid of a pod
does to the pod's entity what it says of the pod.

``parts`` keeps the entries and moves them, ``admissions`` decide whether an entity may be tried at all, ``orders``
says which entity comes first, and ``parked`` keeps the entities that wait for a change.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

from scheduler.api.door.decisions import GroupResult, Hold
from scheduler.api.selectors import Labels
from scheduler.config import Config
from scheduler.state.entities import AnyEntity, Entity
from scheduler.state.pods import PodRecord
from scheduler.waiting.admissions import ADMISSIONS, Admission, Held
from scheduler.waiting.entries import Came, Entry, Where, is_alike
from scheduler.waiting.orders import Order, PriorityAndAge
from scheduler.waiting.parked import Parked
from scheduler.waiting.parts import Parts


class Pending:
    """The pods of ours that have no node, by entity. One writer, like the cluster.

    Attributes:
        parked: the pods that wait for a change.
        came: how often an entity came to each part of the queue, by the reason.
        order: which entity comes first.
        opened: the rows of nodes of which turns have begun again since all waiting pods were looked at.
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
        self.order, self.opened = order or PriorityAndAge(), set[int]()
        self.parked = Parked(labels_of, self.order)
        self._parts = Parts(config, self.order, self.parked, admissions)
        self._entries, self.came = self._parts.entries, self._parts.came
        self._is_shared = is_shared
        # By the uid of a pod: the uid of the entity of several pods that it is a member of.
        self._joined: dict[str, str] = {}
        self._popped: set[str] = set()
        # By node: the pods whose turn before it did not come, as its device plugin fell silent.
        self._behind: dict[str, set[str]] = {}
        # The entries of groups, by uid.
        self._groups: dict[str, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def offer(self, entity: AnyEntity, now: float) -> None:
        """Add a waiting entity, or take over how it changed. A change that could matter makes it active at once.

        A pod that is a member of an entity no longer waits by itself. A pod that stops being a member has to be
        offered anew.
        """
        uid = entity.uid
        entry = self._entries.get(uid)
        if isinstance(entity, Entity):
            self._join(entity)
        if entry is None:
            pod = entity.members[0] if isinstance(entity, Entity) else entity
            entry = self._entries[uid] = Entry(uid, entity, pod, Where.GATED, 0)
            if isinstance(entity, Entity):
                self._groups[uid] = entry
            self._parts.activate(entry, now, Came.POD_ADDED)
            return
        makes_no_difference = is_alike(entry.entity, entity)
        is_moved = isinstance(entity, Entity) and self._has_moved(entry, entity)
        entry.stand_for(entity)
        # Of a group the cycle tries only pods without a bind under way: a member that came meanwhile has to be tried.
        is_tried = uid in self._popped and not isinstance(entity, Entity)
        if (not makes_no_difference and not is_tried) or is_moved:
            self._parts.activate(entry, now, Came.POD_CHANGED)

    def _has_moved(self, entry: Entry, entity: Entity) -> bool:
        """Whether a group that is to be tried has another place in the order now."""
        find_place = self.order.find_place
        is_queued = entry.where == Where.ACTIVE and entry.uid not in self._popped
        return is_queued and find_place(entry.entity) != find_place(entity)

    def _join(self, entity: Entity) -> None:
        """Note which pods are the members of an entity; none of them waits by itself any more."""
        self._part(entity.uid)
        for pod in entity.members:
            if pod.uid in self._entries:
                self.drop(pod.uid)
            self._joined[pod.uid] = entity.uid

    def _part(self, uid: str) -> None:
        """Forget which pods are the members of an entity."""
        if (entry := self._entries.get(uid)) is not None and isinstance(entry.entity, Entity):
            for pod in entry.entity.members:
                if self._joined.get(pod.uid) == uid:
                    del self._joined[pod.uid]

    def drop(self, uid: str) -> None:
        """Remove an entity that is bound, finished, deleted or no longer ours; nothing when it does not wait."""
        self._part(uid)
        self._parts.drop(uid)
        self._popped.discard(uid)
        self._groups.pop(uid, None)

    def pop(
        self,
        limit: int,
        now: float,
        cost: Callable[[PodRecord], int] = lambda _: 0,
        most: int = 0,
        likeness: Callable[[PodRecord], Hashable] = lambda pod: id(pod.template),
    ) -> list[AnyEntity]:
        """Return active entities in their order, of up to ``limit`` pods. They count as tried.

        ``cost`` is what a pod costs beyond the usual, and is paid by its namespace; of pods of one ``likeness`` the first
        one alone costs it. A batch ends before it has more pods or costs more than ``most``, with one entity at least.
        """
        self._parts.release(limit, now)
        self.order.fade_debts(now)
        active = self._parts.active
        batch: list[AnyEntity] = []
        paid: set[tuple[str, Hashable]] = set()
        n_pods = spent = 0
        is_alone = False
        while n_pods < limit and (uid := active.find_head()) is not None:
            entry = self._entries[uid]
            entity = entry.entity
            n_pods += len(entity.members) if isinstance(entity, Entity) else 1
            goes_alone = self.order.goes_alone(entity)
            if batch and (n_pods > limit or goes_alone or is_alone):
                break
            is_alone = goes_alone
            # A pod that is like one of the batch is not expensive.
            like = (entry.pod.namespace, likeness(entry.pod))
            extra = cost(entry.pod) if self._is_shared and like not in paid else 0
            if batch and extra and spent + extra > most:
                break
            active.pop()
            if extra:
                paid.add(like)
                spent += extra
                self.order.pay_cost(entry.pod.namespace, extra)
            entry.attempts += 1
            entry.waited = now - entry.active_at
            self._popped.add(uid)
            batch.append(entity)
        return batch

    def charge_namespace(self, namespace: str, cost: float) -> None:
        """Let a namespace pay for work that cost so much beyond the usual; nothing where namespaces do not pay."""
        if cost and self._is_shared:
            self.order.pay_cost(namespace, cost)

    def take_pod(self, uid: str, now: float) -> None:
        """Take a pod out as if it had just been popped, whichever part it is in: it counts as tried."""
        entry = self.find_entry(uid)
        if entry is not None:
            self._parts.move(entry, Where.ACTIVE, Came.POD_ADDED)
            entry.active_at = now
            entry.since = now if entry.since is None else entry.since
            entry.attempts += 1
            self._popped.add(entry.uid)

    def peek(self, now: float) -> PodRecord | None:
        """Return the pod that would be popped next; None when none is active."""
        self._parts.release(1, now)
        uid = self._parts.active.find_head()
        return None if uid is None else self._entries[uid].pod

    def park_pod(self, uid: str, now: float, kind: Hashable) -> None:
        """Park a pod that fits nowhere, until a change could help it.

        ``kind`` is equal for pods that fit the same nodes; they all have one template.
        """
        entry = self._take_back(uid, now)
        if entry is not None:
            if entry.pod.uid != uid:
                entry.pod = next(pod for pod in entry.entity.members if pod.uid == uid)
            self._parts.park(entry, now, kind)

    def note_result(self, uid: str, result: GroupResult, why: Hold) -> None:
        """Note the result for a group that was tried, and why one of its pods found no node."""
        if (entry := self._entries.get(uid)) is not None:
            entry.result, entry.why = result, why

    def hold(self, uid: str, held: Held, now: float) -> None:
        """Hold an entity that was tried, until somebody asks for it to be judged again."""
        entry = self._take_back(uid, now)
        if entry is not None:
            self._parts.hold(entry, held, Came.FAILED)

    def retry_pod(self, uid: str, now: float, *, at_once: bool = False) -> None:
        """Try a pod again after its backoff: its bind failed through no fault of the pod.

        ``at_once``: it was not even begun, so the pod need not sit out its backoff. A group does, as its room is kept for it.
        """
        entry = self._take_back(uid, now)
        if entry is None:
            return
        if at_once and self.is_alone(uid):
            entry.attempts = max(0, entry.attempts - 1)
            self._parts.activate(entry, now, Came.FAILED)
            return
        self._parts.back_off(entry, now, Came.FAILED, in_full=True)

    def await_turns(self, uid: str, node: str) -> bool:
        """Note that the turn of a pod before a node did not come; return whether that is new since turns began there."""
        behind = self._behind.setdefault(node, set())
        is_new = uid not in behind
        behind.add(uid)
        return is_new

    def begin_turns(self, node: str, row: int, now: float) -> None:
        """Try the pods at once whose turn before a node did not come: its turns begin again. ``row``: -1 if the node is gone."""
        self.opened.update([row] if row >= 0 else ())
        for uid in sorted(self._behind.pop(node, ())):
            entry = self._entries.get(uid)
            if entry is not None and self._is_put_off(entry):
                self._parts.activate(entry, now, Came.CLUSTER_CHANGED)

    def is_alone(self, uid: str) -> bool:
        """Whether a pod waits by itself."""
        return uid not in self._joined

    def is_parked(self, uid: str) -> bool:
        """Whether a pod waits for a change."""
        return self._find_parked(uid) is not None

    def help_kind(
        self,
        kind: Hashable,
        now: float,
        is_held: Callable[[AnyEntity], bool] = lambda _: False,
        first: str = "",
        *,
        at_once: bool = False,
    ) -> None:
        """Try the pods of a kind again after their backoff: a change could help them, except those ``is_held`` names.

        The entity with the uid ``first`` has no backoff: others must leave room for it meanwhile. Nobody has one where a node's
        turns begin again (``at_once``): the pods that have waited for this come in their order.
        """
        for entry in self.parked.list_entries(kind):
            if is_held(entry.entity):
                continue
            if at_once or entry.uid == first:
                self._parts.activate(entry, now, Came.CLUSTER_CHANGED)
                continue
            self._parts.back_off(entry, now, Came.CLUSTER_CHANGED, in_full=False)

    def help_pod(self, uid: str, now: float) -> None:
        """Try one pod again after its backoff, if it waits for a change: this change could help it."""
        if (entry := self._find_parked(uid)) is not None:
            self._parts.back_off(entry, now, Came.CLUSTER_CHANGED, in_full=False)

    def help_pod_at_once(self, uid: str, now: float) -> None:
        """Try one pod now, if it waits for a change: the victims that made room for it, and for no other pod, are gone."""
        if (entry := self._find_parked(uid)) is not None:
            self._parts.activate(entry, now, Came.CLUSTER_CHANGED)

    def help_pod_later(self, uid: str, now: float) -> None:
        """Try one pod again, if it waits for a change, because promised room changed; it sits out all of its backoff.

        Pods that take promised room from each other would otherwise do so without end.
        """
        if (entry := self._find_parked(uid)) is not None:
            self._parts.back_off(entry, now, Came.CLUSTER_CHANGED, in_full=True)

    def put_back(self, uid: str) -> None:
        """Give an entity its turn again that was popped but not tried, as there was no time."""
        self._popped.discard(uid)
        entry = self._entries.get(uid)
        if entry is not None:
            entry.attempts -= 1
            self._parts.move(entry, Where.ACTIVE, Came.POD_ADDED)
            self._parts.active.push(entry.entity, entry.ticket)

    def retry_longest_parked(self, now: float) -> None:
        """Try a few of the entities again that were parked for five minutes, in case an event was missed."""
        self._parts.release_longest_parked(now)

    def find_next_due(self) -> float | None:
        """When the next pod that is not active is tried; None when no pod is in its backoff.

        While no pod is active, a pod that a change could help need not wait for the end of its backoff.
        """
        return self._parts.find_next_due()

    @property
    def has_active(self) -> bool:
        """Whether a pod may be waiting for the cycle (stale entries count)."""
        return len(self._parts.active) > 0

    def list_active(self) -> list[PodRecord]:
        """List the active pods in the order in which they would be popped if no namespace had to pay."""
        active = (e.entity for e in self._entries.values() if e.where == Where.ACTIVE)
        ordered = sorted(active, key=self.order.find_place)
        return [pod for one in ordered for pod in one.members]

    def list_entries(self) -> Iterator[Entry]:
        """Return the entries of all waiting entities, to be read."""
        return iter(self._entries.values())

    def list_pods(self) -> Iterator[PodRecord]:
        """Return all waiting pods."""
        return (pod for entry in self._entries.values() for pod in entry.entity.members)

    def count_pods(self) -> dict[Where, int]:
        """Count the pods in each part of the queue."""
        counts = dict.fromkeys(Where, 0)
        for entry in self._entries.values():
            counts[entry.where] += len(entry.entity.members)
        return counts

    def count_groups(self) -> dict[Where, int]:
        """Count the groups with waiting pods in each part of the queue."""
        counts = dict.fromkeys(Where, 0)
        for entry in self._groups.values():
            counts[entry.where] += 1
        return counts

    def list_groups(self) -> Iterator[Entry]:
        """Return the entries of all groups with waiting pods, to be read."""
        return iter(self._groups.values())

    def find_entry(self, uid: str) -> Entry | None:
        """Return the entry of a waiting pod, to be read; None when the pod does not wait."""
        return self._entries.get(self._joined.get(uid, uid))

    def retry_all(self, now: float) -> None:
        """Try all waiting pods at once: something that steers every pod changed, such as a policy."""
        for entry in self._entries.values():
            if self._is_put_off(entry):
                self._parts.activate(entry, now, Came.STEERING_CHANGED)

    def _is_put_off(self, entry: Entry) -> bool:
        """Whether an entity was tried in vain, and is not to be tried now."""
        is_put_off = entry.where in {Where.UNSCHEDULABLE, Where.BACKOFF}
        return is_put_off and entry.uid not in self._popped

    def judge_again(self, uids: Iterable[str], now: float) -> None:
        """Ask the admissions again about entities that one of them holds: the awaited change has happened."""
        for uid in uids:
            entry = self._entries.get(uid) or self.find_entry(uid)
            if entry is not None and entry.held is not None:
                self._parts.activate(entry, now, Came.CLUSTER_CHANGED)

    def _find_parked(self, uid: str) -> Entry | None:
        entry = self.find_entry(uid)
        return entry if entry is not None and entry.kind is not None else None

    def _take_back(self, uid: str, now: float) -> Entry | None:
        """Note that a pod was tried in vain, and return its entry."""
        entry = self.find_entry(uid)
        if entry is not None:
            self._popped.discard(entry.uid)
            entry.failed_at = now
        return entry
