"""Counts for the metrics about pods: decisions, bind times, and the rules that keep pods waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from scheduler.api.door.decisions import Bind, GroupResult, Hold, Outcome, Plan
from scheduler.api.door.events import BindDone, BindFailed, PluginSilent
from scheduler.api.door.notes import Backfilled, Note, PromiseEnded
from scheduler.engine.engine import Engine
from scheduler.engine.questions.pods import Governing, NamedPod, WhoGoverns
from scheduler.engine.questions.waiting import TriedInVain, WaitOf
from scheduler.kube.report.metrics.counting import KEPT, MISSED, PLACED, SIZES, UNPLACED, Metrics

_MOST_ATTEMPTS = 15
_MISTAKE, _NO_NODES = "PodWellFormed", "NoNodes"
BinderReport = BindDone | BindFailed | PluginSilent


class _Journey(NamedTuple):
    """A pod whose bind is under way.

    Attributes:
        decided_at: the loop time of the decision.
        since: the loop time from which the pod could be tried.
        attempts: how often the pod was tried, this time included.
        governing: the mode or node policy, and the BalancePolicy, that chose its place.
    """

    decided_at: float
    since: float
    attempts: int
    profile: str
    governing: Governing


class Tally:
    """Keeps what the metrics need to know about pods that wait or are being bound.

    Args:
        metrics: counters and histograms.
        engine: knows the pods.
        report: takes the binder's reports after this class.
        clock: the engine's clock.
    """

    def __init__(
        self,
        metrics: Metrics,
        engine: Engine,
        report: Callable[[BinderReport], None],
        clock: Callable[[], float],
    ) -> None:
        self._metrics, self._engine = metrics, engine
        self._report, self.clock = report, clock
        self._journeys: dict[str, _Journey] = {}
        # By uid, the rules that kept a pod from every node at its last report.
        self._causes: dict[str, tuple[str, ...]] = {}

    def note_outcome(self, outcome: Outcome, seconds: float) -> None:
        """Count all that one call of the engine has decided, in so many seconds; before it is carried out."""
        binds, holds = outcome.binds, outcome.holds
        if not (binds or holds or outcome.explained):
            return
        now, results = self.clock(), Counter[tuple[str, str]]()
        for bind in binds:
            results["scheduled", self._begin_journey(bind, now)] += 1
        for hold in outcome.holds:
            results["unschedulable", self._get_profile(hold.uid)] += 1
            self._note_wait(hold.uid)
        for hold in (*outcome.explained, *holds):
            self._causes[hold.uid] = _list_causes(hold)
        self._metrics.preemption_attempts.add(n=sum(one.attempt is not None for one in holds))
        for evict in outcome.evicts:
            self._metrics.preemption_victims.add(len(evict.victims))
            self._metrics.group_evictions.add(n=sum(len(unit) > 1 for unit in evict.units))
        self._count_promises(outcome.notes)
        for plan in outcome.plans:
            if plan.group is not None:
                self._note_group(plan, plan.group, now)
        n = results.total()
        for (result, profile), times in results.items():
            self._metrics.attempts.add(result, profile, n=times)
            self._metrics.attempt_seconds.add(seconds / n, result, profile, n=times)

    def _count_promises(self, found: Sequence[Note]) -> None:
        """Count promises for a later time that have ended, and pods that used the promised nodes meanwhile."""
        for note in found:
            if isinstance(note, PromiseEnded):
                self._metrics.promises.add(KEPT if note.is_kept else MISSED)
            elif isinstance(note, Backfilled):
                self._metrics.backfilled_pods.add()

    def _note_group(self, plan: Plan, result: GroupResult, now: float) -> None:
        """Count an attempt to place a group. Pods that join a group that has its minimum are no start."""
        self._metrics.group_attempts.add(PLACED if plan.binds else UNPLACED)
        if plan.binds and result.least:
            journey = self._journeys[plan.binds[0].uid]
            n = len(plan.binds)
            size = next(name for name, most in SIZES.items() if n <= most)
            self._metrics.group_start.add(now - journey.since, size)

    def _begin_journey(self, bind: Bind, now: float) -> str:
        """Note that a bind is under way; return the profile of its pod."""
        uid, profile = bind.uid, self._get_profile(bind.uid)
        wait, governing = self._engine.ask(WaitOf(uid)), self._engine.ask(WhoGoverns(uid))
        since = now if wait is None or wait.since is None else wait.since
        attempts = 1 if wait is None else wait.attempts
        self._journeys[uid] = _Journey(now, since, attempts, profile, governing)
        self._causes.pop(uid, None)
        self._note_wait(uid)
        return profile

    def _get_profile(self, uid: str) -> str:
        return self._engine.ask(NamedPod(uid)).profile

    def _note_wait(self, uid: str) -> None:
        wait = self._engine.ask(WaitOf(uid))
        if wait is not None:
            self._metrics.queue_wait.add(wait.waited)

    def note_report(self, report: BinderReport) -> None:
        """Count a report of the binder, and pass it on."""
        if isinstance(report, PluginSilent):
            self._metrics.plugin_silences.add(n=int(report.silent))
        else:
            self._end_journey(report)
        self._report(report)

    def note_foreign(self, kind: str) -> None:
        """Count what another scheduler did on a node of ours."""
        self._metrics.foreign_writes.add(kind)

    def _end_journey(self, report: BindDone | BindFailed) -> None:
        journey = self._journeys.pop(report.uid, None)
        if journey is None:
            return
        metrics, now = self._metrics, self.clock()
        if isinstance(report, BindFailed):
            # A pod that was deleted meanwhile raises no alert: its owner may delete pods at any time.
            if not report.gone:
                metrics.attempts.add("error", journey.profile)
            return
        is_many = journey.attempts >= _MOST_ATTEMPTS
        attempts = f"{_MOST_ATTEMPTS}+" if is_many else str(journey.attempts)
        metrics.bind_seconds.add(now - journey.decided_at)
        metrics.sli_seconds.add(now - journey.since, attempts)
        metrics.pod_attempts.add(journey.attempts)
        metrics.placements.add(*journey.governing)

    def note_left(self, uid: str) -> None:
        """Forget a pod that is gone, or has a node."""
        self._causes.pop(uid, None)

    def count_unschedulable(self) -> dict[tuple[str, str], float]:
        """Count the pods that wait, by each rule that keeps them from a node, and by profile."""
        tried = self._engine.ask(TriedInVain(self._causes))
        # Many pods wait for the same causes.
        alike = Counter((self._causes[uid], profile) for uid, profile in tried.items())
        found: Counter[tuple[str, str]] = Counter()
        for (causes, profile), n in alike.items():
            for cause in causes:
                found[cause, profile] += n
        return dict(found)


def _list_causes(hold: Hold) -> tuple[str, ...]:
    if hold.problem:
        return (_MISTAKE,)
    if hold.diagnosis is None or not hold.diagnosis.n_nodes:
        return (_NO_NODES,)
    return hold.diagnosis.rules
