"""``evenkeel plan`` without its flags: reads the objects, makes the plan, and returns the exit code."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from scheduler.api.door import events
from scheduler.api.groups.readers.reading import parse_seconds
from scheduler.config import Config
from scheduler.defrag.contract import Plan, Terms
from scheduler.engine.allowance import Unlimited
from scheduler.engine.engine import Engine
from scheduler.engine.questions.defrag import PlanOfMoves
from scheduler.engine.questions.pods import KnownPods
from scheduler.engine.questions.waiting import WaitOf
from scheduler.errors import BadInput, make_visible
from scheduler.plan import rows
from scheduler.plan.owners import Owners, read_owners
from scheduler.progress import Tell
from scheduler.simulate import gaps, queues, stalling
from scheduler.simulate.changes.what_if import Changes
from scheduler.simulate.reading.gathering import CLUSTER, Live, gather_objects
from scheduler.simulate.situation import Situation, find_time, make_engine, prepare
from scheduler.state.pods import PodRecord

Json = dict[str, Any]
OK, MISTAKES = 0, 3
_TOLD_MAX = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The arguments of ``evenkeel plan`` as they were typed, except for the cluster's.

    Attributes:
        only_for: the waiting pod that the plan is for, as ``NAMESPACE/NAME``; None for a plan for all.
        most: the most moves.
        min_run: for how long a pod must have run, as ``30m``.
        now: the time, in seconds since 1970; of files their own time counts.
        applies: carry the plan out.
        wait: how long each move may take.
    """

    config: Config
    files: Sequence[str] = ()
    only_for: str | None = None
    most: int = 10
    min_run: str = "10m"
    now: int = 0
    applies: bool = False
    wait: str = "5m"


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


def check_request(request: Request) -> None:
    """Refuse arguments that are known to be wrong before anything is read.

    Raises:
        BadInput: an argument is wrong; names it and says what is allowed.
    """
    if request.most < 1:
        raise BadInput("--moves", "must be at least 1")
    parse_seconds(request.min_run, "--min-run")
    parse_seconds(request.wait, "--wait")
    if request.applies and request.files:
        raise BadInput("--apply", "needs a cluster: pods of files cannot be moved")
    wanted = request.only_for
    if wanted is not None and (wanted.count("/") != 1 or not all(wanted.split("/"))):
        raise BadInput("--for", f'"{wanted}" is not a pod: write NAMESPACE/POD')


def plan_defrag(request: Request, live: Live | None, stdin: TextIO, tell: Tell) -> PlanAnswer:
    """Read the objects, and plan which running pods to move.

    Raises:
        BadInput: an argument or a file is wrong, or the pod that the plan is for does not wait for room.
    """
    gathered = gather_objects(request.files, live or Live(), stdin, tell, command="plan defrag")
    tell("filling the engine")
    situation = prepare(
        gathered.objects,
        Changes(),
        strict=False,
        unlisted=live.unlisted if live else None,
        remarks=gathered.remarks,
    )
    inventory = situation.inventory
    read = find_time(inventory)
    now = max(read, float(request.now)) if live is not None else read
    # The state of a cluster says who makes its pods again; pods that only workloads would make are none of it.
    engine = make_engine(inventory, request.config, only_ours=True)
    tell("placing pods that fit now")
    _decide(engine, situation, request.config, now)
    owners = read_owners(inventory.pods)
    uid = "" if request.only_for is None else _find_waiting(engine, request.only_for)
    tell("trying moves")
    terms = Terms(
        kept=owners.kept,
        own=owners.own,
        now=now,
        run_seconds=parse_seconds(request.min_run, "--min-run"),
        most=request.most,
        ends_first=owners.ends_first,
        only_for=uid,
    )
    plan = engine.ask(PlanOfMoves(terms))
    pods = engine.ask(KnownPods())
    printed = rows.write_plan(plan, pods, owners, request.only_for)
    problems = list(inventory.mistakes.values())
    said = [make_visible(gathered.origins[one.position].prefix(str(one))) for one in problems]
    more = len(said) - _TOLD_MAX
    complaints = [*said[:_TOLD_MAX], *([f"and {more} more"] if more > 0 else [])]
    complaints += [
        f"warning: {text}" for text in gaps.report_unlisted_kinds(situation.unlisted or {})
    ]
    mine = any(gathered.origins[one.position].file != CLUSTER for one in problems)
    return PlanAnswer(printed, complaints, MISTAKES if mine else OK, plan, pods, owners)


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
