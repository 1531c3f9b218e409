"""Feeds the metrics about pods: decisions, bind times, and the rules that keep pods waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from scheduler.api.door.decisions import Bind, Hold, Outcome
from scheduler.api.door.events import BindDone, BindFailed, PluginSilent
from scheduler.engine.engine import Engine
from scheduler.kube.report.metrics.counting import Metrics
from scheduler.waiting.entries import Where

_MOST_ATTEMPTS = 15
_HELD = frozenset({Where.UNSCHEDULABLE, Where.BACKOFF})
_MISTAKE, _NO_NODES = "PodWellFormed", "NoNodes"
Told = BindDone | BindFailed | PluginSilent


class _Journey(NamedTuple):
    """A pod whose bind is under way.

    Attributes:
        decided_at: loop time of the decision.
        since: loop time at which the pod could be tried first.
        attempts: how often it was tried, this time included.
        placed_by: mode or node policy, and the policy that governs the pod, empty for none.
    """

    decided_at: float
    since: float
    attempts: int
    profile: str
    placed_by: tuple[str, str]


class Tally:
    """Keeps, of pods that wait or are on their way, what the metrics will say of them.

    Args:
        metrics: they are told.
        engine: knows the pods.
        report: takes what the binder reports, after it was looked at.
        clock: the loop's.
    """

    def __init__(
        self,
        metrics: Metrics,
        engine: Engine,
        report: Callable[[Told], None],
        clock: Callable[[], float],
    ) -> None:
        self._metrics, self._engine = metrics, engine
        self._report, self._clock = report, clock
        self._journeys: dict[str, _Journey] = {}
        # By uid, the rules that kept a pod from every node when it was told last.
        self._causes: dict[str, tuple[str, ...]] = {}

    def decided(self, outcome: Outcome, seconds: float) -> None:
        """All that one call of the engine has decided, in so many seconds; before it is carried out."""
        binds, holds = outcome.binds, outcome.holds
        if not (binds or holds or outcome.explained):
            return
        now, results = self._clock(), Counter[tuple[str, str]]()
        for bind in binds:
            results["scheduled", self._begun(bind, now)] += 1
        for hold in holds:
            pod = self._engine.cluster.pods[hold.uid]
            results["unschedulable", pod.profile] += 1
            self._waited(hold.uid)
        for hold in (*outcome.explained, *holds):
            self._causes[hold.uid] = _causes(hold)
        self._metrics.preemption_attempts.add(n=sum(one.attempt is not None for one in holds))
        for evict in outcome.evicts:
            self._metrics.preemption_victims.add(len(evict.victims))
        n = results.total()
        for (result, profile), times in results.items():
            self._metrics.attempts.add(result, profile, n=times)
            self._metrics.attempt_seconds.add(seconds / n, result, profile, n=times)

    def _begun(self, bind: Bind, now: float) -> str:
        """A bind is under way; the profile of its pod."""
        engine, uid = self._engine, bind.uid
        pod, entry = engine.cluster.pods[uid], engine.pending.entry(uid)
        resolved = engine.policies.resolve(pod)
        by = resolved.placement.node_policy or resolved.placement.mode
        since = now if entry is None or entry.since is None else entry.since
        attempts = 1 if entry is None else entry.attempts
        self._journeys[uid] = _Journey(now, since, attempts, pod.profile, (by, resolved.policy))
        self._causes.pop(uid, None)
        self._waited(uid)
        return pod.profile

    def _waited(self, uid: str) -> None:
        entry = self._engine.pending.entry(uid)
        if entry is not None:
            self._metrics.queue_wait.add(entry.waited)

    def report(self, told: Told) -> None:
        """What the binder reports, passed on."""
        if isinstance(told, PluginSilent):
            self._metrics.plugin_silences.add(n=int(told.silent))
        else:
            self._ended(told)
        self._report(told)

    def _ended(self, told: BindDone | BindFailed) -> None:
        journey = self._journeys.pop(told.uid, None)
        if journey is None:
            return
        metrics, now = self._metrics, self._clock()
        if isinstance(told, BindFailed):
            # Who deletes a pod meanwhile raises no alert: anybody may, as often as they like.
            if not told.gone:
                metrics.attempts.add("error", journey.profile)
            return
        many = journey.attempts >= _MOST_ATTEMPTS
        attempts = f"{_MOST_ATTEMPTS}+" if many else str(journey.attempts)
        metrics.bind_seconds.add(now - journey.decided_at)
        metrics.sli_seconds.add(now - journey.since, attempts)
        metrics.pod_attempts.add(journey.attempts)
        metrics.placements.add(*journey.placed_by)

    def left(self, uid: str) -> None:
        """A pod is gone, or has a node."""
        self._causes.pop(uid, None)

    def unschedulable(self) -> dict[tuple[str, str], float]:
        """How many pods wait, by each rule that keeps them from a node, and by profile."""
        entry_of = self._engine.pending.entry
        # Pods that wait are many, and what keeps them is alike.
        alike = Counter(
            (causes, entry.pod.profile)
            for uid, causes in self._causes.items()
            if (entry := entry_of(uid)) is not None and entry.where in _HELD
        )
        found: Counter[tuple[str, str]] = Counter()
        for (causes, profile), n in alike.items():
            for cause in causes:
                found[cause, profile] += n
        return dict(found)


def _causes(hold: Hold) -> tuple[str, ...]:
    if hold.problem:
        return (_MISTAKE,)
    if hold.diagnosis is None or not hold.diagnosis.n_nodes:
        return (_NO_NODES,)
    return hold.diagnosis.rules
