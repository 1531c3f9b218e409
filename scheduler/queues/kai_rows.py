"""KAI's queues as rows of JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduler.api import names
from scheduler.api.queues.amounts import write_amount
from scheduler.api.queues.kai import CARD, CPU, MEMORY, NAMES, UNLIMITED
from scheduler.engine.questions.queues import KaiFigures, StatusesOfKaiQueues
from scheduler.queues.scene import Scene

Json = dict[str, Any]


def list_queues(scene: Scene) -> list[Json]:
    """List KAI's queues, each behind the one above it; the last are those that no queue without a parent leads to."""
    found = {one.defined.name: one for one in scene.engine.ask(StatusesOfKaiQueues())}
    rows = [_write_queue(found[name], depth) for name, depth in _walk(found)]
    walked = {row["name"] for row in rows}
    return rows + [_write_queue(one, 0) for name, one in found.items() if name not in walked]


def _walk(found: dict[str, KaiFigures]) -> Iterator[tuple[str, int]]:
    tops = [name for name, one in found.items() if not one.defined.parent]
    left = [(name, 0) for name in reversed(tops)]
    while left:
        name, depth = left.pop()
        yield name, depth
        left.extend((child, depth + 1) for child in reversed(found[name].children))


def _write_queue(one: KaiFigures, depth: int) -> Json:
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
                "quota": _write(i, defined.quota[i]),
                "limit": _write(i, defined.limit[i]),
                "weight": defined.weights[i],
                "fairShare": _write(i, round(one.fair[i])),
                "held": _write(i, one.allocated[i]),
                "nonPreemptible": _write(i, one.fixed[i]),
                "requested": _write(i, one.requested[i]),
            }
            for i, name in enumerate(NAMES)
        ],
    }


def _write(resource: int, amount: int) -> str:
    """Write an amount as a quantity; of memory the shorter of two ways, of cards also parts."""
    if amount == UNLIMITED:
        return "unlimited"
    if resource == CPU:
        return write_amount(names.CPU, amount)
    if resource == MEMORY:
        return min(write_amount(names.MEMORY, amount), write_amount("", amount), key=len)
    return f"{amount / CARD:.15g}"
