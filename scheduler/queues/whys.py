"""Why a workload waits, as JSON: what is missing in each flavor, who has it, who could give it back, and who not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from scheduler.api.queues.amounts import write_amount, write_quota
from scheduler.api.queues.definitions import Policy, QueueDefinition
from scheduler.engine.questions.queues import (
    FlavorOutlook,
    QuotaGiver,
    QuotaLack,
    QuotaWait,
    WhyNoQuota,
    WorkloadStanding,
)
from scheduler.printing import count_nouns
from scheduler.queues.rows import write_since, write_uses
from scheduler.queues.scene import Scene
from scheduler.queues.starts import NO_PLACE, write_start

Json = dict[str, Any]
_AHEAD_MAX = 5
_PRIORITIES = {
    Policy.LOWER: "a lower priority",
    Policy.LOWER_OR_NEWER: "a lower priority, or the same one and a later time",
}


def explain(scene: Scene, one: WorkloadStanding) -> Json:
    """Explain why a workload waits, or say what it has."""
    found = scene.engine.ask(WhyNoQuota(one.key))
    queue = scene.define(one.queue)
    line = [other for other in scene.workloads.values() if other.queue == one.queue and other.position >= 0]  # fmt: skip
    flavors = [] if found is None or queue is None else [
        _write_flavor(flavor, queue, scene, found.verdict) for flavor in found.flavors
    ]  # fmt: skip
    namespace, _, name = one.key.partition("/")
    state, reason, message = _find_state(one, found)
    ahead = [
        other.key
        for other in islice(sorted(line, key=lambda other: other.position), max(0, one.position))
    ]
    if state != "goes" and ahead and queue is not None and queue.is_strict:
        state = "behind"
    return {
        "namespace": namespace,
        "name": name,
        "localQueue": one.local.partition("/")[2],
        "queue": one.queue or None,
        "cohort": (queue.cohort if queue is not None else "") or None,
        "priority": one.priority,
        "since": write_since(one.since),
        "state": state,
        "position": one.position if one.position >= 0 else None,
        "ofWaiting": len(line),
        "ahead": ahead[:_AHEAD_MAX],
        "reason": reason,
        "message": message,
        "victims": [_write_giver(giver) for giver in (found.victims if found else ())],
        "flavors": flavors,
        "needs": [] if found is None else list(_list_needs(state, found, ahead)),
        "uses": write_uses(one),
        **write_start(scene.foresee([one.key]).get(one.key) if found is not None else None),
    }


def _find_state(one: WorkloadStanding, found: QuotaWait | None) -> tuple[str, str, str]:
    if found is not None:
        return found.verdict, found.reason, found.message
    return ("holds" if one.where == "holds" else "finished"), one.reason, one.message


def _write_giver(giver: QuotaGiver) -> Json:
    namespace, _, name = giver.key.partition("/")
    return {
        "namespace": namespace,
        "name": name,
        "queue": giver.queue,
        "priority": giver.priority,
        "reason": giver.why,
    }


def _write_flavor(one: FlavorOutlook, queue: QueueDefinition, scene: Scene, verdict: str) -> Json:
    return {
        "flavor": one.flavor,
        "refusals": list(one.refusals),
        "resources": [_write_lack(lack) for lack in one.lacks],
        "givers": [_write_giver(giver) for giver in one.givers],
        "limits": list(_list_limits(one, queue, scene)) if verdict == "waits" else [],
    }


def _find_missing(lack: QuotaLack) -> int:
    return max(0, lack.requested - max(0, lack.available))


def _write_lack(lack: QuotaLack) -> Json:
    name = lack.resource
    return {
        "resource": name,
        "requested": write_amount(name, lack.requested),
        "available": write_quota(name, max(0, lack.available)),
        "missing": write_amount(name, _find_missing(lack)),
        "nominal": write_quota(name, lack.nominal),
        "most": write_quota(name, lack.most),
        "used": write_amount(name, lack.used),
        "holding": lack.n_workloads,
        "borrowers": [
            {
                "queue": other.queue,
                "borrowed": write_amount(name, other.borrowed),
                "holding": other.n_workloads,
            }
            for other in sorted(lack.others, key=lambda other: -other.borrowed)
        ],
    }


def _list_limits(one: FlavorOutlook, queue: QueueDefinition, scene: Scene) -> Iterator[str]:
    """Say by which policies nobody, or not enough, can be asked to give quota of a flavor back."""
    short = [lack for lack in one.lacks if _find_missing(lack)]
    if not short or one.refusals or any(lack.requested > lack.most for lack in short):
        return
    own = any(giver.queue == queue.name for giver in one.givers)
    if not own:
        yield _say_own(queue, max(lack.n_workloads for lack in short))
    if len({giver.queue for giver in one.givers} - {queue.name}) == 0:
        yield _say_others(queue, short)
    is_beyond = any(lack.used + lack.requested > lack.nominal for lack in short)
    if is_beyond and queue.cohort and not queue.preemption.borrows and not scene.is_fair:
        yield (
            f"borrowWithinCohort: Never: {queue.name} would use more than its nominal quota, and for that no "
            "other queue gives quota back"
        )


def _say_own(queue: QueueDefinition, n_holders: int) -> str:
    """Say why no workload of the same queue has to go."""
    policy = queue.preemption.within
    if policy == Policy.NEVER:
        return f"withinClusterQueue: Never: no workload of {queue.name} gives quota back for another one"
    if not n_holders:
        return f"no workload of {queue.name} has any of it"
    n = count_nouns(n_holders, "workload")
    return f"withinClusterQueue: {policy}: of {n} of {queue.name} that have some, none has {_PRIORITIES.get(policy, '')}"


def _say_others(queue: QueueDefinition, short: Sequence[QuotaLack]) -> str:
    """Say why no workload of another queue has to go."""
    policy = queue.preemption.reclaim
    if not queue.cohort:
        return f"{queue.name} is in no cohort, so no other queue has any of its quota"
    if policy == Policy.NEVER:
        return (
            f"reclaimWithinCohort: Never: {queue.name} does not take back what others have borrowed"
        )
    names = dict.fromkeys(other.queue for lack in short for other in lack.others)
    if not names:
        return "no other queue of the cohort uses more than its nominal quota"
    return (
        f"reclaimWithinCohort: {policy}: no workload of {', '.join(names)} has "
        f"{_PRIORITIES.get(policy, 'to go for this one')}"
    )


def _list_needs(state: str, found: QuotaWait, ahead: Sequence[str]) -> Iterator[str]:
    """Say what a workload needs to start."""
    match state:
        case "fits":
            yield (
                "that those before it leave enough quota: it is given at its turn"
                if ahead
                else "nothing: there is quota, and it is given at its turn"
            )
            yield from _list_fewer(found)
        case "behind":
            yield f"that those before it start: its queue is StrictFIFO, and {ahead[0]} is first"
            yield from _list_missing(found)
        case "preempts":
            n = count_nouns(len(found.victims), "workload")
            gives = "gives" if len(found.victims) == 1 else "give"
            yield f"that {n} {gives} quota back; the policies of the queues allow that"
            yield from _list_fewer(found)
        case "goes":
            n = count_nouns(len(found.victims), "workload")
            yield f"that {n}, which must give quota back, {'has' if len(found.victims) == 1 else 'have'} stopped"
        case "waits":
            yield from _list_missing(found)


def _list_fewer(found: QuotaWait) -> Iterator[str]:
    """Say of which pod sets a part starts."""
    for name, n_pods, n_all in found.fewer:
        yield f"it starts with {n_pods} of the {n_all} pods of pod set {name}, as its minCount allows"


def _list_missing(found: QuotaWait) -> Iterator[str]:
    """Say what is missing in each flavor that suits a workload."""
    suited = [flavor for flavor in found.flavors if not flavor.refusals]
    if found.reason == NO_PLACE:
        # Where others could give quota back, quota is not what is missing.
        short = [flavor for flavor in suited if not flavor.givers]
        there = "there is quota" if suited == short else "others could give quota back"
        yield f"a place for all its pods at once: {there}, but not enough is free on nodes that suit them"
        suited = short
    for name in found.uncovered:
        yield f"quota of {name} in its queue, which has none, or no request of it"
    for flavor in suited:
        yield from _list_needs_of(flavor)
    if found.flavors and all(flavor.refusals for flavor in found.flavors):
        yield "pods that suit a flavor, or a flavor that suits them"


def _list_needs_of(flavor: FlavorOutlook) -> Iterator[str]:
    """Say what a workload needs to start in a flavor."""
    short = [lack for lack in flavor.lacks if _find_missing(lack)]
    never = [lack for lack in short if lack.requested > lack.most]
    if never:
        limits = ", ".join(
            f"{write_amount(one.resource, one.requested)} of {one.resource} requested, at most "
            f"{write_quota(one.resource, one.most)} possible"
            for one in never
        )
        yield f"in flavor {flavor.flavor}: more quota or a smaller request: {limits}"
    elif short:
        missing = ", ".join(
            f"{write_amount(one.resource, _find_missing(one))} more of {one.resource}"
            for one in short
        )
        yield f"in flavor {flavor.flavor}: {missing}"
