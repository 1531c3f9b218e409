"""What pods of a queue may have, and what they may take from the pods of other queues.

Source: KAI-Scheduler (2026-03), ``plugins/proportion/capacity_policy`` and ``reclaimable``, ``plugins/minruntime``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from scheduler.api.queues.kai import NAMES, UNITS, UNLIMITED, Vector, add, write_in_units
from scheduler.state.entities import AnyEntity
from scheduler.tenancy.kai.accounts import Accounts
from scheduler.tenancy.kai.ordering import is_within
from scheduler.tenancy.kai.tree import Queue, Tree
from scheduler.tenancy.kai.turns import list_next

_RESOURCES = range(len(UNITS))


class Reason(StrEnum):
    """Why queues keep pods waiting: the first three in KAI's words."""

    OVER_LIMIT = "OverLimit"
    OVER_QUOTA = "NonPreemptibleOverQuota"
    NO_QUEUE = "QueueDoesNotExist"
    RIVAL = "OtherSchedulerDecides"


class Over(NamedTuple):
    """A queue has no room for pods.

    Attributes:
        reason: what it has too little of.
        queue: its name.
        resource: the resource.
        most: its limit, or its quota.
        held: what is held of it.
        wanted: what the pods want.
    """

    reason: Reason
    queue: str
    resource: int
    most: int
    held: int
    wanted: int

    def describe(self) -> str:
        """Say it to people."""
        most, held, wanted = (
            f"{write_in_units(self.resource, one)}{_WORDS[self.resource]}"
            for one in (self.most, self.held, self.wanted)
        )
        name = NAMES[self.resource]
        if self.reason == Reason.OVER_LIMIT:
            return (
                f"{self.reason}: queue {self.queue} is limited to {most} of {name}: "
                f"{held} are held, and {wanted} more are wanted"
            )
        return (
            f"{self.reason}: pods that cannot be preempted stay within the quota of queue {self.queue}, {most} of {name}: "
            f"{held} are held by such pods, and {wanted} more are wanted"
        )


_WORDS = "m", " MB", ""


class Taker(NamedTuple):
    """Who wants to take something from other queues.

    Attributes:
        queue: its queue.
        wants: what it wants.
        is_preemptible: whether it may lose it again.
    """

    queue: Queue
    wants: Vector
    is_preemptible: bool


def make_taker(accounts: Accounts, entity: AnyEntity) -> Taker | None:
    """Say what the next turn of an entity wants; None if its queue starts no pod."""
    tree = accounts.tree
    tree.settle()
    terms = accounts.find_terms_of(entity)
    queue = tree.queues.get(terms.queue)
    if queue is None or tree.find_problem(terms.queue):
        return None
    wants = accounts.sum_wants(list_next(accounts.cluster, entity))
    return Taker(queue, wants, terms.is_preemptible)


def find_over(taker: Taker) -> Over | None:
    """Find the queue that has no room for pods: their own or one above it; None if all have."""
    path = taker.queue.path
    for one in path:
        found = _find_excess(Reason.OVER_LIMIT, one, one.defined.limit, one.figures.allocated, taker.wants)  # fmt: skip
        if found is not None:
            return found
    for one in path if not taker.is_preemptible else ():
        found = _find_excess(Reason.OVER_QUOTA, one, one.defined.quota, one.figures.fixed, taker.wants)  # fmt: skip
        if found is not None:
            return found
    return None


def _find_excess(
    reason: Reason, queue: Queue, most: Vector, held: Vector, wants: Vector
) -> Over | None:
    for i in _RESOURCES:
        if most[i] != UNLIMITED and wants[i] and most[i] < held[i] + wants[i]:
            return Over(reason, queue.name, i, most[i], held[i], wants[i])
    return None


def may_reclaim(taker: Taker) -> bool:
    """Whether pods may take the place of pods of other queues: with them their queue is within its fair share."""
    figures, defined = taker.queue.figures, taker.queue.defined
    if not is_within(add(figures.allocated, taker.wants), taker.queue.fair):
        return False
    return taker.is_preemptible or is_within(add(figures.fixed, taker.wants), defined.quota)


def is_fair(
    tree: Tree, taker: Taker, victims: Mapping[str, Sequence[Vector]], multiplier: float
) -> bool:
    """Whether pods may take what victims hold.

    Args:
        tree: the queues, as if nothing had gone yet.
        taker: who takes.
        victims: by queue what goes, in order; what goes together is one amount.
        multiplier: as in ``KaiSettings``.
    """
    left: dict[str, Vector] = {}
    involved: dict[str, set[int]] = {}
    for name, parts in victims.items():
        queue = tree.queues[name]
        mine, theirs = find_branches(taker.queue, queue)
        kinds = {i for part in parts for i in _RESOURCES if part[i] > 0}
        for part in parts:
            holds = left.get(theirs.name, theirs.figures.allocated)
            if not _gives_way(taker, mine, theirs, holds):
                return False
            for one in queue.path:
                left[one.name] = add(left.get(one.name, one.figures.allocated), part, -1)
                involved.setdefault(one.name, set()).update(kinds)
    return _stays_fair(tree, taker, (left, involved), multiplier)


def has_too_much(taker: Taker, queue: Queue) -> bool:
    """Whether a queue may lose anything of what it holds to a pod of another one."""
    mine, theirs = find_branches(taker.queue, queue)
    return _gives_way(taker, mine, theirs, theirs.figures.allocated)


def _gives_way(taker: Taker, mine: Queue, theirs: Queue, holds: Vector) -> bool:
    """Whether a queue that holds so much may lose more of it to a pod of another one."""
    allocatable = tuple(map(theirs.find_allocatable, _RESOURCES))
    if not is_within(holds, allocatable):
        return True
    then = add(mine.figures.allocated, taker.wants)
    return is_within(then, mine.defined.quota) and not is_within(holds, theirs.defined.quota)


def _stays_fair(
    tree: Tree,
    taker: Taker,
    after: tuple[dict[str, Vector], dict[str, set[int]]],
    multiplier: float,
) -> bool:
    """Whether no queue on the taker's side is fuller than those beside it that lose something."""
    left, involved = after
    kinds = {i for i in _RESOURCES if taker.wants[i] > 0}
    for one in taker.queue.path:
        holds = add(left.get(one.name, one.figures.allocated), taker.wants)
        for name, theirs in left.items():
            other = tree.queues[name]
            if other.name == one.name or other.defined.parent != one.defined.parent:
                continue
            for i in sorted(involved[name] | kinds):
                mine = find_fill(holds[i], one.fair[i])
                fill = find_fill(theirs[i], other.fair[i])
                if mine > 1 and other.fair[i] > 0 and mine * multiplier >= fill:
                    return False
        if not taker.is_preemptible:
            fixed = add(one.figures.fixed, taker.wants)
            if not is_within(fixed, one.defined.quota):
                return False
    return True


def find_fill(held: float, fair: float) -> float:
    """Find how full a queue is: what it holds as a part of its fair share."""
    if not fair:
        return math.inf if held > 0 else 0.0
    return held / fair


def find_branches(one: Queue, other: Queue) -> tuple[Queue, Queue]:
    """Find the queues at which the ways from the top to two queues part."""
    mine, theirs = one.path[::-1], other.path[::-1]
    pairs = list(zip(mine, theirs, strict=False))
    return next((pair for pair in pairs if pair[0] is not pair[1]), pairs[-1])


def find_preempt_seconds(queue: Queue) -> float:
    """Find for how long a pod of a queue runs before another one of the queue may take its place."""
    given = (one.defined.preempt_seconds for one in queue.path)
    return next((one for one in given if one is not None), 0.0)


def find_reclaim_seconds(queue: Queue, taker: Queue, *, by_common: bool) -> float:
    """Find for how long a pod of a queue runs before one of another queue may take its place; see ``KaiSettings``."""
    path = queue.path
    if by_common:
        _, branch = find_branches(taker, queue)
        path = path[path.index(branch) :]
    given = (one.defined.reclaim_seconds for one in path)
    return next((one for one in given if one is not None), 0.0)
