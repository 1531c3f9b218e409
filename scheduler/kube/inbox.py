"""Events from the streams, the binder and others, until the loop hands them to the engine.

A list comes as one event and leaves as many, so that others get their turn between its objects. No later
event overtakes it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

from scheduler.api.door import events
from scheduler.api.door.events import Event, Heard, Listed, NodesListed, PodsListed
from scheduler.engine.engine import Engine

_LISTS = (PodsListed, NodesListed, Listed)


class Inbox:
    """A queue of events.

    Attributes:
        engine: whom it is for.
        wake: set when there is something to do, here or elsewhere.
        lists_waiting: lists that came and are not handed on completely.
    """

    def __init__(self, engine: Engine) -> None:
        """``engine`` takes the events; it is asked which known objects were not in a list."""
        self.engine = engine
        self._waiting: deque[Heard] = deque()
        self._list: Iterator[Event] = iter(())
        self.wake = asyncio.Event()
        self.lists_waiting = 0

    def __len__(self) -> int:
        return len(self._waiting) + self.lists_waiting

    def put(self, event: Heard) -> None:
        """Take an event; it is handed on at the next turn."""
        if isinstance(event, _LISTS):
            self.lists_waiting += 1
        self._waiting.append(event)
        self.wake.set()

    def next(self) -> Event | None:
        """The next event; None when there is none."""
        while True:
            event = next(self._list, None)
            if event is not None:
                return event
            if not self._waiting:
                return None
            first = self._waiting.popleft()
            if isinstance(first, PodsListed):
                self._list = self._pods(first)
            elif isinstance(first, NodesListed):
                self._list = self._nodes(first)
            elif isinstance(first, Listed):
                self._list = self._objects(first)
            else:
                return first

    def rest(self) -> list[Event]:
        """The events that are not handed on yet, except lists; for the end."""
        return [e for e in self._waiting if not isinstance(e, _LISTS)]

    def _pods(self, listed: PodsListed) -> Iterator[Event]:
        """All unfinished pods of one stream; what is not among them is gone."""
        yield events.PodListBegins(listed.scheduler)
        for pod in listed.pods:
            yield events.PodSeen(pod)
        present = {pod.metadata.uid for pod in listed.pods}
        for uid in self.engine.missing(present, listed.scheduler):
            yield events.PodGone(uid)
        yield events.PodListEnds(listed.scheduler)
        self.lists_waiting -= 1

    def _nodes(self, listed: NodesListed) -> Iterator[Event]:
        """All nodes; what is not among them is gone."""
        for node in listed.nodes:
            yield events.NodeSeen(node)
        present = {node.metadata.name for node in listed.nodes}
        for name in [name for name in self.engine.cluster.nodes.rows if name not in present]:
            yield events.NodeGone(name)
        yield events.NodeListEnds()
        self.lists_waiting -= 1

    def _objects(self, listed: Listed) -> Iterator[Event]:
        """All objects of one kind; what is not among them is gone."""
        for one in listed.found:
            yield events.Seen(one)
        present = {(one.metadata.namespace, one.metadata.name) for one in listed.found}
        for namespace, name in [key for key in self.engine.keys(listed.kind) if key not in present]:
            yield events.Gone(listed.kind, namespace, name)
        self.lists_waiting -= 1
