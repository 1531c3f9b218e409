"""Pods that wait for room on a node that they are nominated to, and pods that go to make it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from scheduler.api.cards import Slots

# Of whatever priority a pod is, nobody is nominated before it.
_BELOW_ALL = -(1 << 62)
# So many changes are remembered, at least.
_REMEMBERED = 4096
_NONE: Mapping[str, int] = MappingProxyType({})


class Nominations:
    """Which pod is nominated to which node; the node may not be there.

    Attributes:
        top: the highest priority of a nominated pod; less than any when there is none.
        going: who is sent away for whom, by uid, until the pod is gone or its eviction has failed.
    """

    def __init__(self, changed: Callable[[str], None]) -> None:
        """``changed`` is told the node of every change."""
        self._tell = changed
        self._node_of: dict[str, str] = {}
        self._on: dict[str, dict[str, int]] = {}
        # The cards that are promised to a pod, where they were chosen.
        self._cards: dict[str, Slots] = {}
        # The node of each change, for readers that catch up; those before ``_from`` are forgotten.
        self._changed: list[str] = []
        self._from = 0
        self.top = _BELOW_ALL
        self.going: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._node_of)

    @property
    def version(self) -> int:
        """Rises with every change."""
        return self._from + len(self._changed)

    def node_of(self, uid: str) -> str:
        """The node that a pod is nominated to; empty for none."""
        return self._node_of.get(uid, "")

    def on(self, node: str) -> Mapping[str, int]:
        """The pods nominated to a node, with their priorities."""
        return self._on.get(node, _NONE)

    def cards_of(self, uid: str) -> Slots:
        """The cards that are promised to a pod; empty where it asks none, or nobody has chosen them."""
        return self._cards.get(uid, ())

    def nodes(self) -> list[str]:
        """The nodes that any pod is nominated to."""
        return list(self._on)

    def since(self, version: int) -> set[str] | None:
        """The nodes for which something has changed since a version; None when it is too long ago to say."""
        return set(self._changed[version - self._from :]) if version >= self._from else None

    def put(self, uid: str, node: str, priority: int, cards: Slots = ()) -> None:
        """A pod is nominated to a node, and these cards are promised to it; to no node when ``node`` is empty.

        Whoever repeats a nomination without cards leaves the cards as they are.
        """
        is_same = self._node_of.get(uid, "") == node
        if (
            is_same
            and self._on.get(node, _NONE).get(uid) == priority
            and (not cards or cards == self.cards_of(uid))
        ):
            return
        self.drop(uid)
        if node:
            self._node_of[uid] = node
            self._on.setdefault(node, {})[uid] = priority
            if cards:
                self._cards[uid] = cards
            self.top = max(self.top, priority)
            self._note(node)

    def drop(self, uid: str) -> None:
        """A pod is not nominated any more; nothing when it was not."""
        node = self._node_of.pop(uid, "")
        if not node:
            return
        self._cards.pop(uid, None)
        there = self._on[node]
        priority = there.pop(uid)
        if not there:
            del self._on[node]
        self._note(node)
        if priority == self.top:
            self.top = max(
                (one for pods in self._on.values() for one in pods.values()), default=_BELOW_ALL
            )

    def _note(self, node: str) -> None:
        if len(self._changed) >= 2 * _REMEMBERED:
            self._from += _REMEMBERED
            del self._changed[:_REMEMBERED]
        self._changed.append(node)
        self._tell(node)
