"""Events from the streams, the binder and others, until the loop hands them to the engine.

A list comes as one event and leaves as many, so that others get their turn between its objects. No later
event overtakes it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

from scheduler.api import kinds
from scheduler.api.door import events
from scheduler.api.door.events import Event, Heard, Listed
from scheduler.engine.engine import Engine
from scheduler.engine.questions.pods import MissingKeys


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
        if isinstance(event, Listed):
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
            if not isinstance(first, Listed):
                return first
            self._list = self._objects(first)

    def rest(self) -> list[Event]:
        """The events that are not handed on yet, except lists; for the end."""
        return [e for e in self._waiting if not isinstance(e, Listed)]

    def _objects(self, listed: Listed) -> Iterator[Event]:
        """All objects of a list; what is not among them is gone."""
        kind, scheduler = listed.kind, listed.scheduler
        yield events.ListBegins(kind, scheduler)
        for one in listed.found:
            yield events.Seen(one)
        present = {kinds.key_of(one) for one in listed.found}
        for key in self.engine.ask(MissingKeys(kind, present, scheduler)):
            yield events.Gone(kind, key)
        yield events.ListEnds(kind, scheduler)
        self.lists_waiting -= 1
