"""The engine: it applies events to the state and the queue, asks the cycle to decide, and answers questions.

A pod's way: ``Seen`` → state → (expensive to compile? ``intake``) → queue → ``decide`` → Bind → ``BindDone`` or
``BindFailed`` → bound, or waiting again. One writer, no lock: whoever owns the engine calls it from one task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from scheduler.api import kinds, wire
from scheduler.api.door import events, notes
from scheduler.api.door.decisions import Outcome
from scheduler.api.door.events import Event
from scheduler.api.door.notes import Note
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.devices import table as devices
from scheduler.disruption import group_promises
from scheduler.engine import claims, kai_queues, keepers, restoring
from scheduler.engine.allowance import Allowance, Work
from scheduler.engine.answers.inside import Inside
from scheduler.engine.answers.table import ANSWERS
from scheduler.engine.backfill import Backfill
from scheduler.engine.below import BelowMinimum
from scheduler.engine.chores import Chores, Pace
from scheduler.engine.deciding import Deciding
from scheduler.engine.first_lists import FirstLists
from scheduler.engine.forgetting import Forgetting
from scheduler.engine.held_groups import HeldGroups
from scheduler.engine.intake import Intake
from scheduler.engine.kai_queues import KaiQueues
from scheduler.engine.keeping import Keeper
from scheduler.engine.node_events import NodeEvents
from scheduler.engine.owners_awaited import OwnersAwaited
from scheduler.engine.questions.contract import Lookup, Question
from scheduler.engine.queues import RESTORED, Queues
from scheduler.engine.restoring import Knowledge
from scheduler.engine.space_quotas import NamespaceQuotas
from scheduler.modes.demand_tables import Counts
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity, count_pods
from scheduler.state.pods import Life, PodRecord
from scheduler.state.seniority import Seniority

# What a batch may cost beyond the usual, in units of about a millisecond per so many nodes.
_DEAR_UNITS, _NODES_A_UNIT = 8, 500
# A pod that the Eviction API did not let go is not evicted for so long.
_REFUSED_SECONDS = 300.0
_NOTHING: tuple[Note, ...] = ()
T = TypeVar("T")


class Engine:
    """State, queue and cycle behind one door: events in, decisions out, and questions answered."""

    def __init__(
        self,
        config: Config,
        *,
        pace: Pace | None = None,
        is_shared: bool = True,
        explains: bool = True,
        known: Counts | None = None,
        seed: int = 0,
    ) -> None:
        """An engine that knows no node and no pod.

        Args:
            config: all settings.
            pace: how often pods that wait are looked at.
            is_shared: tenants share the engine, so each pays for its expensive pods; else nobody pays.
            explains: holds say why a pod waits, which takes longer than the decision.
            known: the demand, if the engine is not to learn it.
            seed: the seed of the mode that draws lots.
        """
        self.config = config
        self._pace, self._known, self._seed = pace or Pace(), known, seed
        self._is_shared, self._explains = is_shared, explains
        self._begin()

    def _begin(self) -> None:
        """Begin with an empty state."""
        config = self.config
        self._cluster = Cluster(
            config.scheduler_names,
            devices.read_devices(config),
            config.pod_limits,
            config.groups,
            Seniority(config.ageing_per_hour),
            config.kube_names,
        )
        self._cluster.records.trusts_claims = config.trust_claims
        self._policies = PolicyBook(config)
        self._cycle = Cycle(self._cluster, self._policies, self._known, self._seed, config.groups)
        self._queues = Queues(config, self._cluster, self._cycle)
        admissions = self._queues.list_admissions()
        self._pending, queued = kai_queues.make_pending(
            config, self._cluster, self._policies, admissions, is_shared=self._is_shared
        )
        self._nodes = NodeEvents(config, self._cluster, self._pending, self._queues.note_node)
        self._kai = KaiQueues(config, self._cycle, self._pending, queued, self._pace.help)
        self._spaces = NamespaceQuotas(self._cluster, self._cycle, self._pending, self._kai)
        self._keepers = {
            kinds.PODS.name: Keeper(self._see_pod, self._drop_pod, tuple),
            kinds.NODES.name: Keeper(
                self._nodes.see_node, self._nodes.drop_node, lambda: self._cluster.nodes.rows
            ),
            **keepers.make_table(config, self._cluster, self._policies, self._pending, self._queues, self._kai, self._spaces),
        }  # fmt: skip
        self._intake, self._held = Intake(), HeldGroups(self._cluster, self._pending)
        self._backfill = Backfill(self._cluster, self._cycle, self._pending, self._pace.promise)
        self._below = BelowMinimum(
            self._cluster, self._cycle, self._pending, is_on=self._pace.restarts, is_left=self._kai.is_left
        )  # fmt: skip
        self._owners_awaited = OwnersAwaited(self._cluster)
        self._chores = Chores(self._cluster, self._cycle, self._pending, self._pace)
        self._forgetting = Forgetting(self._cluster, self._cycle, self._pace.forget)
        self._inside = Inside(
            self._cluster, self._policies, self._pending, self._cycle, self._intake, self._keepers, self._queues.tenants,
            self._kai.accounts, self._spaces.ledger,
        )  # fmt: skip
        self._first_lists = FirstLists(config.scheduler_names)
        self._deciding = Deciding(self._cluster.pauses)
        self._doors: dict[type[Any], Callable[[Any, float], Sequence[Note]]] = {
            events.Seen: self._handle_seen,
            events.Gone: self._handle_gone,
            events.ListBegins: self._begin_list,
            events.ListEnds: self._end_list,
            events.BindDone: self._confirm_bind,
            events.BindFailed: self._undo_bind,
            events.PluginSilent: self._nodes.note_silence,
            events.CardsOnProbation: self._nodes.restore_probation,
            events.AdmitFailed: self._queues.undo_admit,
            events.PreemptFailed: self._queues.undo_preempt,
            **dict.fromkeys((events.AdmitDone, events.EvictDone), lambda *_: _NOTHING),
            events.GroupsAsked: lambda _, now: self._settle_groups(now),
            events.EvictFailed: self._undo_evict,
            **dict.fromkeys(restoring.KINDS, self._restore),
            **dict.fromkeys(RESTORED, self._queues.restore),
            **dict.fromkeys(kai_queues.RESTORED, self._kai.restore),
        }

    # The door.

    def handle(self, event: Event, now: float) -> Sequence[Note]:
        """Apply an event, after a decision that has paused; return notes about it. ``now`` is in seconds since 1970."""
        self._deciding.finish()
        self._cluster.now = now
        return self._doors[type(event)](event, now)

    def decide(self, now: float, allowance: Allowance) -> Outcome:
        """Work as far as the allowance goes: compile pods, help and explain waiting pods, decide for pods.

        A decision is assumed at once, and holds until ``BindDone``, ``BindFailed`` or the watch says otherwise. Where no
        further step is allowed, the work pauses, and the next call goes on with it. Until its end nothing is returned.
        """
        return self._deciding.decide(partial(self._work, now), allowance)

    @property
    def is_deciding(self) -> bool:
        """Whether a decision has paused, or has not been returned yet."""
        return self._deciding.is_open

    def _work(self, now: float, allowance: Allowance, outcome: Outcome) -> None:
        self._cluster.now = now
        claims.catch_up(self._cluster, outcome, decides=allowance.pods > 0)
        self._nodes.end_probation(now)
        self._owners_awaited.work(now)
        self._settle_groups(now)
        self._held.note_due(now, outcome)
        while self.is_compiling and allowance.allows(Work.COMPILE):
            self._chores.work_on_budgets()
            if len(self._intake):
                pod, listed = self._intake.pop_next()
                record = self._cluster.see_pod(pod, listed=listed)
                outcome.notes += self._queue_pod(record, pod.metadata.uid, now)
                self._settle_groups(now)
        self._forgetting.work(now)
        if not allowance.pods:
            self._queues.tenants.make_ready(now)
            return
        self._queues.work(now, allowance, outcome)
        self._pending.judge_again(self._queues.take_woken(), now)
        self._spaces.wake(now)
        self._below.work(now, outcome)
        self._chores.work(now, allowance, outcome)
        self._kai.begin(now)
        left = allowance.pods
        while left > 0 and allowance.allows(Work.BATCH):
            # A decision may send pods of other groups away.
            self._settle_groups(now)
            if not (batch := self._pop_batch(left, now)):
                break
            left -= count_pods(batch)
            for part in self._backfill.split_batch(batch):
                self._decide_for(part, now, outcome)
                self._backfill.promise_first(part[-1], now)
            # The first batch has taken the pods whose backoff is over, and ``now`` has not moved since.
            if not self._pending.has_active:
                break
        # Whoever was woken and found no node must not block those behind it in its namespace.
        self._spaces.wake(now)
        self._kai.make_room(now, outcome)
        self._queues.evict_stand_ins(outcome)
        self._backfill.work(now, allowance)
        self._cluster.groups.shortages.urgency.end_start()
        # Who carries the decisions out puts questions, which would form all groups of victims at once.
        self._settle_groups(now)

    def ask(self, question: Question[T]) -> T:
        """Answer a question, which changes no decision unless it is a ``Foresight``."""
        if not question.is_about_facts:
            self._deciding.finish()
        if not isinstance(question, Lookup) and self._cluster.groups.has_changed:
            # The engine's log has to have it: how long a group has been as it is counts from now.
            self.handle(events.GroupsAsked(), self._cluster.now)
        answer: T = self._deciding.guard(ANSWERS[type(question)](self._inside, question))
        return answer

    def find_due(self, now: float) -> float:
        """Return when ``decide`` is due next without an event; infinite when it is not."""
        if self.is_deciding or self._pending.has_active or self._cluster.groups.has_changed:
            return now
        parts = self._nodes, self._chores, self._forgetting, self._held, self._backfill, self._below
        dues = [part.find_due() for part in (*parts, self._owners_awaited, self._queues, self._kai)]
        pending = self._pending.find_next_due()
        return min(dues) if pending is None else min(pending, *dues)

    @property
    def is_compiling(self) -> bool:
        """Whether expensive pods wait to be compiled, or it is not yet known which pods the budgets cover."""
        return len(self._intake) > 0 or self._cluster.budgets.is_behind

    # Objects, each by the keeper of its kind.

    def _handle_seen(self, event: events.Seen, now: float) -> Sequence[Note]:
        return self._keepers[kinds.read_kind_name(event.found)].see(event.found, now)

    def _handle_gone(self, event: events.Gone, now: float) -> Sequence[Note]:
        return self._keepers[event.kind].gone(event.key, now)

    # Pods.

    def _see_pod(self, pod: wire.Pod, now: float) -> Sequence[Note]:
        uid = pod.metadata.uid
        listed = self._first_lists.has_pod_of(pod.spec.scheduler_name or "")
        listed = listed or self._intake.was_listed(uid)
        self._queues.note_pod(pod)
        if self._is_shared and self._intake.take_in(pod, listed=listed):
            return _NOTHING
        return self._queue_pod(self._cluster.see_pod(pod, listed=listed), uid, now)

    def _queue_pod(self, pod: PodRecord | None, uid: str, now: float) -> Sequence[Note]:
        self._forgetting.note_change()
        if pod is None:
            return self._let_leave(uid)
        self._kai.accounts.note_pod(pod)
        if pod.life == Life.ASSUMED:
            return _NOTHING
        if pod.life == Life.BOUND:
            self._pending.drop(uid)
            return (notes.PodBound(uid),)
        self._queues.give_seat(pod)
        # A group is offered as a whole, once for all changes of its pods.
        if pod.ours and self._cluster.groups.find_group(uid) is None:
            if pod.deleting:
                self._pending.drop(uid)
            else:
                self._pending.offer(pod, now)
        return _NOTHING

    def _settle_groups(self, now: float) -> Sequence[Note]:
        """Offer the groups that have changed; there are no notes about that."""
        if not self._cluster.groups.has_changed:
            return _NOTHING
        for uid, entity in self._cluster.groups.take_changed():
            self._cluster.pauses.take()
            self._backfill.note_group(uid, entity)
            if entity is None:
                self._pending.drop(uid)
                self._held.drop(uid)
            else:
                self._pending.offer(entity, now)
                self._held.see(entity, now)
        self._below.follow(now)
        for uid in self._cluster.groups.take_left():
            pod = self._cluster.pods.get(uid)
            if pod is not None and pod.ours and pod.life == Life.PENDING and not pod.deleting:
                self._pending.offer(pod, now)
        return _NOTHING

    def _drop_pod(self, uid: str, _: float) -> Sequence[Note]:
        self._forgetting.note_change()
        self._queues.drop_pod(uid)
        self._cluster.drop_pod(uid)
        return self._let_leave(uid)

    def _let_leave(self, uid: str) -> Sequence[Note]:
        self._kai.accounts.drop_pod(uid)
        self._intake.drop(uid)
        self._pending.drop(uid)
        return (notes.Left(uid),)

    def _begin_list(self, event: events.ListBegins, _: float) -> Sequence[Note]:
        if event.kind == kinds.PODS.name:
            self._first_lists.begin_list(event.scheduler)
        return _NOTHING

    def _end_list(self, event: events.ListEnds, _: float) -> Sequence[Note]:
        if event.kind == kinds.PODS.name:
            self._first_lists.end_list(event.scheduler)
        else:
            self._cluster.groups.awaited.note_listed(event.kind)
        return _NOTHING

    # Binds.

    def _confirm_bind(self, event: events.BindDone, _: float) -> Sequence[Note]:
        claims.confirm_bind(self._cluster, event.uid)
        self._pending.drop(event.uid)
        return (notes.Scheduled(event.uid),) if event.uid in self._cluster.pods else _NOTHING

    def _undo_bind(self, event: events.BindFailed, now: float) -> Sequence[Note]:
        uid = event.uid
        before = self._cluster.pods.get(uid)
        claims.undo_bind(self._cluster, event)
        self._cluster.nominations.let_stay(uid)
        # Changes of the pod that came while its bind was under way count from here on.
        pod = self._cluster.pods.get(uid)
        if pod is not None:
            self._cluster.groups.note_pod(pod)
        if before is not None and before.life == Life.ASSUMED:
            group_promises.keep_room(self._cluster, before)
            self._cluster.groups.note_failed_bind(uid)
        if pod is None or event.gone or pod.life == Life.BOUND or pod.deleting:
            self._pending.drop(uid)
            return _NOTHING
        if self._cluster.groups.find_group(uid) is None:
            self._pending.offer(pod, now)
        self._settle_groups(now)
        self._nodes.retry_pod(event, now)
        return (notes.Retried(uid, event.message),)

    # Evictions.

    def _undo_evict(self, event: events.EvictFailed, now: float) -> Sequence[Note]:
        nominations = self._cluster.nominations
        if event.is_refused and event.uid in self._cluster.pods:
            nominations.note_refused(event.uid, now + _REFUSED_SECONDS)
        self._pending.help_pod_later(nominations.let_stay(event.uid), now)
        return _NOTHING

    def _restore(self, event: Knowledge, now: float) -> Sequence[Note]:
        restoring.restore(self._cluster, self._pending, event, now)
        return _NOTHING

    # Decisions.

    def _pop_batch(self, most: int, now: float) -> list[AnyEntity]:
        units = _DEAR_UNITS // (1 + len(self._cluster.nodes.rows) // _NODES_A_UNIT)
        costs = self._cycle.estimate_cost, max(1, units), self._cycle.find_likeness
        return self._pending.pop(min(self.config.slice_pods, most), now, *costs)

    def _decide_for(self, batch: list[AnyEntity], now: float, outcome: Outcome) -> None:
        self._chores.work_on_budgets()
        self._cycle.learn()
        promised = self._cluster.nominations.version
        made = self._spaces.schedule(batch, now, outcome, explain=self._explains)
        self._cluster.pauses.take()
        outcome.plans += made.plans
        self._backfill.note_plans(made.plans, now, outcome)
        for uid in made.left:
            self._pending.put_back(uid)
        if any(plan.hold for plan in made.plans):
            # A trial that was undone changes the version, too.
            is_other = any(plan.nominates or plan.binds for plan in made.plans)
            is_freed = is_other and promised != self._cluster.nominations.version
            self._park_pods(made, now, is_freed=is_freed)

    def _park_pods(self, made: Outcome, now: float, *, is_freed: bool) -> None:
        """Park pods that fit nowhere; ``is_freed``: the room promised to other pods has changed since they were tried."""
        holds = made.holds
        for hold in holds:
            # The search for victims has cost this, and the pods share the cost equally.
            cost = self._cycle.attempts.spent / _NODES_A_UNIT / len(holds)
            self._pending.charge_namespace(self._cluster.pods[hold.uid].namespace, cost)
        self._chores.absorb_news(now)
        for nominate in self._cluster.pauses.go_through(made.nominates):
            # A pod that lost its promised room may find room elsewhere.
            self._pending.help_pod_later(nominate.uid, now)
        is_behind = any(plan.binds for plan in made.plans)
        for plan in made.plans:
            if plan.hold is not None:
                self._chores.park_pod(plan.hold, now, is_behind=is_behind, is_freed=is_freed)
            self._chores.note_rest(plan, now)
