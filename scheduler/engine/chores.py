"""Work for pods that wait for a change, done in small pieces between decisions."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

from scheduler.api.door.decisions import Barriers, Hold, Outcome, Plan
from scheduler.cycle.asking import Answers
from scheduler.disruption import group_promises, protectors
from scheduler.engine.allowance import Allowance, Work
from scheduler.engine.barring import Barring
from scheduler.engine.freed import FreedRows
from scheduler.engine.rounds import Rounds, take_turns
from scheduler.engine.splitting import Splitting
from scheduler.engine.waking import Waking
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity
from scheduler.state.pods import PodRecord
from scheduler.waiting.admissions import Woken
from scheduler.waiting.helping import Changed, FreeRows
from scheduler.waiting.looks import Looks
from scheduler.waiting.pending import Pending
from scheduler.waiting.watching import Watch

# A kind that a bound rules out takes next to no time: so many such kinds are one piece of work.
_STRIDE = 64
# A unit of cost is either so many nodes that are asked for victims, or a whole step of finding which budgets cover
# which pods.
_NODES_A_UNIT, _UNITS_A_STEP = 500, 1.0
_NEVER = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often the engine looks at waiting pods, in seconds.

    Attributes:
        help: the least time between two looks for pods that changes could help.
        flush: the time between two looks for pods that were parked for long.
        explain: the least time between two rounds that explain anew why pods wait.
        explain_rate: the most pods that such rounds explain a second.
        forget: the time between two looks for results that only pods that are gone have needed.
        promise: the least time between two looks for the group that is promised room for later; 0: with every change, and
            never by time alone.
        restarts: groups that stay below their minimum are sent away.
    """

    help: float = 0.02
    flush: float = 1.0
    explain: float = 5.0
    explain_rate: float = 100.0
    forget: float = 15.0
    promise: float = 5.0
    restarts: bool = True


# For virtual time: every change is looked at when it comes, and nobody reads explanations.
PROMPT = Pace(help=0.0, flush=_NEVER, explain=_NEVER, forget=_NEVER, promise=0.0, restarts=False)


class Chores:
    """Helps and explains waiting pods. Work that is begun and not finished goes on at the next turn."""

    def __init__(self, cluster: Cluster, cycle: Answers, pending: Pending, pace: Pace) -> None:
        self._cluster, self._cycle, self._pending, self._pace = cluster, cycle, pending, pace
        self._parked, self._hooks = pending.parked, pending.parked.hooks
        self._watch = Watch(cluster)
        self._looks = Looks(self._parked.find_place)
        self._barring = Barring(cycle, self._parked, self._watch)
        self._splitting = Splitting(cycle, self._parked, self._barring)
        self._seen, self._freed = FreeRows(cluster), FreedRows(cluster)
        # Rounds over nominated pods, and rounds over pods that may preempt.
        self._promised, self._taking = Rounds(self._help_nominated), Rounds(self._help_to_take)
        # Rounds over groups of unlike pods, and over groups that may preempt.
        self._waking = Waking(cluster, cycle, pending)
        self._unlike, self._taking_groups = (
            Rounds(self._waking.help_unlike),
            Rounds(self._waking.help_to_take),
        )
        self._taken_version: Hashable = None
        self._explaining: Iterator[None] = iter(())
        self._outcome = Outcome()
        self._is_unfinished = self._is_postponed = False
        self._helped_at = self._flushed_at = self._explained_at = 0.0
        # A position in the cluster's log of changes.
        self._explained_position = -1

    def find_due(self) -> float:
        """Return the time at which work is due next; infinite when only a change can bring work."""
        rounds = self._promised, self._taking, self._unlike, self._taking_groups
        if self._is_unfinished or self._looks or any(one.is_due for one in rounds):
            return 0.0
        if self._hooks and self._watch.has_news:
            return self._find_next_help()
        return _NEVER

    def _find_next_help(self) -> float:
        """Return the time from which news are looked at. It is computed here alone: by a difference it may be later."""
        return self._helped_at + self._pace.help

    def absorb_news(self, now: float) -> None:
        """Take the news before more pods are parked: earlier changes could help only pods that are parked already."""
        if self._hooks:
            self._take_news(now)
        else:
            self._watch.catch_up()
            self._find_freed()

    def park_pod(self, hold: Hold, now: float, *, is_behind: bool, is_freed: bool) -> None:
        """Park a pod that fits nowhere, and with it its entity.

        ``is_behind``: other pods were placed since it was tried, and its affinity may draw it to them; ``is_freed``:
        the room that is promised to other pods has changed since it was tried.
        """
        pod = self._cluster.pods[hold.uid]
        kind = self._cycle.find_kind(pod)
        self._pending.park_pod(hold.uid, now, kind)
        if (entry := self._pending.find_entry(hold.uid)) is not None:
            self._barring.keep_entry_off(kind, entry, hold.barriers)
            if isinstance(entry.entity, Entity):
                self._waking.note_parked(entry.entity)
        if is_freed or (is_behind and self._may_follow(pod, hold.barriers)):
            self._note_kind(kind, None)
        if is_freed and entry is not None and isinstance(entry.entity, Entity):
            # What is promised to the group itself is no room for its kind: its own nodes are looked at for it.
            nominations, find_row = self._cluster.nominations, self._cluster.nodes.find_row
            nodes = (nominations.find_node(one.uid) for one in entry.entity.members)
            self._promised.note_rows({find_row(node) for node in nodes if node})

    def note_rest(self, plan: Plan, now: float) -> None:
        """Note of a group why pods of it wait, which are parked; room is made for these when the others have theirs.

        By kube-scheduler's rules they were tried by themselves at once.
        """
        if plan.group is None or plan.hold is None:
            return
        self._pending.note_result(plan.entity, plan.group, plan.hold)
        priority = self._cluster.pods[plan.hold.uid].priority
        is_exact = bool(plan.group.leaves)
        if plan.binds and not is_exact and self._cycle.attempts.has_lower(priority):
            self._pending.help_pod_at_once(plan.hold.uid, now)

    def _may_follow(self, pod: PodRecord, barriers: Barriers) -> bool:
        """Whether a pod that these barriers keep off nodes may fit once other pods have come."""
        return any(hint.came for hint in self._cycle.list_hints(pod, barriers))

    def work(self, now: float, allowance: Allowance, outcome: Outcome) -> None:
        """Look after the waiting pods, as far as the allowance goes. Their explanations go into the outcome."""
        if now - self._flushed_at >= self._pace.flush:
            self._flushed_at = now
            self._pending.retry_longest_parked(now)
        self._watch.follows_pods = self._hooks.follows_pods
        if not self._hooks:
            self._looks.clear()
            self._pending.opened.clear()
            self._promised.end()
            self._taking.end()
            self._unlike.end()
            self._taking_groups.end()
            self._waking.forget_all()
            self._is_unfinished = False
            return
        self._begin_turn(now)
        self._outcome = outcome
        self._is_unfinished = True
        for chore in self._list_chores(now):
            for _ in chore:
                if not allowance.allows(Work.CHORE):
                    return
        self._is_unfinished = self._cluster.budgets.is_behind

    def work_on_budgets(self) -> None:
        """Make a step of finding which budgets cover which pods; the namespace of the budgets pays."""
        namespace, share = self._cluster.budgets.work()
        self._pending.charge_namespace(namespace, share * _UNITS_A_STEP)

    def _list_chores(self, now: float) -> tuple[Iterator[None], ...]:
        """List the work that there is to do, in this order."""
        if self._cluster.budgets.is_behind:
            # Pods that could preempt wait until it is known which pods the budgets cover. Pods that fit do not wait.
            return (take_turns(self._promised.go_on(self._seen, now), self._help_kinds(now)),)
        if self._is_postponed:
            self._is_postponed = False
            self._promised.note_rows(None)
        # Room that was made for a pod does not wait until all kinds were looked at.
        unlike = self._unlike.go_on(self._seen, now)
        first = take_turns(self._promised.go_on(self._seen, now), self._help_kinds(now), unlike)
        taking = self._taking, self._taking_groups
        last = (one.go_on(self._seen, now) for one in taking)
        return first, take_turns(*last, self._explaining)

    def _begin_turn(self, now: float) -> None:
        pace = self._pace
        if self._watch.has_news and self._find_next_help() <= now:
            self._helped_at = now
            self._take_news(now)
        position = self._cluster.moved.position
        rest = max(pace.explain, len(self._parked) / pace.explain_rate)
        is_due = now - self._explained_at >= rest and not self._is_unfinished
        if is_due and self._explained_position != position:
            self._explained_position, self._explained_at = position, now
            self._explaining = self._explain_again()

    def _take_news(self, now: float) -> None:
        """Note which kinds the news could help, for a look when there is time; ask the admissions again at once."""
        news = self._watch.find_news()
        self._seen = FreeRows(self._cluster)
        moved = None if news.is_unknown else news.moved
        self._promised.note_rows(moved)
        self._taking.note_rows(moved)
        self._unlike.note_rows(None if news.is_unknown else news.list_changed())
        freed = self._find_freed()
        self._taking_groups.note_rows(freed if news.is_unknown else freed | news.list_changed())
        held: list[str] = []
        for kind, rows in self._hooks.find_kinds(news):
            if isinstance(kind, Woken):
                held.append(kind.uid)
            else:
                self._note_kind(kind, rows)
        self._pending.judge_again(held, now)
        if news.added:
            changed = self._seen.find_changed(news.added)
            added = frozenset(news.added)
            for kind in self._parked.list_kinds_within(changed.find_most()):
                self._note_kind(kind, added)
        self._looks.keep_waiting(self._parked, self._parked.n_kinds)
        self._splitting.forget_gone()

    def _find_freed(self) -> set[int]:
        """Find where more is free beside pods that may go. That takes time with each look, and is of use to groups alone."""
        if next(self._pending.list_groups(), None) is None:
            self._freed.forget()
            return set()
        return self._freed.find_rows()

    def _note_kind(self, kind: Hashable, rows: frozenset[int] | None) -> None:
        if kind in self._parked:
            self._looks.note_kind(kind, rows)

    def _help_kinds(self, now: float) -> Iterator[None]:
        """Look at the noted kinds, and move the pods that the news help. Each kind not ruled out costs one question.

        The kinds come in the order of the queue: thousands may be noted, and one turn has time for a few.
        """
        passed = 0
        while self._looks:
            kind, rows = self._looks.take()
            changed = self._seen.find_changed(rows)
            if self._is_kept_off(kind, changed):
                passed += 1
                if passed % _STRIDE == 0:
                    yield
                continue
            if self._splitting.is_due(kind):
                for other in self._splitting.split(kind):
                    self._note_kind(other, rows)
                if self._splitting.is_running(kind):
                    self._note_kind(kind, rows)
                    yield
                    continue
            self._look_at(kind, changed, now)
            yield
        if not self._watch.has_news:
            self._pending.opened.clear()

    def _look_at(self, kind: Hashable, changed: Changed, now: float) -> None:
        """Find out whether a change helps one pod of a kind, and so all pods of the kind."""
        pod = self._find_freest(kind)
        if pod is None:
            return
        found = self._cycle.find_barriers(pod, changed.rows)
        if found is None:
            room = self._cluster.later.room
            first = "" if room is None else room.entity
            is_held = partial(self._waking.is_hopeless, changed=changed)
            opened = self._pending.opened
            at_once = bool(opened) and not opened.isdisjoint(
                () if changed.rows is None else changed.rows.tolist()
            )
            self._pending.help_kind(kind, now, is_held, first, at_once=at_once)
        else:
            self._barring.keep_off(kind, pod, found)

    def _find_freest(self, kind: Hashable) -> PodRecord | None:
        """Find a pod of a kind that need not leave the room free that is promised for later, if there is one.

        Pods of a kind that would have ended in time when they were parked may not do so any more.
        """
        first = self._parked.find_pod(kind)
        if first is None or not self._cluster.is_bound_later(first):
            return first
        some = islice(self._parked.list_pods(kind), _STRIDE)
        free = (pod for pod in some if not self._cluster.is_bound_later(pod))
        return next(free, first)

    def _help_nominated(self, changed: Changed, now: float) -> Iterator[None]:
        """Look at nominated pods one by one: room that is promised to a pod helps no other pod of its kind."""
        nominations, nodes = self._cluster.nominations, self._cluster.nodes
        # A node that is gone keeps no promise.
        rows = None if changed.rows is None else {-1, *changed.rows.tolist()}
        pods, place = self._cluster.pods, self._pending.order.find_place
        promised = [
            (uid, name)
            for name in nominations.list_nodes()
            for uid in nominations.list_on(name)
            if self._pending.is_parked(uid)
        ]
        for i, (uid, name) in enumerate(sorted(promised, key=lambda one: place(pods[one[0]]))):
            if i % _STRIDE == 0:
                yield
            if not self._pending.is_parked(uid):
                continue
            if not self._pending.is_alone(uid):
                self._help_nominated_group(uid, now)
                continue
            pod = pods[uid]
            if rows is None or nodes.find_row(name) in rows or self._cycle.is_wide(pod):
                if self._cycle.fits_nominated(pod):
                    self._pending.help_pod_at_once(uid, now)
                elif self._cluster.budgets.is_behind:
                    # Whether the pod could preempt is asked in another round, once the budgets are known.
                    self._is_postponed = True
                elif self._could_take(pod):
                    self._pending.help_pod_later(uid, now)
                yield

    def _help_nominated_group(self, uid: str, now: float) -> None:
        """Help a group once all its victims are gone: before, no part of it is to be tried."""
        entry = self._pending.find_entry(uid)
        entity = None if entry is None else entry.entity
        if isinstance(entity, Entity) and not group_promises.awaits_victims(self._cluster, entity):
            self._pending.help_pod_at_once(uid, now)

    def _could_take(self, pod: PodRecord) -> bool:
        """Whether a pod could preempt; its namespace pays for the nodes that are asked."""
        attempts = self._cycle.attempts
        before = attempts.spent
        could = self._cycle.could_take(pod)
        self._pending.charge_namespace(pod.namespace, (attempts.spent - before) / _NODES_A_UNIT)
        return could

    def _help_to_take(self, changed: Changed, now: float) -> Iterator[None]:
        """Help pods that could preempt now, as more is free beside possible victims; nominated pods are left out."""
        version = self._cycle.version
        # With another version a rule that kept pods off whole zones may have ended.
        is_all_else, self._taken_version = version != self._taken_version, version
        of_all = protectors.find_lowest_priority(self._cluster) if self._parked else 0
        kinds = self._parked.list_takers(partial(protectors.outranks, other=of_all))
        lowest = protectors.find_lowest_priority(self._cluster, changed.rows) if kinds else 0
        for i, kind in enumerate(kinds):
            if i % _STRIDE == 0:
                yield
            pod = self._parked.find_pod(kind, self._may_take)
            if pod is None:
                continue
            if is_all_else or protectors.outranks(pod.priority, lowest) or self._cycle.is_wide(pod):
                if self._could_take(pod):
                    for one in filter(self._may_take, self._parked.list_pods(kind)):
                        self._pending.help_pod_later(one.uid, now)
                yield

    def _may_take(self, pod: PodRecord) -> bool:
        """Whether a pod may preempt: it waits by itself, and is not nominated."""
        is_alone = self._pending.is_alone(pod.uid)
        return is_alone and not self._cluster.nominations.find_node(pod.uid)

    def _is_kept_off(self, kind: Hashable, changed: Changed) -> bool:
        """Whether the cheap bounds already show that no pod of a kind fits on the changed rows."""
        first = self._parked.find_pod(kind)
        if first is None:
            return True
        found = changed.find_barriers(first.template) if self._cycle.asks_all(first) else None
        if found is None:
            return False
        self._barring.keep_off(kind, first, found)
        return True

    def _explain_again(self) -> Iterator[None]:
        """Explain parked pods anew: a change that did not help a pod may have changed the reasons why it waits."""
        for kind in self._parked.list_kinds():
            holds: dict[Hashable, Hold | None] = {}
            for pod in self._parked.list_pods(kind):
                if not self._pending.is_alone(pod.uid):
                    continue
                tells_apart = self._cycle.meets_others or pod.volumes is not None
                now = self._cycle.find_kind(pod) if tells_apart else kind
                if now not in holds:
                    holds[now] = self._cycle.explain_hold(pod)
                    yield
                hold = holds[now]
                if hold is not None and self._pending.is_parked(pod.uid):
                    self._outcome.explained.append(hold.copy_for(pod.uid))
                yield
