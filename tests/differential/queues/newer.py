"""The answer of Kueue's newer rules to a world: those of the twin, which is younger than the version that can be asked.

What is newer: who comes too late is judged again as if the victims of others had gone (and may be deferred); whoever
comes too late keeps how far its search for a flavor came; what does not fit parks all that are like it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from tests.differential.queues.jobs import (
    is_running,
    is_true,
    read_eviction,
    read_fate,
)
from tests.differential.queues.oracle import MOST_ROUNDS
from tests.differential.queues.outcomes import Eviction, Outcome, StepOutcome
from tests.differential.queues.slices import scale
from tests.differential.queues.worlds import (
    NAMESPACE,
    ROUNDS_AFTER,
    Step,
    World,
    time_of,
    write_time,
)
from tests.oracles.kueue import cycle as twin
from tests.oracles.kueue import queues
from tests.oracles.kueue.course import Course, list_state, start_course
from tests.oracles.kueue.statuses import set_condition, take_quota
from tests.oracles.kueue.workloads import read_time
from tests.oracles.kueue.world import build_world

Json = dict[str, Any]


class Answer(NamedTuple):
    """What becomes of a world by the newer rules.

    Attributes:
        outcome: step by step.
        goes_in_circles: heads were tried in a circle, so what comes next depends on how often that was.
    """

    outcome: Outcome
    goes_in_circles: bool


def run(world: World, **slices: bool) -> Answer:
    """Return what becomes of a world by the newer rules; ``slices``: what else holds of slices, as ``Settings`` tell it."""
    asked = _Run(world, slices)
    return Answer(asked.answer(), asked.goes_in_circles)


class _Run:
    def __init__(self, world: World, slices: Mapping[str, Any]) -> None:
        self._world, self._slices = world, slices
        self._others = {(one["kind"], one["metadata"]["name"]): one for one in world.objects}
        self._others["Namespace", NAMESPACE] = {
            "kind": "Namespace",
            "metadata": {"name": NAMESPACE},
        }
        self._workloads: dict[str, Json] = {}
        self._now = ""
        self.goes_in_circles = False

    def answer(self) -> Outcome:
        """Go through all steps, until one does not end."""
        found: list[StepOutcome] = []
        for number, step in enumerate(self._world.steps):
            found.append(self._take(number, step))
            if found[-1].is_endless:
                break
        return Outcome(found)

    def _take(self, number: int, step: Step) -> StepOutcome:
        self._now = write_time(time_of(number, ROUNDS_AFTER))
        self._apply(step)
        evictions, evicted = self._let_go(0), list[Eviction]()
        objects = copy.deepcopy([*self._others.values(), *self._workloads.values()])
        # How far the searches for flavors came is forgotten: so much has happened that they begin anew.
        course = start_course(objects, self._world.settings, self._now)
        course.settings = replace(course.settings, **self._slices)
        for round_ in range(1, MOST_ROUNDS + 1):
            course.now = self._now = write_time(time_of(number, ROUNDS_AFTER + round_))
            self._hold_cycles(course)
            self._workloads = {key: dict(one) for key, one in course.workloads.items()}
            evicted = self._let_go(round_)
            course.workloads = dict(self._workloads)
            evictions += evicted
            if not evicted:
                break
            # All that wait are in their queues again.
            world = build_world([*course.objects, *course.workloads.values()])
            now = read_time(course.now)
            for one in evicted:
                key = f"{NAMESPACE}/{one.workload}"
                queues.push_workload(world, course.waiting, course.workloads[key], now)
            queues.free_parked(world, course.waiting, course.waiting, now)
        fates = {
            one["metadata"]["name"]: read_fate(one) for _, one in sorted(self._workloads.items())
        }
        return StepOutcome(fates, evictions, is_endless=bool(evicted))

    def _hold_cycles(self, course: Course) -> None:
        """Hold cycles until nothing new comes of any: heads that are tried again and again go in a circle."""
        known: list[str] = []
        while (state := repr(list_state(course))) not in known:
            known.append(state)
            outcome = twin.hold_cycle(course)
            if outcome.admitted or outcome.preempted:
                known.clear()
        self.goes_in_circles |= known[-1] != state

    def _apply(self, step: Step) -> None:
        for name in step.finished:
            one = self._workloads[f"{NAMESPACE}/{name}"]
            if is_running(one):
                self._set(one, "Finished", "Succeeded")
        for name in step.stopped:
            one = self._workloads[f"{NAMESPACE}/{name}"]
            if not is_true(one, "Finished"):
                one["spec"]["active"] = False
        for name, counts in step.scaled:
            one = self._workloads[f"{NAMESPACE}/{name}"]
            if not is_true(one, "Finished"):
                one["spec"]["podSets"] = scale(one["spec"]["podSets"], counts)
        for one in step.changed:
            self._others[one["kind"], one["metadata"]["name"]] = one
        for one in step.created:
            body = copy.deepcopy(one)
            body["metadata"].setdefault("namespace", NAMESPACE)
            self._workloads[f"{NAMESPACE}/{one['metadata']['name']}"] = body
        self._stop()

    def _stop(self) -> None:
        """Evict those who have quota and may not go on."""
        for one in list(self._workloads.values()):
            if not is_true(one, "QuotaReserved") or is_true(one, "Finished"):
                continue
            if not one["spec"].get("active", True):
                self._set(one, "Evicted", "Deactivated")
            elif self._is_drained(one):
                self._set(one, "Evicted", "ClusterQueueStopped")

    def _is_drained(self, workload: Json) -> bool:
        queue = self._others["ClusterQueue", workload["status"]["admission"]["clusterQueue"]]
        return bool(queue["spec"].get("stopPolicy") == "HoldAndDrain")

    def _set(self, workload: Json, kind: str, reason: str) -> None:
        changed = set_condition(workload, kind, "True", (reason, ""), self._now)
        self._workloads[f"{NAMESPACE}/{workload['metadata']['name']}"] = dict(changed)

    def _let_go(self, round_: int) -> list[Eviction]:
        """Take the quota of who is evicted."""
        names = {
            one["metadata"]["uid"]: one["metadata"]["name"] for one in self._workloads.values()
        }
        found = []
        for key, one in self._workloads.items():
            if is_true(one, "Evicted") and is_true(one, "QuotaReserved"):
                found.append(read_eviction(one, round_, names))
                self._workloads[key] = dict(take_quota(one, self._now))
        return sorted(found)
