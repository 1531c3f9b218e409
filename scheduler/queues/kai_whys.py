"""Why a pod or group of KAI's queues waits, as JSON: what it wants, what its queues have, who is before it, who may go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from scheduler.api.queues.kai import NAMES
from scheduler.api.times import write_time
from scheduler.engine.questions.kai_queues import InKaiQueue, KaiGiver, KaiOutlook
from scheduler.engine.questions.queues import KaiFigures
from scheduler.queues import kai_rows
from scheduler.queues.scene import Scene
from scheduler.simulate.kai_rows import write, write_amounts, write_queue

Json = dict[str, Any]
_AHEAD_MAX = 5
_GIVERS_MAX = 20


def explain(scene: Scene, one: InKaiQueue) -> Json:
    """Explain why a pod or group waits, or say what it holds."""
    queue = scene.kai.queues.get(one.queue)
    above = [] if queue is None else kai_rows.list_path(scene, queue)
    line = [other for other in scene.kai.entities if other.is_waiting and other.queue == one.queue]
    ahead = [other.key for other in line if other.position < one.position]
    outlook = scene.kai.find_outlook(one.key, _GIVERS_MAX) if one.is_waiting else None
    queues = [scene.kai.queues[name] for name in (one.queue, *above) if name in scene.kai.queues]
    until = None if outlook is None else outlook.protected_until
    return {
        "namespace": one.namespace,
        "name": one.name,
        "kind": one.kind,
        "queue": one.queue,
        "priority": one.priority,
        "preemptible": one.is_preemptible,
        "state": _find_state(one),
        "pods": one.n_pods,
        "amounts": write_amounts(one.amounts),
        "position": one.position if one.is_waiting else None,
        "ofWaiting": len(line),
        "ahead": ahead[-_AHEAD_MAX:],
        "reason": one.reason,
        "message": one.message,
        "queues": [write_queue(each, len(queues) - 1 - i) for i, each in enumerate(queues)],
        "givers": [_write_giver(giver) for giver in (outlook.givers if outlook else ())],
        "protectedUntil": None if until is None else write_time(until),
        "limits": []
        if outlook is None or queue is None
        else list(_list_limits(one, queue, outlook)),
    }


def _find_state(one: InKaiQueue) -> str:
    if not one.is_waiting:
        return "holds"
    return "held" if one.reason else "waits"


def _write_giver(giver: KaiGiver) -> Json:
    return {
        "pods": list(giver.pods),
        "queue": giver.queue,
        "priority": giver.priority,
        "by": "reclaim" if giver.is_reclaimed else "preempt",
    }


def _list_limits(one: InKaiQueue, queue: KaiFigures, outlook: KaiOutlook) -> Iterator[str]:
    """Say by which rules nobody goes."""
    givers: Sequence[KaiGiver] = outlook.givers
    if not outlook.may_reclaim:
        yield f"no other queue loses pods to it: {_say_share(one, queue)}"
    elif not any(giver.is_reclaimed for giver in givers):
        yield "no other queue holds more than its fair share, or has preemptible pods that may go"
    if not any(not giver.is_reclaimed for giver in givers):
        yield f"queue {one.queue} has no preemptible pods of lower priority that may go"


def _say_share(one: InKaiQueue, queue: KaiFigures) -> str:
    """Say of what a queue would have more than its fair share, or of fixed pods more than its quota."""
    for i, name in enumerate(NAMES):
        fair = round(queue.fair[i])
        if one.amounts[i] and queue.allocated[i] + one.amounts[i] > fair:
            then = write(i, queue.allocated[i] + one.amounts[i])
            return f"queue {one.queue} would hold {then} of {name}, and its fair share is {write(i, fair)}"
    return f"queue {one.queue} would hold more that cannot be preempted than its quota"
