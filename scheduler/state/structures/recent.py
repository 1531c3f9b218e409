"""A bounded cache that drops the least recently used entries first."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def _weigh_nothing(_: object, __: object) -> int:
    return 0


class Recent(Generic[K, V]):
    """Keeps at most so many values; dictionaries keep their order, so the first value is the one used longest ago.

    Attributes:
        n_bytes: the estimated size of everything that is kept.
    """

    def __init__(
        self,
        most: int,
        most_bytes: int = 0,
        size_of: Callable[[K, V], int] = _weigh_nothing,
    ) -> None:
        """With ``size_of``, which estimates a key and its value in bytes, all take at most ``most_bytes``.

        A value that alone takes more is kept until another value is put.
        """
        self._most, self._most_bytes, self._size_of = most, most_bytes, size_of
        self._values: dict[K, V] = {}
        self._sizes: dict[K, int] = {}
        self.n_bytes = 0

    def get(self, key: K) -> V | None:
        """Return the value of a key, which counts as used now; None when the key is not there."""
        value = self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
        return value

    def put(self, key: K, value: V) -> V:
        """Keep a value, and return it."""
        self.drop(key)
        size = self._size_of(key, value)
        while self._values and (
            len(self._values) >= self._most or self.n_bytes + size > self._most_bytes > 0
        ):
            self.drop(next(iter(self._values)))
        self._values[key] = value
        if size:
            self._sizes[key] = size
            self.n_bytes += size
        return value

    def weigh(self, key: K) -> None:
        """Estimate the size of a value that has grown again; nothing when it is not there."""
        value = self._values.get(key)
        if value is not None:
            self.put(key, value)

    def drop(self, key: K) -> None:
        """Drop the value of a key."""
        if self._values.pop(key, None) is not None:
            self.n_bytes -= self._sizes.pop(key, 0)

    def keep(self, is_kept: Callable[[K, V], bool]) -> None:
        """Keep only some of the values."""
        for key, value in self.items():
            if not is_kept(key, value):
                self.drop(key)

    def items(self) -> list[tuple[K, V]]:
        """List everything that is kept, the value used longest ago first."""
        return list(self._values.items())

    def clear(self) -> None:
        """Drop everything."""
        self._values.clear()
        self._sizes.clear()
        self.n_bytes = 0

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)
