"""How well the cards of a pool are linked with each other: one matrix for all pools that are linked alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.api.cards import Card
from scheduler.schema import card_parts

_NONE = -1


class LinkTable:
    """Owns and grows ``card_parts.Links``."""

    def __init__(self) -> None:
        self.columns = card_parts.Links(scores=np.zeros(0, np.int64))
        self._known: dict[bytes, int] = {}

    def find_rows(self, cards: Sequence[Card]) -> list[int]:
        """Find where the scores of each card of a pool begin, one for each card of the pool; -1 where none are known."""
        n = len(cards)
        if n > card_parts.LINKED_MAX or not any(card.links for card in cards):
            return [_NONE] * n
        places = {card.id: place for place, card in enumerate(cards)}
        matrix = np.zeros((n, n), np.int64)
        for place, card in enumerate(cards):
            for other, score in card.links:
                if other in places:
                    matrix[place, places[other]] = score
        key = matrix.tobytes()
        first = self._known.get(key)
        if first is None:
            first = self._known[key] = self.columns.scores.size
            scores = np.concatenate((self.columns.scores, matrix.ravel()))
            self.columns.adopt(card_parts.Links(scores=scores))
        return [first + n * place for place in range(n)]
