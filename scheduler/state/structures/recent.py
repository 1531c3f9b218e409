"""A cache with a bound: what was used least lately goes first."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """At most so many values; dictionaries keep their order, so the first is the one used longest ago."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """The value of a key, which counts as used; None when it is not there."""
        value = self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
        return value

    def put(self, key: K, value: V) -> V:
        """Keep a value."""
        self._values.pop(key, None)
        while len(self._values) >= self._most:
            del self._values[next(iter(self._values))]
        self._values[key] = value
        return value

    def drop(self, key: K) -> None:
        """Keep the value of a key no longer."""
        self._values.pop(key, None)

    def items(self) -> list[tuple[K, V]]:
        """All that is kept, what was used least lately first."""
        return list(self._values.items())

    def clear(self) -> None:
        """Keep nothing."""
        self._values.clear()

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)
