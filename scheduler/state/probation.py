"""Cards that were ill and are reported healthy again: for some time no new pod gets them, because such cards often fall ill again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping


class Probation:
    """Which cards of which nodes are on probation, and until when."""

    def __init__(self) -> None:
        self._until: dict[str, dict[str, float]] = {}

    def begin(self, node: str, cards: Mapping[str, float]) -> None:
        """Put cards of a node on probation, each until a time in seconds since 1970."""
        if cards:
            self._until.setdefault(node, {}).update(cards)

    def find_due(self) -> float:
        """Return when the next card is off probation; infinite if none is on it."""
        return min((min(cards.values()) for cards in self._until.values()), default=float("inf"))

    def end_due(self, now: float) -> list[str]:
        """End what is over; return the names of the nodes with such cards."""
        due = [node for node, cards in self._until.items() if min(cards.values()) <= now]
        for node in due:
            left = {uuid: until for uuid, until in self._until[node].items() if until > now}
            self._until[node] = left
            if not left:
                del self._until[node]
        return due

    def drop_node(self, node: str) -> None:
        """Forget the cards of a node that is gone."""
        self._until.pop(node, None)

    def get_cards(self, node: str) -> Mapping[str, float]:
        """Return the cards of a node that are on probation, and until when."""
        return self._until.get(node, {})

    def list_all(self) -> Iterator[tuple[str, dict[str, float]]]:
        """List the nodes with such cards, and until when each card is on probation."""
        yield from self._until.items()
