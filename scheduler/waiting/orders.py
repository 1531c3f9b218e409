"""Who of those that wait comes first. There is one order, and whoever looks at those that wait follows it."""

from __future__ import annotations

from typing import Any, Protocol

from scheduler.state.entities import AnyEntity

# What a namespace may spend before others go first, in units of cost, and how soon half of it is forgotten.
# Nobody owes more than is forgotten in a few half-lives: perhaps nobody else wanted the time.
_ALLOWANCE, _SPENT_MAX = 100.0, 400.0
_HALF_LIFE_SECONDS = 10.0
# The lane of all that have an allowance.
_COMMON = ""


class Order(Protocol):
    """Entities stand in lanes. In a lane nothing moves by itself; lanes overtake each other as work is done."""

    def place(self, entity: AnyEntity) -> tuple[Any, ...]:
        """Where an entity stands among those of its lane, the lowest first; it is always the same."""

    def lane(self, entity: AnyEntity) -> str:
        """In which lane it stands by now."""

    def rank(self, lane: str, place: tuple[Any, ...]) -> tuple[Any, ...]:
        """Where the first of a lane stands by now among the first of all lanes, the lowest first."""

    def pay(self, namespace: str, cost: float) -> None:
        """Work for a namespace has cost so much beyond the usual."""

    def fade(self, now: float) -> None:
        """Time has passed."""


class PriorityAndAge:
    """By priority, then age; within a priority, namespaces that used much lately come last.

    A kind of pod that was not looked at lately is expensive to decide, and its namespace pays for it: a namespace that
    has spent more than its allowance stands behind the others, the least spent first, until that is forgotten (by
    half every ten seconds). Nobody else's pods wait for it.
    """

    def __init__(self) -> None:
        self._spent: dict[str, float] = {}
        self._faded_at = 0.0

    def place(self, entity: AnyEntity) -> tuple[int, str, int]:
        """By priority, then age, then arrival."""
        return -entity.priority, entity.created, entity.order

    def lane(self, entity: AnyEntity) -> str:
        """A namespace that has spent its allowance has a lane of its own."""
        spent = self._spent
        if not spent or spent.get(entity.namespace, 0.0) <= _ALLOWANCE:
            return _COMMON
        return entity.namespace

    def rank(self, lane: str, place: tuple[Any, ...]) -> tuple[Any, ...]:
        """By priority, then what the namespace has spent."""
        return place[0], self._spent.get(lane, 0.0)

    def pay(self, namespace: str, cost: float) -> None:
        """A pod of a namespace costs so much beyond the usual."""
        self._spent[namespace] = min(_SPENT_MAX, self._spent.get(namespace, 0.0) + cost)

    def fade(self, now: float) -> None:
        """Forget what was spent as time goes; a namespace with allowance again stands among all others."""
        passed = now - self._faded_at
        if not self._spent or passed < 1.0:
            self._faded_at = now if not self._spent else self._faded_at
            return
        self._faded_at = now
        left = 0.5 ** (passed / _HALF_LIFE_SECONDS)
        self._spent = {n: spent * left for n, spent in self._spent.items() if spent * left >= 1.0}
