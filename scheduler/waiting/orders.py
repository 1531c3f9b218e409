"""The order of the waiting entities: which of them is tried first. All code that looks at them follows one order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from scheduler.state.entities import AnyEntity
from scheduler.state.seniority import Seniority

# What a namespace may spend before other namespaces go first, and the most that it can owe, in units of cost; and
# the time in which half of a debt is forgotten. The most is forgotten in a few half-lives: perhaps no other namespace
# wanted the time that was spent.
_ALLOWANCE, _SPENT_MAX = 100.0, 400.0
_HALF_LIFE_SECONDS = 10.0
# The lane of all namespaces that have spent no more than their allowance.
_COMMON = ""


class First(NamedTuple):
    """The entity that is next in its lane, with its place there."""

    place: tuple[Any, ...]
    entity: AnyEntity


class Order(Protocol):
    """Orders entities in lanes. Within a lane the order never changes; lanes overtake each other as work is done."""

    def find_place(self, entity: AnyEntity) -> tuple[Any, ...]:
        """Return the place of an entity among the entities of its lane, the lowest first; it changes only with the entity."""

    def find_lane(self, entity: AnyEntity) -> str:
        """Return the lane that an entity is in now."""

    def pick_lane(self, firsts: Mapping[str, First]) -> str:
        """Return the lane that is next now, of those whose first entities are given."""

    def goes_alone(self, entity: AnyEntity) -> bool:
        """Whether an entity is tried by itself: who comes after it may depend on where it goes."""

    def pay_cost(self, namespace: str, cost: float) -> None:
        """Charge a namespace for work that cost so much beyond the usual."""

    def fade_debts(self, now: float) -> None:
        """Forget a part of what namespaces have spent, as time has passed."""


class PriorityAndAge:
    """Orders by priority, then age, and groups below their minimum first; within a priority, namespaces that used much lately come last.

    A pod of a kind that was not decided for lately is expensive, and its namespace pays for it. A namespace that has
    spent more than its allowance comes after the others, the one that spent least first, until its debt is forgotten
    (by half every ten seconds). So the pods of other namespaces do not wait for expensive ones.
    """

    def __init__(self, seniority: Seniority | None = None) -> None:
        """``seniority`` says how much priority age is worth."""
        self.seniority = seniority or Seniority()
        self._spent: dict[str, float] = {}
        self._faded_at = 0.0

    def find_place(self, entity: AnyEntity) -> tuple[float, float, str, int]:
        """Return the place as ``Seniority`` has it."""
        return self.seniority.find_place(entity)

    def find_lane(self, entity: AnyEntity) -> str:
        """Return the common lane, or for a namespace that has spent its allowance its own lane."""
        spent = self._spent
        if not spent or spent.get(entity.namespace, 0.0) <= _ALLOWANCE:
            return _COMMON
        return entity.namespace

    def pick_lane(self, firsts: Mapping[str, First]) -> str:
        """Return the lane of the highest priority; of equal ones that of the namespace that has spent least."""
        spent = self._spent
        return min(firsts, key=lambda lane: (firsts[lane].place[0], spent.get(lane, 0.0)))

    def goes_alone(self, entity: AnyEntity) -> bool:
        """Return that no entity goes alone: this order is the same whatever is placed."""
        del entity
        return False

    def pay_cost(self, namespace: str, cost: float) -> None:
        """Charge a namespace for a pod that costs so much beyond the usual."""
        self._spent[namespace] = min(_SPENT_MAX, self._spent.get(namespace, 0.0) + cost)

    def fade_debts(self, now: float) -> None:
        """Forget what was spent as time goes by; a namespace back within its allowance is in the common lane again."""
        passed = now - self._faded_at
        if not self._spent or passed < 1.0:
            self._faded_at = now if not self._spent else self._faded_at
            return
        self._faded_at = now
        left = 0.5 ** (passed / _HALF_LIFE_SECONDS)
        self._spent = {n: spent * left for n, spent in self._spent.items() if spent * left >= 1.0}
