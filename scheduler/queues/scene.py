"""The queues that are shown, and an engine that has seen them; nothing is decided unless that is wanted."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property

from scheduler import printing
from scheduler.api import kueue
from scheduler.api.door import events
from scheduler.api.queues import reading
from scheduler.api.queues.definitions import LocalQueueDefinition, QueueDefinition
from scheduler.api.queues.settings import KaiSettings
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.questions.queues import (
    KnownQueue,
    KnownQueues,
    KnownWorkloads,
    QueueStanding,
    WorkloadStanding,
)
from scheduler.errors import BadInput
from scheduler.queues.forecast import Start, foresee
from scheduler.queues.kai_scene import KaiScene
from scheduler.simulate import queues, stalling
from scheduler.simulate.situation import Situation, find_time, make_engine

_COHORT = "cohort/"


class Scene:
    """Queues and workloads by name.

    Attributes:
        engine: an engine that answers questions.
        is_fair: whether shares decide who gives quota back.
        kai: KAI's queues, and what is in them.
    """

    def __init__(self, situation: Situation, config: Config, *, is_live: bool) -> None:
        self._situation, self._config, self._is_live = situation, config, is_live
        self._inventory = situation.inventory
        self._slice = config.slice_pods
        self.is_fair = config.queues.strategies is not None
        self.engine = make_engine(self._inventory, config, only_ours=is_live)
        self.kai = KaiScene(self.engine, config.queues.kai or KaiSettings())

    def decide(self) -> None:
        """Give quota to all who can have it, as ``evenkeel simulate`` does."""
        inventory = self._inventory
        carried = queues.Queues(self.engine, inventory.queueing, inventory.pods)
        stalled, at = stalling.Stalling(), find_time(inventory)
        while at < math.inf and not stalled.is_endless:
            outcome = self.engine.decide(at, Unlimited(pods=self._slice))
            stalled.note(outcome)
            for bind in outcome.binds:
                self.engine.handle(events.BindDone(bind.uid), at)
            for decision in outcome.quotas:
                carried.carry_out(decision, at)
            at = max(at, self.engine.find_due(at))

    def foresee(self, keys: Iterable[str]) -> dict[str, Start]:
        """Foresee when workloads start that wait, by namespace and name."""
        wanted = list(keys)
        if not wanted:
            return {}
        return foresee(self._situation, self._config, wanted, is_live=self._is_live)

    @cached_property
    def queues(self) -> list[QueueStanding]:
        """All queues and cohorts, each tree from its root down."""
        return list(self.engine.ask(KnownQueues()))

    @cached_property
    def workloads(self) -> dict[str, WorkloadStanding]:
        """All workloads by namespace and name, by queue and position."""
        return {one.key: one for one in self.engine.ask(KnownWorkloads())}

    def list_astray(self) -> list[LocalQueueDefinition]:
        """List the local queues that lead to no queue of the cluster, by namespace and name."""
        known = {one.name for one in self.queues if not one.is_cohort}
        found: list[LocalQueueDefinition] = []
        for one in self._inventory.queueing:
            if isinstance(one, kueue.LocalQueue):
                with suppress(BadInput):
                    found.append(reading.read_local_queue(one))
        astray = (one for one in found if one.queue not in known)
        return sorted(astray, key=lambda one: (one.namespace, one.name))

    @cached_property
    def _jobs(self) -> dict[str, str]:
        """The namespace and name of the job of each workload that has one, by the workload's."""
        return {
            queues.read_key(one): f"{one.metadata.namespace}/{owner.name}"
            for one in self._inventory.queueing
            if isinstance(one, kueue.Workload)
            for owner in one.metadata.owner_references or ()
            if owner.controller
        }

    @cached_property
    def n_aside(self) -> Counter[str]:
        """How many workloads of each queue may not be tried."""
        return Counter(one.queue for one in self.workloads.values() if is_aside(one))

    def define(self, name: str) -> QueueDefinition | None:
        """Return how a queue of the cluster is defined."""
        return self.engine.ask(KnownQueue(name)).queue

    def find_queue(self, name: str) -> QueueStanding:
        """Find a queue, or a cohort if there is no queue of this name; ``cohort/NAME`` is always a cohort.

        Raises:
            BadInput: there is none; the error names what there is.
        """
        wanted = name.removeprefix(_COHORT)
        named = [one for one in self.queues if one.name == wanted]
        if name != wanted:
            named = [one for one in named if one.is_cohort]
        if named:
            return min(named, key=lambda one: one.is_cohort)
        known = [*(one.name for one in self.queues), *self.kai.queues]
        raise BadInput(f"queue {name}", _say_unknown("queue", wanted, known))

    def find_workload(self, name: str) -> WorkloadStanding:
        """Find a workload by namespace and name, or by a name that no other has; also by the name of its job.

        Raises:
            BadInput: there is none, or there are several; the error names some that there are.
        """
        found = self.workloads.get(name)
        if found is not None:
            return found
        alike = [one for key, one in self.workloads.items() if _has_name(key, name)]
        if not alike:
            keys = [key for key, job in self._jobs.items() if _has_name(job, name)]
            alike = [self.workloads[key] for key in keys if key in self.workloads]
            if len({self._jobs[one.key] for one in alike}) == 1:
                # Of the slices of a job that grows and shrinks, the one that waits, else the one with quota.
                alike = [min(alike, key=_rank_slice)]
        if len(alike) == 1:
            return alike[0]
        if alike:
            shown = printing.list_some([one.key for one in alike])
            raise BadInput(f"workload {name}", f"there are several of this name: {shown}")
        known = [*self.workloads, *(one.key for one in self.kai.entities)]
        raise BadInput(f"workload {name}", _say_unknown("workload", name, known))


def _has_name(key: str, name: str) -> bool:
    """Whether a namespace and a name are those given, or only the name is."""
    return key == name or key.endswith(f"/{name}")


def _rank_slice(one: WorkloadStanding) -> tuple[int, float]:
    """Return by what the slice of a job is chosen about which a person wants to know: the least one."""
    order = (one.where == "waits", is_aside(one), one.where == "holds", True)
    return order.index(True), -one.since


def is_aside(one: WorkloadStanding) -> bool:
    """Whether a workload may not be tried; one that is finished has no reason."""
    return one.where == "aside" and bool(one.reason)


def _say_unknown(noun: str, name: str, known: Iterable[str]) -> str:
    """Say that there is nothing of a name, and what there is: what is spelt alike, or the first few."""
    there = list(dict.fromkeys(known))
    if not there:
        return f"there is none, as there are no {noun}s at all"
    # A workload is often named without its namespace.
    ends = {one.rpartition("/")[2]: one for one in there} if "/" not in name else {}
    near = [ends.get(one, one) for one in difflib.get_close_matches(name, [*there, *ends], n=5)]
    if near:
        return f"there is none; similar: {', '.join(dict.fromkeys(near))}"
    return f"there is none; there are {printing.list_some(there)}"
