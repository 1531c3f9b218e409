"""Pods that wait for room on the node that they are nominated to, and pods that are evicted to make this room."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from scheduler.api.cards import Grants

# Below the priority of every pod.
_BELOW_ALL = -(1 << 62)
# At least so many changes are remembered.
_REMEMBERED = 4096
_NONE: Mapping[str, int] = MappingProxyType({})


class _Facts(NamedTuple):
    """The state of all nominations at one time."""

    node_of: dict[str, str]
    on: dict[str, dict[str, int]]
    cards: dict[str, Grants]
    going: dict[str, str]
    top: int


class Nominations:
    """Which pod is nominated to which node; the node may be unknown.

    A trial that is rolled back undoes its changes: everything is copied before the first change in a trial, because
    nominations are few, and hardly any trial changes one.

    Attributes:
        top: the highest priority of a nominated pod; below every priority when there is none.
        refused: by uid of a pod that the Eviction API did not let go: the time until which it is not evicted.
        n_moves: how often pods were sent away or stay after all.
    """

    def __init__(
        self, changed: Callable[[str], None], leaves: Callable[[Sequence[str]], None]
    ) -> None:
        """``changed`` is called with the node of every change, ``leaves`` with pods that leave, or stay after all."""
        self._tell, self._note_leaving = changed, leaves
        self._node_of: dict[str, str] = {}
        self._on: dict[str, dict[str, int]] = {}
        # The cards that are promised to a pod, if cards were chosen.
        self._cards: dict[str, Grants] = {}
        # The node of each change, for readers that catch up; changes before ``_from`` are forgotten.
        self._changed: list[str] = []
        self._from = 0
        self.top = _BELOW_ALL
        self._going: dict[str, str] = {}
        self.refused: dict[str, float] = {}
        self.n_moves = 0
        # For each open trial the state before its first change; None while the trial has changed nothing.
        self._before: list[_Facts | None] = []

    def __len__(self) -> int:
        return len(self._node_of)

    @property
    def version(self) -> int:
        """Rises with every change."""
        return self._from + len(self._changed)

    @property
    def going(self) -> Mapping[str, str]:
        """By uid of a victim: the uid of the pod for which it makes room, until it is gone or its eviction has failed."""
        return self._going

    def send_away(self, uids: Iterable[str], makes_room_for: str) -> None:
        """Note that pods are evicted for another one; a pod that is being evicted already keeps its first reason."""
        new = [uid for uid in uids if uid not in self._going]
        if new:
            self._save()
            self._going.update(dict.fromkeys(new, makes_room_for))
            self.n_moves += 1
            self._note_leaving(new)

    def let_stay(self, uid: str) -> str:
        """Note that a pod is gone, or is not evicted; return the uid of the pod it made room for, empty for none."""
        if uid not in self._going:
            return ""
        self._save()
        self._note_leaving((uid,))
        self.n_moves += 1
        return self._going.pop(uid)

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self.drop(uid)
        self.let_stay(uid)
        self.refused.pop(uid, None)

    def note_refused(self, uid: str, until: float) -> None:
        """Note that a pod is not to be evicted until a time."""
        self.refused[uid] = until

    def is_refused(self, uid: str, now: float) -> bool:
        """Whether a pod is not to be evicted yet."""
        return bool(self.refused) and self.refused.get(uid, now) > now

    def find_node(self, uid: str) -> str:
        """Return the node that a pod is nominated to; empty for none."""
        return self._node_of.get(uid, "")

    def list_on(self, node: str) -> Mapping[str, int]:
        """Return the uids of the pods nominated to a node, with their priorities."""
        return self._on.get(node, _NONE)

    def find_cards(self, uid: str) -> Grants:
        """Return the cards that are promised to a pod; empty when it asks none, or none were chosen yet."""
        return self._cards.get(uid, ())

    def list_nodes(self) -> list[str]:
        """List the nodes that any pod is nominated to."""
        return list(self._on)

    def list_since(self, version: int) -> set[str] | None:
        """List the nodes with changes since a version; None when the version is too old to say."""
        return set(self._changed[version - self._from :]) if version >= self._from else None

    def put(self, uid: str, node: str, priority: int, cards: Grants = ()) -> None:
        """Nominate a pod to a node, and promise it these cards; an empty ``node`` ends its nomination.

        If a nomination is repeated without cards, the cards stay as they are.
        """
        is_same = self._node_of.get(uid, "") == node
        if (
            is_same
            and self._on.get(node, _NONE).get(uid) == priority
            and (not cards or cards == self.find_cards(uid))
        ):
            return
        self._save()
        self.drop(uid)
        if node:
            self._node_of[uid] = node
            self._on.setdefault(node, {})[uid] = priority
            if cards:
                self._cards[uid] = cards
            self.top = max(self.top, priority)
            self.note_change(node)

    def drop(self, uid: str) -> None:
        """End the nomination of a pod; nothing when it has none."""
        if uid not in self._node_of:
            return
        self._save()
        node = self._node_of.pop(uid)
        self._cards.pop(uid, None)
        there = self._on[node]
        priority = there.pop(uid)
        if not there:
            del self._on[node]
        self.note_change(node)
        if priority == self.top:
            self.top = max(
                (one for pods in self._on.values() for one in pods.values()), default=_BELOW_ALL
            )

    # Trials.

    def begin_trial(self) -> None:
        """Open a trial, within the trials that are open."""
        self._before.append(None)

    def keep(self) -> None:
        """End the innermost trial; its changes now belong to the trial around it."""
        before = self._before.pop()
        if before is not None and self._before and self._before[-1] is None:
            self._before[-1] = before

    def restore(self) -> None:
        """End the innermost trial, and undo its changes."""
        before = self._before.pop()
        if before is None:
            return
        on, cards = self._on, self._cards
        self._on, self._cards = before.on, before.cards
        self._node_of, self._going = before.node_of, before.going
        self.n_moves += 1
        self.top = before.top
        for node in on.keys() | before.on.keys():
            there = before.on.get(node, _NONE)
            # Whoever has looked within the trial has to look again, at promised cards too.
            if on.get(node, _NONE) != there or any(
                cards.get(uid) != before.cards.get(uid) for uid in there
            ):
                self.note_change(node)

    def _save(self) -> None:
        if self._before and self._before[-1] is None:
            on = {node: dict(pods) for node, pods in self._on.items()}
            self._before[-1] = _Facts(
                dict(self._node_of), on, dict(self._cards), dict(self._going), self.top
            )

    def note_change(self, node: str) -> None:
        """Note that the promised room on a node has changed."""
        if len(self._changed) >= 2 * _REMEMBERED:
            self._from += _REMEMBERED
            del self._changed[:_REMEMBERED]
        self._changed.append(node)
        self._tell(node)
