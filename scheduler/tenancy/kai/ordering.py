"""Which of two queues comes first.

Source: KAI-Scheduler (2026-03), ``plugins/proportion/queue_order``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from scheduler.api.queues.kai import GPU, NOTHING, UNITS, UNLIMITED, Vector, add
from scheduler.tenancy.kai.tree import Queue

T = TypeVar("T")
_RESOURCES = range(len(UNITS))
# What is held of a resource of which nothing belongs to a queue counts so many times, in KAI's units.
_NO_SHARE = 1000.0
# Cards are the one resource that KAI counts in a unit of its own here.
_HERE = tuple(UNITS[i] if i == GPU else 1 for i in _RESOURCES)


def comes_before(
    one: Queue,
    other: Queue,
    asked: tuple[Vector, Vector],
    total: Vector,
    victims: tuple[Vector, Vector] = (NOTHING, NOTHING),
) -> bool:
    """Whether a queue comes before another one with the same parent.

    Args:
        one: the queue.
        other: the other queue.
        asked: what the next pods of each want.
        total: all there is.
        victims: what pods of each hold that are to go.
    """
    ranks = [
        (_is_over_share(queue), *_rank(queue, wants, gone, total))
        for queue, wants, gone in zip((one, other), asked, victims, strict=True)
    ]
    if ranks[0] != ranks[1]:
        return ranks[0] < ranks[1]
    weaker = _is_weaker(one, other), _is_weaker(other, one)
    if weaker[0] != weaker[1]:
        return weaker[0]
    return (one.defined.created, one.name) < (other.defined.created, other.name)


def pick(
    queues: Mapping[str, Queue],
    heads: Mapping[str, T],
    wins: Callable[[tuple[Queue, T], tuple[Queue, T]], bool],
) -> str | None:
    """Pick one of some leaves, level by level: a queue competes with those beside it by what is picked within it.

    Args:
        queues: all queues by name.
        heads: by leaf: with what it competes. Leaves that are no queue are left out.
        wins: whether one wins against another one.

    Returns:
        The name of the leaf; None if there is none.
    """
    inner: dict[str, list[Queue]] = {}
    for name in heads:
        queue = queues.get(name)
        for one in queue.path if queue is not None else ():
            beside = inner.setdefault(one.defined.parent, [])
            if one in beside:
                break
            beside.append(one)

    def pick_of(name: str) -> str | None:
        best: tuple[Queue, str] | None = None
        for queue in inner.get(name, ()):
            leaf = queue.name if queue.name in heads else pick_of(queue.name)
            if leaf is None:
                continue
            if best is None or wins((queue, heads[leaf]), (best[0], heads[best[1]])):
                best = queue, leaf
        return None if best is None else best[1]

    return pick_of("")


def _rank(
    queue: Queue, wants: Vector, gone: Vector, total: Vector
) -> tuple[bool, int, bool, float, float]:
    """Rank a queue, the lowest first, after whether it is over its fair share."""
    held = queue.figures.allocated
    then = add(held, wants)
    return (
        not is_within(then, queue.defined.quota),
        -queue.defined.priority,
        any(then[i] > 0 and not queue.find_allocatable(i) for i in _RESOURCES),
        find_dominant(queue, add(then, gone, -1), total),
        find_dominant(queue, held, total),
    )


def is_within(amounts: Vector, most: tuple[float, ...]) -> bool:
    """Whether no amount is more than there may be of its resource."""
    return all(
        limit == UNLIMITED or amount <= limit for amount, limit in zip(amounts, most, strict=True)
    )


def _is_over_share(queue: Queue) -> bool:
    """Whether it holds more than its fair share of every resource."""
    held = queue.figures.allocated
    return all(fair < amount for fair, amount in zip(queue.fair, held, strict=True))


def find_dominant(queue: Queue, held: Vector, total: Vector) -> float:
    """Find the largest part, over the resources, that amounts are of what a queue may hold."""
    found = 0.0
    for i in _RESOURCES:
        most = queue.find_allocatable(i)
        if most == UNLIMITED:
            most = total[i]
        part = held[i] / most if most else held[i] / _HERE[i] * _NO_SHARE
        found = max(found, part)
    return found


def _is_weaker(one: Queue, other: Queue) -> bool:
    """Whether a queue may hold less of a resource than another one, and more of none."""
    pairs = [(one.find_allocatable(i), other.find_allocatable(i)) for i in _RESOURCES]
    return any(map(_is_less, pairs)) and not any(_is_less((b, a)) for a, b in pairs)


def _is_less(pair: tuple[float, float]) -> bool:
    left, right = pair
    return left != UNLIMITED and (right == UNLIMITED or left < right)
