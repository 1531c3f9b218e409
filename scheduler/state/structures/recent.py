"""A bounded cache that drops the least recently used entries first."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def _weigh_nothing(_: object, __: object) -> int:
    return 0


class Recent(Generic[K, V]):
    """At most so many values; dictionaries keep their order, so the first is the one used longest ago.

    Attributes:
        n_bytes: what all that is kept takes, as far as it is estimated.
    """

    def __init__(
        self,
        most: int,
        most_bytes: int = 0,
        size_of: Callable[[K, V], int] = _weigh_nothing,
    ) -> None:
        """With ``size_of`` a key and its value are estimated when they come, and all take at most so many bytes.

        A value that alone takes more is kept as long as it is the last one.
        """
        self._most, self._most_bytes, self._size_of = most, most_bytes, size_of
        self._values: dict[K, V] = {}
        self._sizes: dict[K, int] = {}
        self.n_bytes = 0

    def get(self, key: K) -> V | None:
        """The value of a key, which counts as used; None when it is not there."""
        value = self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
        return value

    def put(self, key: K, value: V) -> V:
        """Keep a value."""
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
        """Estimate a value again, because it has grown; nothing when it is not there."""
        value = self._values.get(key)
        if value is not None:
            self.put(key, value)

    def drop(self, key: K) -> None:
        """Keep the value of a key no longer."""
        if self._values.pop(key, None) is not None:
            self.n_bytes -= self._sizes.pop(key, 0)

    def keep(self, is_kept: Callable[[K, V], bool]) -> None:
        """Keep only some of what there is."""
        for key, value in self.items():
            if not is_kept(key, value):
                self.drop(key)

    def items(self) -> list[tuple[K, V]]:
        """All that is kept, what was used least lately first."""
        return list(self._values.items())

    def clear(self) -> None:
        """Keep nothing."""
        self._values.clear()
        self._sizes.clear()
        self.n_bytes = 0

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)
