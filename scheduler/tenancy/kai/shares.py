"""Fair shares: how queues with one parent divide a resource among themselves.

Source: KAI-Scheduler (2026-03), ``plugins/proportion/resource_division``. The order in which queues are looked at is that
of age and name here; KAI has none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from scheduler.api.queues.kai import UNLIMITED


@dataclass(slots=True)
class Claimant:
    """What a queue is owed, and asks, of one resource, in KAI's units: milli-CPU, bytes, cards.

    Attributes:
        quota, limit: as in ``KaiQueue``.
        weight: its part of what is over all quotas.
        request: what its pods have and want.
        usage: what it has used lately, as a part of all there is.
        priority: that of the queue.
        age: the lowest is the oldest.
        share: its fair share.
    """

    quota: float
    limit: float
    weight: float
    request: float
    usage: float = 0.0
    priority: int = 0
    age: tuple[str, str] = ("", "")
    share: float = 0.0

    @property
    def most(self) -> float:
        """What it can make use of."""
        return self.request if self.limit == UNLIMITED else min(self.limit, self.request)

    @property
    def is_satisfied(self) -> bool:
        """Whether it can make no use of more."""
        return self.most <= self.share


def divide(total: float, k: float, claimants: Sequence[Claimant]) -> None:
    """Give each claimant its fair share of a total.

    First everybody gets what belongs to it and what it asks. What is left goes to the classes of priority, the highest
    first; within a class by weight, in whole units. A unit that nobody got whole goes to whoever missed most of it.
    """
    left = total
    for one in claimants:
        quota = total if one.quota == UNLIMITED else one.quota
        one.share = min(quota, one.most)
        left -= one.share
    if left <= 0:
        return
    order = sorted(claimants, key=lambda one: (-one.priority, one.age))
    classes = [list(group) for _, group in groupby(order, key=lambda one: one.priority)]
    missed: list[list[tuple[Claimant, float]]] = []
    for one_class in classes:
        left, parts = _divide_class(left, k, one_class)
        missed.append(parts)
    for parts in missed:
        # Of what is missed the largest part first, then the oldest queue.
        for one, _ in sorted(parts, key=lambda part: (-part[1], part[0].age)):
            if left <= 0:
                return
            given = min(1.0, left)
            one.share += given
            left -= given


def _divide_class(
    left: float, k: float, claimants: Sequence[Claimant]
) -> tuple[float, list[tuple[Claimant, float]]]:
    """Divide what is left among queues of one priority, in rounds; what is left then, and what each missed of a unit."""
    missed: dict[int, tuple[Claimant, float]] = {}
    goes_on = True
    while goes_on and left > 0:
        goes_on, there = False, left
        weights = _weigh([one for one in claimants if not one.is_satisfied], k)
        whole = sum(weight for _, weight in weights)
        if not whole:
            break
        for one, weight in weights:
            if left <= 0:
                break
            if not one.weight:
                continue
            offer, wanted = there * (weight / whole), one.most - one.share
            if wanted <= offer:
                missed.pop(id(one), None)
                one.share = one.most
                left -= wanted
                goes_on = goes_on or wanted < offer
                continue
            given = float(math.floor(offer))
            if offer > given:
                missed[id(one)] = one, offer - given
            one.share += given
            left -= given
    return left, list(missed.values())


def _weigh(claimants: Sequence[Claimant], k: float) -> list[tuple[Claimant, float]]:
    """Weigh those that are not satisfied: less if they have used more than their weight lately."""
    total = sum(one.weight for one in claimants)
    if not total:
        return []
    parts = [one.weight / total for one in claimants]
    return [
        (one, max(0.0, part + k * (part - one.usage)))
        for one, part in zip(claimants, parts, strict=True)
    ]
