"""The engine: it applies events to the state and the queue, asks the cycle to decide, and answers questions.

A pod's way: ``Seen`` → state → (expensive to compile? ``intake``) → queue → ``decide`` → Bind → ``BindDone`` or
``BindFailed`` → bound, or waiting again. One writer, no lock: whoever owns the engine calls it from one task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from scheduler.api import kinds, wire
from scheduler.api.door import events, notes
from scheduler.api.door.decisions import Hold, Outcome
from scheduler.api.door.events import Event
from scheduler.api.door.notes import Note
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.devices import table as devices
from scheduler.engine import keepers
from scheduler.engine.allowance import Allowance, Work
from scheduler.engine.answers.inside import Inside
from scheduler.engine.answers.table import ANSWERS
from scheduler.engine.chores import Chores, Pace
from scheduler.engine.forgetting import Forgetting
from scheduler.engine.intake import Intake
from scheduler.engine.keepers import Keeper
from scheduler.engine.questions.contract import Question
from scheduler.modes.demand_tables import Counts
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster
from scheduler.state.entities import AnyEntity, count_pods
from scheduler.state.pods import Life, PodRecord
from scheduler.waiting.pending import Pending

# What a batch may cost beyond the usual, in units of about a millisecond per so many nodes.
_DEAR_UNITS, _NODES_A_UNIT = 8, 500
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
            is_shared: tenants share it, so each pays for what is expensive to decide; else nobody pays.
            explains: holds say why, which takes longer than the decision.
            known: the demand, where it is not to be learnt.
            seed: for the mode that draws lots.
        """
        self.config = config
        self._pace, self._known, self._seed = pace or Pace(), known, seed
        self._is_shared, self._explains = is_shared, explains
        self._begin()
        self._doors: dict[type[Any], Callable[[Any, float], Sequence[Note]]] = {
            events.Seen: self._seen,
            events.Gone: self._gone,
            events.ListBegins: self._list_begins,
            events.ListEnds: self._list_ends,
            events.BindDone: self._bind_done,
            events.BindFailed: self._bind_failed,
            events.PluginSilent: self._plugin_silent,
            events.EvictDone: lambda *_: _NOTHING,
            events.EvictFailed: self._evict_failed,
            events.DemandRecalled: self._demand_recalled,
            events.DemandKnown: self._demand_known,
            events.PodAssumed: self._pod_assumed,
            events.PodNominated: self._pod_nominated,
            events.PodGoing: self._pod_going,
        }

    def _begin(self) -> None:
        """Begin with an empty state."""
        config = self.config
        self._cluster = Cluster(
            config.scheduler_names, devices.of_config(config), config.pod_limits
        )
        self._policies = PolicyBook(config)
        self._pending = Pending(config, self._cluster.terms.labels_of, is_shared=self._is_shared)
        self._cycle = Cycle(self._cluster, self._policies, self._known, self._seed)
        self._keepers = {
            kinds.PODS.name: Keeper(self._pod_seen, self._pod_gone, tuple),
            kinds.NODES.name: Keeper(
                self._node_seen, self._node_gone, lambda: self._cluster.nodes.rows
            ),
            **keepers.make_table(config, self._cluster, self._policies, self._pending),
        }
        self._intake = Intake()
        self._chores = Chores(self._cluster, self._cycle, self._pending, self._pace)
        self._forgetting = Forgetting(self._cluster, self._cycle, self._pace.forget)
        self._inside = Inside(
            self._cluster, self._policies, self._pending, self._cycle, self._intake, self._keepers
        )
        # Whether the list that is being seen is the first of its stream; None outside of lists.
        self._is_first_list: bool | None = None

    # The door.

    def handle(self, event: Event, now: float) -> Sequence[Note]:
        """Take an event, and return what there is to say of it. ``now`` is in seconds, and never goes back."""
        return self._doors[type(event)](event, now)

    def decide(self, now: float, allowance: Allowance) -> Outcome:
        """Do what there is to do, as far as the allowance goes: compile, help and explain, decide.

        What is decided is assumed at once, and stays so until ``BindDone``, ``BindFailed`` or the watch.
        """
        outcome = Outcome()
        while self.is_compiling and allowance.allows(Work.COMPILE):
            self._chores.work_on_budgets()
            if len(self._intake):
                pod, listed = self._intake.next()
                record = self._cluster.see_pod(pod, listed=listed)
                outcome.notes += self._saw(record, pod.metadata.uid, now)
        self._forgetting.work(now)
        if not allowance.pods:
            return outcome
        self._chores.work(now, allowance, outcome)
        left = allowance.pods
        while left > 0 and allowance.allows(Work.BATCH):
            batch = self._next_batch(left, now)
            if not batch:
                break
            left -= count_pods(batch)
            self._decide_for(batch, now, outcome)
            # Whose time has come to be tried again was looked at with the first batch: it is as late as then.
            if not self._pending.has_active:
                break
        return outcome

    def ask(self, question: Question[T]) -> T:
        """The answer to a question, which changes no decision."""
        answer: T = ANSWERS[type(question)](self._inside, question)
        return answer

    def due(self, now: float) -> float:
        """Time of the next thing to decide that no event will tell of; infinite for none."""
        if self._pending.has_active:
            return now
        dues = self._pending.find_next_due(), self._chores.due(), self._forgetting.due()
        return min(due for due in dues if due is not None)

    @property
    def is_compiling(self) -> bool:
        """Whether expensive pods wait to be compiled, or it is to be found which budgets cover which pods."""
        return len(self._intake) > 0 or self._cluster.budgets.is_behind

    # Objects, each by who keeps its kind.

    def _seen(self, event: events.Seen, now: float) -> Sequence[Note]:
        return self._keepers[kinds.name_of(event.found)].see(event.found, now)

    def _gone(self, event: events.Gone, now: float) -> Sequence[Note]:
        return self._keepers[event.kind].gone(event.key, now)

    # Pods.

    def _pod_seen(self, pod: wire.Pod, now: float) -> Sequence[Note]:
        uid = pod.metadata.uid
        listed = bool(self._is_first_list) or self._intake.was_listed(uid)
        if self._is_shared and self._intake.takes(pod, listed=listed):
            return _NOTHING
        return self._saw(self._cluster.see_pod(pod, listed=listed), uid, now)

    def _saw(self, pod: PodRecord | None, uid: str, now: float) -> Sequence[Note]:
        self._forgetting.pod_changed()
        if pod is None:
            return self._left(uid, now)
        if pod.life == Life.ASSUMED:
            return _NOTHING
        if pod.life == Life.BOUND:
            self._pending.drop(uid, now, is_bound=True)
            return (notes.PodBound(uid),)
        if pod.ours:
            if pod.deleting:
                self._pending.drop(uid, now)
            else:
                self._pending.offer(pod, now)
        return _NOTHING

    def _pod_gone(self, uid: str, now: float) -> Sequence[Note]:
        self._forgetting.pod_changed()
        self._cluster.pod_gone(uid)
        return self._left(uid, now)

    def _left(self, uid: str, now: float) -> Sequence[Note]:
        self._intake.drop(uid)
        self._pending.drop(uid, now)
        return (notes.Left(uid),)

    def _list_begins(self, event: events.ListBegins, _: float) -> Sequence[Note]:
        if event.kind == kinds.PODS.name:
            self._is_first_list = self._cluster.begin_list(event.scheduler)
        return _NOTHING

    def _list_ends(self, event: events.ListEnds, _: float) -> Sequence[Note]:
        if event.kind == kinds.PODS.name:
            self._is_first_list = None
        return _NOTHING

    # Binds.

    def _bind_done(self, event: events.BindDone, now: float) -> Sequence[Note]:
        self._pending.drop(event.uid, now, is_bound=True)
        return (notes.Scheduled(event.uid),) if event.uid in self._cluster.pods else _NOTHING

    def _bind_failed(self, event: events.BindFailed, now: float) -> Sequence[Note]:
        uid = event.uid
        self._cluster.forget(uid)
        self._cluster.nominations.let_stay(uid)
        # What changed on the pod while its bind was under way counts from here on.
        pod = self._cluster.pods.get(uid)
        if pod is None or event.gone or pod.life == Life.BOUND or pod.deleting:
            is_bound = pod is not None and pod.life == Life.BOUND
            self._pending.drop(uid, now, is_bound=is_bound)
            return _NOTHING
        self._pending.offer(pod, now)
        self._pending.retry_pod(uid, now)
        return (notes.Retried(uid, event.message),)

    # Evictions.

    def _evict_failed(self, event: events.EvictFailed, now: float) -> Sequence[Note]:
        self._pending.help_pod_later(self._cluster.nominations.let_stay(event.uid), now)
        return _NOTHING

    # Nodes.

    def _node_seen(self, node: wire.Node, _: float) -> Sequence[Note]:
        before = self._cluster.facts_of(node.metadata.name)
        after = self._cluster.see_node(node)
        read = notes.NodeRead(after.name)
        if before is not None and before.devices == after.devices:
            return (read,)
        # What its pods say of their cards is judged by the cards, which may be heard of later.
        return (read, *(notes.PodBound(uid) for uid in self._cluster.pods_on.get(after.name, ())))

    def _node_gone(self, name: str, _: float) -> Sequence[Note]:
        self._cluster.node_gone(name)
        return _NOTHING

    def _plugin_silent(self, event: events.PluginSilent, _: float) -> Sequence[Note]:
        self._cluster.close_cards(event.node, closed=event.silent)
        if event.silent and self._cluster.facts_of(event.node) is not None:
            return (notes.PluginFellSilent(event.node, event.waits_for),)
        return _NOTHING

    # What an earlier leader knew.

    def _demand_recalled(self, event: events.DemandRecalled, _: float) -> Sequence[Note]:
        self._cluster.demand.recall(event)
        return _NOTHING

    # What another engine knew, in whose place this one goes on.

    def _demand_known(self, event: events.DemandKnown, _: float) -> Sequence[Note]:
        self._cluster.demand.restore(event.demand)
        return _NOTHING

    def _pod_assumed(self, event: events.PodAssumed, now: float) -> Sequence[Note]:
        pod = self._cluster.pods.get(event.uid)
        if pod is not None and pod.life == Life.PENDING:
            self._cluster.assume(event.uid, event.node, event.slots, event.given)
            self._pending.take_pod(event.uid, now)
        return _NOTHING

    def _pod_nominated(self, event: events.PodNominated, _: float) -> Sequence[Note]:
        pod = self._cluster.pods.get(event.uid)
        if pod is not None and pod.life == Life.PENDING:
            self._cluster.nominations.put(event.uid, event.node, pod.priority, event.cards)
        return _NOTHING

    def _pod_going(self, event: events.PodGoing, _: float) -> Sequence[Note]:
        if event.uid in self._cluster.pods:
            self._cluster.nominations.send_away(event.uid, event.makes_room_for)
        return _NOTHING

    # Decisions.

    def _next_batch(self, most: int, now: float) -> list[AnyEntity]:
        limit = min(self.config.slice_pods, most)
        units = _DEAR_UNITS // (1 + len(self._cluster.nodes.rows) // _NODES_A_UNIT)
        return self._pending.pop(limit, now, self._cycle.cost_of, max(1, units))

    def _decide_for(self, batch: list[AnyEntity], now: float, outcome: Outcome) -> None:
        self._chores.work_on_budgets()
        self._cycle.learn()
        promised = self._cluster.nominations.version
        made = self._cycle.schedule(batch, explain=self._explains)
        outcome.plans += made.plans
        for uid in made.left:
            self._pending.put_back(uid)
        if holds := made.holds:
            is_freed = promised != self._cluster.nominations.version
            self._park(made, holds, now, is_freed=is_freed)

    def _park(self, made: Outcome, holds: list[Hold], now: float, *, is_freed: bool) -> None:
        """Whom nothing fits waits; ``is_freed``: what is promised to others has changed since it was tried."""
        for hold in holds:
            # To find that nothing fits these pods has cost this, all together.
            cost = self._cycle.attempts.spent / _NODES_A_UNIT / len(holds)
            self._pending.charge_namespace(self._cluster.pods[hold.uid].namespace, cost)
        self._chores.absorb(now)
        for nominate in made.nominates:
            # Who lost what was promised may find room elsewhere.
            self._pending.help_pod_later(nominate.uid, now)
        is_behind = any(plan.binds for plan in made.plans)
        for hold in holds:
            self._chores.park(hold, now, is_behind=is_behind, is_freed=is_freed)
