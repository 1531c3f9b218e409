"""The room that is promised to one group for a later time: to the first in line that does not fit now."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import msgspec

from scheduler.state.pods import PodRecord

# The place of an entity in the queue, the lowest first.
Place = tuple[Any, ...]
_NOBODY: Mapping[str, tuple[str, ...]] = MappingProxyType({})


class LaterRoom(msgspec.Struct, frozen=True):
    """What is promised to a group.

    Attributes:
        entity: the uid of the group.
        place: the place of the group in the queue; entities that come before it need not regard the promise.
        until: the time by which the group fits, in seconds since 1970: by then the pods that stand in its way have ended.
        on: by the name of a node: the uids of the pods that will be placed there.
        doubted: namespaces in which a pod runs longer than it said: what their pods say of their end is not believed.
        domain: the label and the values of the domain in which the group will be; empty texts for no domain.
        ends_by: by when others must have ended that use the room before, if that is earlier than ``until``.
    """

    entity: str
    place: Place
    until: float
    on: Mapping[str, tuple[str, ...]]
    doubted: frozenset[str] = frozenset()
    domain: tuple[str, tuple[str, ...]] = ("", ())
    ends_by: float = math.inf


class Later:
    """At most one promise for a later time.

    Attributes:
        room: what is promised; None for nothing.
        number: rises with every change.
    """

    def __init__(
        self, note_node: Callable[[str], None], find_place: Callable[[PodRecord], Place]
    ) -> None:
        """``note_node`` is called with each node of which the promised room changes; ``find_place`` as the queue has it."""
        self._note_node, self._find_place = note_node, find_place
        self.room: LaterRoom | None = None
        self.number = 0
        self._members: frozenset[str] = frozenset()
        self._is_aside = False

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """Let nobody regard the promise meanwhile: it is found out what another group could be promised in its place."""
        self._is_aside = True
        try:
            yield
        finally:
            self._is_aside = False

    @property
    def on(self) -> Mapping[str, tuple[str, ...]]:
        """By the name of a node: the uids of the pods that will be placed there."""
        return _NOBODY if self.room is None else self.room.on

    def put(self, room: LaterRoom | None) -> None:
        """Promise this room, and nothing else; None ends the promise."""
        if room == self.room:
            return
        nodes = dict.fromkeys((*self.on, *(() if room is None else room.on)))
        self.room = room
        self._members = frozenset(uid for uids in self.on.values() for uid in uids)
        self.number += 1
        for name in nodes:
            self._note_node(name)

    def find_share(self, uid: str) -> str:
        """Return the uid of the group whose room is promised if a pod is in it; else an empty text."""
        return self.room.entity if self.room is not None and uid in self._members else ""

    def binds(self, pod: PodRecord, now: float, run_seconds: float | None) -> bool:
        """Whether a pod that runs for so long (None: nobody knows) must leave the promised room free."""
        room = self.room
        if room is None or self._is_aside or pod.uid in self._members:
            return False
        is_known = run_seconds is not None and pod.namespace not in room.doubted
        if is_known and now + (run_seconds or 0.0) <= min(room.until, room.ends_by):
            return False
        return self._find_place(pod) > room.place
