"""Makes a plan of the objects of a cluster: fills an engine, places what fits now, and puts the question to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from scheduler.api.door import events
from scheduler.config import Config
from scheduler.defrag.contract import Plan, Terms
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.questions.defrag import PlanOfMoves
from scheduler.engine.questions.pods import KnownPods
from scheduler.engine.questions.waiting import WaitOf
from scheduler.errors import BadInput
from scheduler.plan import rows
from scheduler.plan.owners import Owners, read_owners
from scheduler.plan.quotas import EXCEEDED, find_exceeded
from scheduler.progress import Tell
from scheduler.simulate import queues, stalling
from scheduler.simulate.gathered import list_complaints, prepare_gathered
from scheduler.simulate.reading.gathering import Gathered
from scheduler.simulate.reading.inventory import Inventory
from scheduler.simulate.situation import Situation, find_time, make_engine
from scheduler.state.pods import PodRecord

Json = dict[str, Any]


class Limits(NamedTuple):
    """What keeps pods where they are beside what is known of them.

    Attributes:
        kept: by uid of a pod that may not be moved: why, as a text that follows "pods".
        most_in: the most moves of pods of each namespace; a namespace that is not in it has no bound of its own.
        only_waiting: plan only moves that let waiting pods in.
    """

    kept: Mapping[str, str] = {}
    most_in: Mapping[str, int] = {}
    only_waiting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What plan is wanted.

    Attributes:
        only_for: the waiting pod that the plan is for, as ``NAMESPACE/NAME``; None for a plan for all.
        most: the most moves.
        run_seconds: for how long a pod must have run.
        now: the time, in seconds since 1970; None: the last time in the objects.
        find_limits: finds what else keeps the pods of a cluster where they are.
    """

    only_for: str | None
    most: int
    run_seconds: float
    now: float | None
    find_limits: Callable[[Inventory], Limits] = lambda _: Limits()


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """What is printed, mistakes in objects for standard error, and the exit code.

    Attributes:
        plan: the plan itself.
        pods: the pods that it names, by uid.
        owners: who makes them again.
    """

    printed: Json
    complaints: list[str]
    code: int
    plan: Plan
    pods: Mapping[str, PodRecord]
    owners: Owners


def make_plan(
    gathered: Gathered,
    config: Config,
    wish: Wish,
    unlisted: Mapping[str, str] | None,
    tell: Tell,
) -> PlanAnswer:
    """Plan which running pods to move.

    Args:
        gathered: the objects, and where they are from.
        config: the settings of the scheduler.
        wish: what plan is wanted.
        unlisted: the kinds that the cluster did not list; None for objects of files alone.
        tell: says what is being done.

    Raises:
        BadInput: the pod that the plan is for does not wait for room.
    """
    tell("filling the engine")
    situation = prepare_gathered(gathered, unlisted)
    inventory = situation.inventory
    # Times in the objects may be ahead: a kubelet writes by the clock of its node when a pod has started.
    now = find_time(inventory) if wish.now is None else wish.now
    # The state of a cluster says who makes its pods again; pods that only workloads would make are none of it.
    engine = make_engine(inventory, config, only_ours=True)
    tell("placing pods that fit now")
    _decide(engine, situation, config, now)
    owners, limits = read_owners(inventory.pods), wish.find_limits(inventory)
    uid = "" if wish.only_for is None else _find_waiting(engine, wish.only_for)
    tell("trying moves")
    exceeded = find_exceeded(inventory.space_quotas, engine)
    refused = {
        pod.metadata.uid: EXCEEDED for pod in inventory.pods if pod.metadata.namespace in exceeded
    }
    terms = Terms(
        kept={**limits.kept, **refused, **owners.kept},
        own=owners.own,
        now=now,
        run_seconds=wish.run_seconds,
        most=wish.most,
        ends_first=owners.ends_first,
        only_for=uid,
        only_waiting=limits.only_waiting,
        most_in=limits.most_in,
    )
    plan = engine.ask(PlanOfMoves(terms))
    pods = engine.ask(KnownPods())
    printed = rows.write_plan(plan, pods, owners, wish.only_for)
    complaints = list_complaints(gathered, situation)
    return PlanAnswer(printed, complaints.texts, complaints.code, plan, pods, owners)


def _decide(engine: Engine, situation: Situation, config: Config, at: float) -> None:
    """Place the pods that fit now, so that only those wait that no node takes."""
    inventory = situation.inventory
    carried = queues.Queues(engine, inventory.queueing, inventory.pods)
    stalled = stalling.Stalling()
    while at < math.inf and not stalled.is_endless:
        outcome = engine.decide(at, Unlimited(pods=config.slice_pods))
        stalled.note(outcome)
        for bind in outcome.binds:
            engine.handle(events.BindDone(bind.uid), at)
        for decision in outcome.quotas:
            carried.carry_out(decision, at)
        at = max(at, engine.find_due(at))


def _find_waiting(engine: Engine, wanted: str) -> str:
    """Find the uid of a pod that waits for room.

    Raises:
        BadInput: there is no such pod, or it waits for something else.
    """
    pod = next((one for one in engine.ask(KnownPods()).values() if one.key == wanted), None)
    if pod is None:
        raise BadInput("--for", f"there is no pod {wanted} that is not finished")
    if pod.node:
        raise BadInput("--for", f"pod {wanted} has room without a move, on {pod.node}")
    if not pod.ours:
        raise BadInput("--for", f"pod {wanted} names another scheduler, which places it")
    wait = engine.ask(WaitOf(pod.uid))
    if pod.gated or wait is None:
        raise BadInput(
            "--for", f"pod {wanted} is in no queue; `evenkeel explain pod {wanted}` says why"
        )
    return pod.uid
