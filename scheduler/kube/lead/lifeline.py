"""A thread with an event loop of its own, for what must go on however busy the main one is.

The lease is renewed here and the probes are answered here, over connections of their own: a decision
that takes long must cost neither leadership nor the life of the process. What crosses over is read as
one value that is replaced as a whole, or handed in through ``call_soon_threadsafe``.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from scheduler.kube.lead.lease import Notes

T = TypeVar("T")


class Lifeline:
    """Runs coroutines in the thread, for the main loop to wait for."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="lifeline", daemon=True)
        self._thread.start()

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work comes to; to cancel the call is to cancel the work."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def stop(self) -> None:
        """End the thread; whatever ran in it must have ended."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()


class NotesAcross:
    """Notes of the main loop, for a lease in another thread: what is read is handed over."""

    def __init__(self, notes: Notes, main: asyncio.AbstractEventLoop) -> None:
        self._notes, self._main = notes, main

    def write(self) -> dict[str, str]:
        """Two numbers, each read at once."""
        return self._notes.write()

    def read(self, annotations: dict[str, str]) -> None:
        """Taken over at the main loop's next turn."""
        self._main.call_soon_threadsafe(self._notes.read, annotations)
