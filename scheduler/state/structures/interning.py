"""Values to small integers, for as long as the interner lives: labels, models, resources, shapes."""

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
        """The value's number; a new one when it is first seen."""
        known = self._numbers.get(value)
        if known is None:
            known = self._numbers[value] = len(self.values)
            self.values.append(value)
        return known

    def find(self, value: T) -> int:
        """The value's number, -1 when it was never seen."""
        return self._numbers.get(value, -1)

    def __len__(self) -> int:
        return len(self.values)
