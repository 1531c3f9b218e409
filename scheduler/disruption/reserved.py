"""What a promised card refuses to other pods, beyond what the nominated pod is charged.

Two rules about sharing a card are judged one way only: a ``mutex`` pod takes no card that somebody holds, and a
container without cores takes no card whose cores are all allocated; but others may join either of them. A pod that is
placed on a promised card under these rules would keep out the pod that the card is promised to.
"""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.schema import columns as c


class Reserved:
    """Marks on cards, until ``undo`` is called."""

    def __init__(self, cards: c.Cards) -> None:
        self._cards = cards
        self._closed: list[int] = []
        self._kept: list[int] = []

    def close(self, rows: Iterable[int]) -> None:
        """Nobody else gets these cards."""
        for row in rows:
            if not self._cards.cordoned[row]:
                self._cards.cordoned[row] = True
                self._closed.append(row)

    def keep_a_core(self, rows: Iterable[int]) -> None:
        """Others leave one percent of the compute of each of these cards, where compute is counted."""
        for row in rows:
            if row not in self._kept and self._cards.total[c.CORES, row]:
                self._cards.total[c.CORES, row] -= 1
                self._kept.append(row)

    def undo(self) -> None:
        """Take the marks away."""
        self._cards.cordoned[self._closed] = False
        self._cards.total[c.CORES, self._kept] += 1
        self._closed, self._kept = [], []
