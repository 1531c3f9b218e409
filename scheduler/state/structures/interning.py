"""Small integers for values such as labels, models and resources; a number holds as long as its interner lives."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class Interner(Generic[T]):
    """Numbers values in the order they are first seen."""

    def __init__(self, *values: T) -> None:
        self._numbers: dict[T, int] = {}
        self.values: list[T] = []
        for value in values:
            self.number(value)

    def number(self, value: T) -> int:
        """Return the number of a value, which is new when the value is first seen."""
        known = self._numbers.get(value)
        if known is None:
            known = self._numbers[value] = len(self.values)
            self.values.append(value)
        return known

    def find(self, value: T) -> int:
        """Return the number of a value; -1 when the value was never seen."""
        return self._numbers.get(value, -1)

    def __len__(self) -> int:
        return len(self.values)
