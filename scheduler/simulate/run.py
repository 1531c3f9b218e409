"""Runs the simulation: bound pods are charged, pending pods are scheduled in queue order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from scheduler.api.door import events
from scheduler.api.placement import Mode, Placement
from scheduler.config import Config
from scheduler.engine.allowance import Unlimited
from scheduler.engine.questions.nodes import NodeCounts
from scheduler.engine.questions.pods import NamedPod
from scheduler.engine.questions.queues import StatusesOfKaiQueues
from scheduler.engine.questions.simulating import MistakesOfGroups, MistakesOfWaiting, NextDecision
from scheduler.engine.questions.waiting import Queue
from scheduler.simulate import gaps, groups, kai_rows, queues, rows, stalling
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.claims import WrittenClaims
from scheduler.simulate.reading.inventory import Inventory
from scheduler.simulate.situation import Situation, find_time, make_engine, prepare

Json = dict[str, Any]
# Takes the progress: for how many pods there is a decision, and how many pods there are.
Tell = Callable[[int, int], None]
_NOTHING = Changes()


def _tell_nobody(_done: int, _total: int) -> None:
    return


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """How pods are placed, and what is reported.

    Attributes:
        config: settings.
        only_ours: schedule only pods that name our scheduler; else every pending pod.
        own: the uids of pods that are scheduled anyway, whichever scheduler they name.
        with_nodes: report every node's feasibility, reasons and scores for every pod, and why it has its cards.
        now: unix time written into the annotations of pods with cards.
        mode: replaces the mode of the configuration; None leaves it.
    """

    config: Config
    only_ours: bool = False
    own: AbstractSet[str] = frozenset()
    with_nodes: bool = False
    now: int = 0
    mode: Mode | None = None


def schedule(
    objects: Sequence[Mapping[str, Any]],
    *,
    config: Config | None = None,
    only_ours: bool = False,
    with_nodes: bool = False,
    now: int = 0,
    strict: bool = False,
    changes: Changes = _NOTHING,
) -> Json:
    """Schedule the pending pods among ``objects``, and those that workloads would make, on the nodes among them.

    Args:
        objects: Kubernetes objects; kinds that do not matter are ignored.
        config: settings, the defaults when None.
        only_ours: schedule only pods that name our scheduler; else every pending pod.
        with_nodes: report every node's feasibility, reasons and scores for every pod.
        now: unix time written into the annotations of pods with cards.
        strict: a malformed object is an error; else it is named in the result, and left out.
        changes: the changes to simulate on top of the objects.

    Returns:
        ``{"pods": [...], "summary": {...}, ...}`` as documented for ``evenkeel simulate -o json``.

    Raises:
        InputProblem: strict, and an object is malformed; the error names the object, the field and what is allowed,
            and has the errors of all other malformed objects.
        BadInput: a change names an object that does not exist.
    """
    situation = prepare(objects, changes, strict=strict)
    question = Question(
        config=config or Config(), only_ours=only_ours, with_nodes=with_nodes, now=now
    )
    return place_pods(situation, question)


def place_pods(situation: Situation, question: Question, tell: Tell = _tell_nobody) -> Json:
    """Place the waiting pods; the situation stays as it is, and can be used again.

    Raises:
        InputProblem: the inventory is strict, and an object has a mistake.
    """
    return _Simulation(situation, question).run(tell)


def _set_mode(config: Config, mode: Mode | None) -> Config:
    """Set a mode, and remove node policies, which would replace the mode."""
    if mode is None:
        return config

    def set_mode(placement: Placement) -> Placement:
        return replace(placement, mode=mode, objective="", node_policy="")

    profiles = tuple(replace(one, placement=set_mode(one.placement)) for one in config.profiles)
    return replace(config, placement=set_mode(config.placement), profiles=profiles)


class _Simulation:
    def __init__(self, situation: Situation, question: Question) -> None:
        self._situation, self._question = situation, question
        config = _set_mode(question.config, question.mode)
        self._engine = make_engine(
            situation.inventory, config, only_ours=question.only_ours, own=question.own
        )
        self._now = find_time(situation.inventory)
        self._batch = 1 if question.with_nodes else config.slice_pods
        self._groups = groups.Groups(self._engine)
        self._stalling = stalling.Stalling()
        self._queues = queues.Queues(
            self._engine, situation.inventory.queueing, situation.inventory.pods
        )
        self._rows = rows.Rows(situation, self._engine, self._groups, question.now)
        self._claims = WrittenClaims(situation.inventory.claiming)

    def run(self, tell: Tell) -> Json:
        inventory = self._situation.inventory
        self._keep_mistakes(inventory)
        total = self._engine.ask(Queue()).n_pods
        at = self._now
        while at < math.inf and not self._stalling.is_endless:
            tell(min(len(self._rows), total), total)
            self._decide(at)
            at = max(at, self._engine.find_due(at))
        held = inventory.without_workload | self._queues.explain_held()
        found = self._rows.list_all(held)
        placed = sum(row["node"] is not None for row in found)
        return {
            "pods": found,
            "groups": self._groups.list_all(),
            "queues": self._queues.list_queues(),
            "workloads": self._queues.list_workloads(),
            "kaiQueues": self._list_kai_queues(),
            "summary": {
                "nodes": self._engine.ask(NodeCounts()).n_nodes,
                "pods": len(found),
                "scheduled": placed,
                "pending": len(found) - placed,
            },
            "warnings": [
                *self._situation.remarks,
                *([stalling.WARNING] if self._stalling.is_endless else ()),
                *gaps.report_gaps(
                    inventory,
                    self._situation.unlisted or {},
                    self._situation.own,
                    is_mode_given=self._question.mode is not None,
                ),
                *(
                    gaps.report_budgets(inventory, found)
                    if self._situation.unlisted is None
                    else ()
                ),
            ],
            "mistakes": [
                {"object": one.name, "field": one.field, "problem": one.problem}
                for one in inventory.mistakes.values()
            ],
            "passedOver": dict(sorted(inventory.passed_over.items())),
            "unknownWorkloads": [
                {"apiVersion": version, "kind": kind, "count": count}
                for (version, kind), count in sorted(inventory.unknown.items())
            ],
            **{
                str(why): rows.group_by_kind(workloads)
                for why, workloads in self._situation.making.idle.items()
            },
            "removed": rows.list_removed(self._situation.making.removed),
        }

    def _list_kai_queues(self) -> list[Json]:
        return kai_rows.list_queues(
            {one.defined.name: one for one in self._engine.ask(StatusesOfKaiQueues())}
        )

    def _handle(self, event: events.Event) -> None:
        self._engine.handle(event, self._now)

    def _keep_mistakes(self, inventory: Inventory) -> None:
        """Keep the mistakes of pending pods as mistakes of the objects; a field that is not supported is no mistake."""
        for uid, mistake in self._engine.ask(MistakesOfWaiting()):
            inventory.keep_problem(inventory.make_problem(uid, mistake))
        if found := self._engine.ask(MistakesOfGroups()):
            inventory.keep_group_problems(found)
        inventory.refuse_mistakes()

    def _decide(self, at: float) -> None:
        """Decide for the next pods, if any are due at this time."""
        engine = self._engine
        before = engine.ask(NextDecision(at)) if self._question.with_nodes else None
        outcome = engine.decide(at, Unlimited(pods=self._batch))
        self._stalling.note(outcome)
        for bind in outcome.binds:
            self._rows.add_bind(bind)
            pod = self._engine.ask(NamedPod(bind.uid))
            for claim in self._claims.bind_pod(bind, pod):
                self._handle(events.Seen(claim))
            self._handle(events.BindDone(bind.uid))
        for hold in outcome.holds:
            self._rows.add_hold(hold)
        for evict in outcome.evicts:
            self._rows.add_evict(evict)
        for free in outcome.frees:
            self._handle(self._claims.free(free))
        for plan in outcome.plans:
            self._groups.add_plan(plan)
        for decision in outcome.quotas:
            self._rows.forget(self._queues.carry_out(decision, at))
        if before is not None:
            self._rows.explain(before)
