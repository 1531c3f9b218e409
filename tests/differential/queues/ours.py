"""The answer of Evenkeel's queues to a world, in the rounds in which Kueue is asked."""

from __future__ import annotations

from dataclasses import replace

from scheduler.api.door.workload_decisions import EvictWorkload, ReplaceSlice
from scheduler.api.queues.workloads import PodSet as WorkloadPodSet
from scheduler.api.queues.workloads import Shapes
from scheduler.kube.queues.conditions import describe_replacement
from scheduler.tenancy import rounds
from scheduler.tenancy.tenants import Tenants
from scheduler.tenancy.works import Where, Work
from tests.differential.queues import outcomes
from tests.differential.queues.jobs import REQUEUED
from tests.differential.queues.oracle import MOST_ROUNDS
from tests.differential.queues.outcomes import Eviction, Fate, Outcome, PodSet, StepOutcome
from tests.differential.queues.slices import REPLACED
from tests.differential.queues.worlds import (
    NAMESPACE,
    ROUNDS_AFTER,
    Step,
    World,
    time_of,
    write_time,
)
from tests.model.tenants import make_tenants, put_object, write_admission


def run(world: World) -> Outcome:
    """Return what becomes of a world."""
    return Play(world).answer()


def run_without_sparing(world: World) -> Outcome:
    """Return what becomes of a world if workloads may take quota back from those to whom they have given way."""
    return Play(world, spares=False).answer()


class Play:
    """Our queues, and what happens in a world.

    Attributes:
        tenants: the queues, and who waits in them.
    """

    def __init__(
        self, world: World, most_rounds: int = MOST_ROUNDS, *, spares: bool = True
    ) -> None:
        """Take a world over.

        Args:
            world: what happens.
            most_rounds: of evictions in a step, before it is given up.
            spares: whether workloads spare those to whom they have given way, as Kueue's do not.
        """
        self._most_rounds, self._spares = most_rounds, spares
        self._world, self._shapes = world, Shapes()
        namespace = {"kind": "Namespace", "metadata": {"name": NAMESPACE}}
        began = write_time(time_of(0, 0))
        self.tenants: Tenants = make_tenants([namespace, *world.objects], world.settings, began)
        self._given: dict[str, list[PodSet]] = {}
        # By whom those were replaced that are finished for it.
        self._replaced: dict[str, Work] = {}
        self._now = 0.0

    def answer(self) -> Outcome:
        """Go through all steps, until one does not end."""
        found: list[StepOutcome] = []
        for number, step in enumerate(self._world.steps):
            found.append(self.take(number, step))
            if found[-1].is_endless:
                break
        return Outcome(found)

    def take(self, number: int, step: Step) -> StepOutcome:
        """Go through a step."""
        self._now = float(time_of(number, ROUNDS_AFTER))
        self._apply(step)
        evictions, evicted = self._stop(0), list[Eviction]()
        for round_ in range(1, self._most_rounds + 1):
            self._now = float(time_of(number, ROUNDS_AFTER + round_))
            evicted = self._run_round(round_) + self._stop(round_)
            evictions += sorted(evicted)
            if not evicted:
                break
        works = sorted(self.tenants.works.values(), key=lambda one: _name(one.key))
        fates = {_name(work.key): self._find_fate(work) for work in works}
        return StepOutcome(fates, evictions, is_endless=bool(evicted))

    def _apply(self, step: Step) -> None:
        tenants = self.tenants
        for name in step.finished:
            work = tenants.works[f"{NAMESPACE}/{name}"]
            if work.defined.admission is not None and not work.defined.is_finished:
                tenants.put_workload(replace(work.defined, is_finished=True), self._now)
        for name in step.stopped:
            work = tenants.works[f"{NAMESPACE}/{name}"]
            if not work.defined.is_finished:
                tenants.put_workload(replace(work.defined, is_active=False), self._now)
        for name, counts in step.scaled:
            work = tenants.works[f"{NAMESPACE}/{name}"]
            sets = tuple(_scale(one, counts.get(one.name, one.n_pods)) for one in work.defined.sets)
            tenants.put_workload(replace(work.defined, sets=sets), self._now)
        for body in (*step.changed, *step.created):
            put_object(tenants, self._shapes, body, self._now)

    def _stop(self, round_: int) -> list[Eviction]:
        """Let those go whose queue, or who themselves, were stopped, and finish those whose place others have taken."""
        found = []
        for one in list(self.tenants.stops.take(self._now)):
            work = self.tenants.works[one.key]
            if isinstance(one, ReplaceSlice):
                self._replaced[one.key] = self.tenants.works[one.by]
                self.tenants.put_workload(replace(work.defined, is_finished=True), self._now)
            if isinstance(one, EvictWorkload) and work.where == Where.HOLDS:
                found.append(Eviction(round_, _name(work.key), one.reason))
                self._let_go(work, one.reason)
        return sorted(found)

    def _run_round(self, round_: int) -> list[Eviction]:
        found, gone = [], []
        # All that wait are in their queues again.
        for line in self.tenants.lines.values():
            line.retry_all()
        for work in () if self._spares else self.tenants.works.values():
            work.is_owed = False
        for one in rounds.run_rounds(self.tenants, self._now):
            for work, assignment in one.admitted:
                self._given[work.key] = [
                    PodSet(
                        given.name,
                        given.n_pods,
                        {name: chosen.flavor for name, chosen in given.flavors.items()},
                    )
                    for given in assignment.sets
                ]
                write_admission(self.tenants, work, assignment, self._now)
            for victim, by in one.preempted:
                name = _name(victim.key)
                why = str(victim.why)
                found.append(Eviction(round_, name, "Preempted", why, _name(by.key)))
                gone.append(self.tenants.works[victim.key])
        for work in gone:
            self._let_go(work, "Preempted")
        return found

    def _let_go(self, work: Work, reason: str) -> None:
        if not self._spares:
            work.given = frozenset()
        not_before = 0.0 if reason in REQUEUED else None
        gone = replace(work.defined, evicted=reason, admission=None, not_before=not_before)
        self.tenants.put_workload(replace(gone, is_admitted=False), self._now)

    def _find_fate(self, work: Work) -> Fate:
        if (new := self._replaced.get(work.key)) is not None:
            message = describe_replacement(new.uid, "")
            return Fate(outcomes.FINISHED, reason=REPLACED, message=message)
        if work.defined.is_finished:
            return Fate(outcomes.FINISHED)
        if work.where != Where.HOLDS:
            reason, message = self.tenants.find_reason(work)
            return Fate(outcomes.PENDING, reason=reason, message=message)
        return Fate(outcomes.ADMITTED, work.queue, self._given[work.key])


def _scale(one: WorkloadPodSet, count: int) -> WorkloadPodSet:
    return one._replace(n_pods=count, least=min(one.least, count))


def _name(key: str) -> str:
    return key.partition("/")[2]
