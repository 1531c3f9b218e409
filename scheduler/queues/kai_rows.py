"""KAI's queues, and what is in them, as rows of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduler.api import names
from scheduler.api.queues.amounts import write_amount
from scheduler.api.queues.kai import CPU, MEMORY, NAMES, UNLIMITED, Vector, write_in_units
from scheduler.engine.questions.kai_queues import InKaiQueue
from scheduler.engine.questions.queues import KaiFigures
from scheduler.queues.scene import Scene

Json = dict[str, Any]


def list_queues(scene: Scene) -> list[Json]:
    """List KAI's queues, each behind the one above it; the last are those that no queue without a parent leads to."""
    found = scene.kai.queues
    rows = [write_queue(found[name], depth) for name, depth in _walk(found)]
    walked = {row["name"] for row in rows}
    return rows + [write_queue(one, 0) for name, one in found.items() if name not in walked]


def show(scene: Scene, one: KaiFigures, most: int) -> Json:
    """Show one queue in full; of those who wait at most so many, 0 for all."""
    inside = [other for other in scene.kai.entities if other.queue == one.defined.name]
    waiters = [other for other in inside if other.is_waiting]
    shown = waiters[: most or None]
    path = list_path(scene, one)
    return {
        "kaiQueue": write_queue(one, len(path)),
        "path": path,
        "children": list(one.children),
        "holders": [_write_entity(other) for other in inside if not other.is_waiting],
        "waiters": [
            _write_entity(other)
            | {"position": other.position, "reason": other.reason, "message": other.message}
            for other in shown
        ],
        "notShown": len(waiters) - len(shown),
    }


def list_path(scene: Scene, one: KaiFigures) -> list[str]:
    """List the queues above a queue, the nearest first."""
    path: list[str] = []
    above = scene.kai.queues.get(one.defined.parent)
    while above is not None and above.defined.name not in path:
        path.append(above.defined.name)
        above = scene.kai.queues.get(above.defined.parent)
    return path


def _write_entity(one: InKaiQueue) -> Json:
    return {
        "namespace": one.namespace,
        "name": one.name,
        "kind": one.kind,
        "priority": one.priority,
        "preemptible": one.is_preemptible,
        "pods": one.n_pods,
        "amounts": write_amounts(one.amounts),
    }


def write_amounts(amounts: Vector) -> list[Json]:
    """Write what there is of each resource, of none nothing."""
    return [
        {"resource": name, "amount": write(i, amounts[i])}
        for i, name in enumerate(NAMES)
        if amounts[i]
    ]


def _walk(found: dict[str, KaiFigures]) -> Iterator[tuple[str, int]]:
    tops = [name for name, one in found.items() if not one.defined.parent]
    left = [(name, 0) for name in reversed(tops)]
    while left:
        name, depth = left.pop()
        yield name, depth
        left.extend((child, depth + 1) for child in reversed(found[name].children))


def write_queue(one: KaiFigures, depth: int) -> Json:
    """Write a queue, so many queues below the top."""
    defined = one.defined
    return {
        "name": defined.name,
        "parent": defined.parent or None,
        "depth": depth,
        "priority": defined.priority,
        "problem": one.problem or None,
        "overQuota": one.is_over_quota,
        "uses": [
            {
                "resource": name,
                "quota": write(i, defined.quota[i]),
                "limit": write(i, defined.limit[i]),
                "weight": defined.weights[i],
                "fairShare": write(i, round(one.fair[i])),
                "held": write(i, one.allocated[i]),
                "nonPreemptible": write(i, one.fixed[i]),
                "requested": write(i, one.requested[i]),
            }
            for i, name in enumerate(NAMES)
        ],
    }


def write(resource: int, amount: int) -> str:
    """Write an amount as a quantity; of memory the shorter of two ways, of cards also parts."""
    if amount == UNLIMITED:
        return "unlimited"
    if resource == CPU:
        return write_amount(names.CPU, amount)
    if resource == MEMORY:
        return min(write_amount(names.MEMORY, amount), write_amount("", amount), key=len)
    return write_in_units(resource, amount)
