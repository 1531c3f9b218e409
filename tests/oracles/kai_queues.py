"""The slow twin of KAI's queues: fair shares, which queue comes first, and whether it is fair to take from others.

Written from the words of KAI's rules a second time, with one dictionary of figures for each queue: milli-CPU, bytes, cards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

RESOURCES = ("cpu", "memory", "gpu")
Amounts = dict[str, float]


def none() -> Amounts:
    return dict.fromkeys(RESOURCES, 0.0)


@dataclass
class Queue:
    """A queue; -1 in ``quota`` or ``limit`` is no bound."""

    name: str
    parent: str = ""
    born: str = ""
    priority: int = 100
    quota: Amounts = field(default_factory=none)
    limit: Amounts = field(default_factory=none)
    weight: Amounts = field(default_factory=none)
    usage: Amounts = field(default_factory=none)
    held: Amounts = field(default_factory=none)
    fixed: Amounts = field(default_factory=none)
    request: Amounts = field(default_factory=none)
    fair: Amounts = field(default_factory=none)

    def most(self, what: str) -> float:
        limit = self.limit[what]
        return self.request[what] if limit == -1 else min(limit, self.request[what])

    def allocatable(self, what: str) -> float:
        if self.quota[what] == -1:
            return self.limit[what]
        share = max(self.quota[what], self.fair[what])
        return share if self.limit[what] == -1 else min(self.limit[what], share)


def share_out(queues: Sequence[Queue], total: Amounts, k: float, parent: str = "") -> None:
    """Fair shares of a level, then of what is within each of its queues."""
    level = sorted((one for one in queues if one.parent == parent), key=lambda one: (one.born, one.name))  # fmt: skip
    for what in RESOURCES:
        divide(level, what, total[what], k)
    for one in level:
        share_out(queues, one.fair, k, one.name)


def divide(level: Sequence[Queue], what: str, total: float, k: float) -> None:
    left = total
    for one in level:
        owed = total if one.quota[what] == -1 else one.quota[what]
        one.fair[what] = min(owed, one.most(what))
        left -= one.fair[what]
    missed: dict[str, float] = {}
    for priority in sorted({one.priority for one in level}, reverse=True):
        left = rounds([one for one in level if one.priority == priority], what, left, k, missed)
    for priority in sorted({one.priority for one in level}, reverse=True):
        mine = [one for one in level if one.priority == priority and one.name in missed]
        for one in sorted(mine, key=lambda one: (-missed[one.name], one.born, one.name)):
            if left > 0:
                one.fair[what] += min(1.0, left)
                left -= min(1.0, left)


def rounds(level: Sequence[Queue], what: str, left: float, k: float, missed: dict[str, float]) -> float:  # fmt: skip
    while left > 0:
        hungry = [one for one in level if one.most(what) > one.fair[what]]
        weights = sum(one.weight[what] for one in hungry)
        if not weights:
            return left
        part = {one.name: one.weight[what] / weights for one in hungry}
        speaks = {
            one.name: max(0.0, part[one.name] + k * (part[one.name] - one.usage[what]))
            for one in hungry
        }
        everybody = sum(speaks.values())
        if not everybody:
            return left
        there, another = left, False
        for one in hungry:
            offer = there * (speaks[one.name] / everybody)
            wanted = one.most(what) - one.fair[what]
            if left <= 0 or not one.weight[what]:
                continue
            if wanted <= offer:
                one.fair[what] = one.most(what)
                left -= wanted
                another = another or wanted < offer
                missed.pop(one.name, None)
            else:
                one.fair[what] += math.floor(offer)
                left -= math.floor(offer)
                if offer > math.floor(offer):
                    missed[one.name] = offer - math.floor(offer)
        if not another:
            return left
    return left


def within(amounts: Amounts, most: Amounts) -> bool:
    return all(most[what] == -1 or amounts[what] <= most[what] for what in RESOURCES)


def plus(one: Amounts, other: Amounts, sign: int = 1) -> Amounts:
    return {what: one[what] + sign * other[what] for what in RESOURCES}


def first(one: Queue, other: Queue, wants: tuple[Amounts, Amounts], total: Amounts, gone: tuple[Amounts, Amounts]) -> str:  # fmt: skip
    """The name of the queue that comes first: the first difference decides."""

    def choose(good: bool, better: bool) -> str | None:
        return None if good == better else one.name if good else other.name

    def share(queue: Queue, held: Amounts) -> float:
        parts = []
        for what in RESOURCES:
            most = queue.allocatable(what)
            most = total[what] if most == -1 else most
            parts.append(held[what] / most if most else 1000 * held[what])
        return max(0.0, *parts)

    both = one, other
    over = [all(q.fair[what] < q.held[what] for what in RESOURCES) for q in both]
    then = [plus(q.held, w) for q, w in zip(both, wants, strict=True)]
    starved = [within(t, q.quota) for q, t in zip(both, then, strict=True)]
    empty = [any(not q.allocatable(what) and t[what] > 0 for what in RESOURCES) for q, t in zip(both, then, strict=True)]  # fmt: skip
    after = [share(q, plus(t, g, -1)) for q, t, g in zip(both, then, gone, strict=True)]
    now = [share(q, q.held) for q in both]
    for found in (
        choose(not over[0], not over[1]),
        choose(starved[0], starved[1]),
        choose(one.priority > other.priority, other.priority > one.priority),
        choose(not empty[0], not empty[1]),
        choose(after[0] < after[1], after[1] < after[0]),
        choose(now[0] < now[1], now[1] < now[0]),
        choose(weaker(one, other), weaker(other, one)),
    ):
        if found is not None:
            return found
    return min(both, key=lambda queue: (queue.born, queue.name)).name


def weaker(one: Queue, other: Queue) -> bool:
    mine = {what: one.allocatable(what) for what in RESOURCES}
    theirs = {what: other.allocatable(what) for what in RESOURCES}

    def less(a: float, b: float) -> bool:
        return a != b and (b == -1 or (a != -1 and a < b))

    return any(less(mine[w], theirs[w]) for w in RESOURCES) and not any(less(theirs[w], mine[w]) for w in RESOURCES)  # fmt: skip


def path(queues: Mapping[str, Queue], name: str) -> list[Queue]:
    found = []
    while name in queues:
        found.append(queues[name])
        name = queues[name].parent
    return found[::-1]


def may_take(
    queues: Mapping[str, Queue],
    taker: str,
    wants: Amounts,
    victims: Sequence[tuple[str, Sequence[Amounts]]],
    *,
    preemptible: bool = True,
    multiplier: float = 1.0,
) -> bool:
    """Whether it is fair that victims, by queue, lose what they hold to a pod of another queue."""
    mine = path(queues, taker)
    left = {name: dict(queue.held) for name, queue in queues.items()}
    touched: dict[str, set[str]] = {}
    for name, parts in victims:
        theirs = path(queues, name)
        level = next(i for i in range(len(theirs)) if mine[i] is not theirs[i])
        loser, winner = theirs[level], mine[level]
        for part in parts:
            over_share = any(
                (most := loser.allocatable(what)) != -1 and left[loser.name][what] > most
                for what in RESOURCES
            )
            over_quota = not within(left[loser.name], loser.quota)
            in_need = within(plus(winner.held, wants), winner.quota)
            if not (over_share or (in_need and over_quota)):
                return False
            for queue in theirs:
                left[queue.name] = plus(left[queue.name], part, -1)
                what_goes = {w for p in parts for w in RESOURCES if p[w] > 0}
                touched.setdefault(queue.name, set()).update(what_goes)
    return all(
        stays_below(
            queues, queue, (plus(left[queue.name], wants), wants), (left, touched), multiplier
        )
        and (preemptible or within(plus(queue.fixed, wants), queue.quota))
        for queue in mine
    )


def stays_below(
    queues: Mapping[str, Queue],
    queue: Queue,
    then: tuple[Amounts, Amounts],
    after: tuple[Mapping[str, Amounts], Mapping[str, set[str]]],
    multiplier: float,
) -> bool:
    """Whether a queue that is over its share then is less full than those beside it that lose something."""
    left, touched = after
    holds, wants = then
    for name, kinds in touched.items():
        other = queues[name]
        if other.parent != queue.parent or other is queue:
            continue
        for what in kinds | {w for w in RESOURCES if wants[w] > 0}:
            full, theirs = (
                fill(holds[what], queue.fair[what]),
                fill(left[name][what], other.fair[what]),
            )
            if full > 1 and other.fair[what] > 0 and full * multiplier >= theirs:
                return False
    return True


def fill(held: float, fair: float) -> float:
    if fair:
        return held / fair
    return math.inf if held > 0 else 0.0
