"""Events from the streams, the binder and others, until the loop hands them to the engine.

A page of a list comes as one event and leaves as one event for each object, so that other tasks get their turn between
the objects. No later event overtakes a page.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

from scheduler.api import kinds
from scheduler.api.door import events
from scheduler.api.door.events import Event, Heard, Page
from scheduler.engine.engine import Engine
from scheduler.engine.questions.pods import MissingKeys


class Inbox:
    """A queue of events.

    Attributes:
        engine: takes the events.
        wake: set when there is something to do, here or elsewhere.
        lists_waiting: number of lists that came to their end and are not handed on completely.
    """

    def __init__(self, engine: Engine) -> None:
        """``engine`` takes the events, and knows which known objects were not in a list."""
        self.engine = engine
        self._waiting: deque[Heard] = deque()
        # The page that is being handed on, and the keys that lists have shown so far, by kind and scheduler.
        self._page: Iterator[Event] = iter(())
        self._is_within_page = False
        self._shown: dict[tuple[str, str], set[str]] = {}
        self.wake = asyncio.Event()
        self.lists_waiting = 0

    def __len__(self) -> int:
        return len(self._waiting) + self._is_within_page

    def put(self, event: Heard) -> None:
        """Take an event, to hand it on at the next turn."""
        if isinstance(event, Page) and event.is_last:
            self.lists_waiting += 1
        self._waiting.append(event)
        self.wake.set()

    def take_next(self) -> Event | None:
        """Return the next event; None if there is none."""
        while True:
            event = next(self._page, None)
            if event is not None:
                return event
            self._is_within_page = False
            if not self._waiting:
                return None
            first = self._waiting.popleft()
            if not isinstance(first, Page):
                return first
            self._page, self._is_within_page = self._hand_on(first), True

    def list_rest(self) -> list[Event]:
        """For the end: list the events that are not handed on yet, except pages of lists."""
        return [e for e in self._waiting if not isinstance(e, Page)]

    def _hand_on(self, page: Page) -> Iterator[Event]:
        """Yield all objects of a page; objects that no page of the list has shown are gone when the list ends."""
        kind, scheduler = page.kind, page.scheduler
        if page.is_first:
            self._shown[kind, scheduler] = set()
            yield events.ListBegins(kind, scheduler)
        shown = self._shown[kind, scheduler]
        for one in page.found:
            shown.add(kinds.make_key(one))
            yield events.Seen(one)
        if not page.is_last:
            return
        for key in self.engine.ask(MissingKeys(kind, shown, scheduler)):
            yield events.Gone(kind, key)
        del self._shown[kind, scheduler]
        yield events.ListEnds(kind, scheduler)
        self.lists_waiting -= 1
