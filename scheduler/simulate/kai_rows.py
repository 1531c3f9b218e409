"""KAI's queues as rows of JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from scheduler.api import names
from scheduler.api.queues.amounts import write_amount
from scheduler.api.queues.kai import CPU, MEMORY, NAMES, UNLIMITED, Vector, write_in_units
from scheduler.engine.questions.queues import KaiFigures

Json = dict[str, Any]


def list_queues(found: Mapping[str, KaiFigures]) -> list[Json]:
    """List queues by name, each behind the one above it; the last are those that no queue without a parent leads to."""
    rows = [write_queue(found[name], depth) for name, depth in _walk(found)]
    walked = {row["name"] for row in rows}
    return rows + [write_queue(one, 0) for name, one in found.items() if name not in walked]


def write_amounts(amounts: Vector) -> list[Json]:
    """Write what there is of each resource, of none nothing."""
    return [
        {"resource": name, "amount": write(i, amounts[i])}
        for i, name in enumerate(NAMES)
        if amounts[i]
    ]


def _walk(found: Mapping[str, KaiFigures]) -> Iterator[tuple[str, int]]:
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
