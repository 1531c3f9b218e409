"""The lifeline: a thread for work that must go on even if the main loop is busy.

The lease is renewed here and the probes are answered here, over connections of their own: a decision
that takes long must cost neither leadership nor the life of the process. What crosses over is read as
one value that is replaced as a whole, or handed in through ``call_soon_threadsafe``.
"""

from __future__ import annotations

import asyncio

from scheduler.kube.lead.lease import Notes


class NotesAcross:
    """Notes of the main loop, for a lease in another thread: what is read is handed over."""

    def __init__(self, notes: Notes, main: asyncio.AbstractEventLoop) -> None:
        self._notes, self._main = notes, main

    def write_annotations(self) -> dict[str, str]:
        """Two numbers, each read at once."""
        return self._notes.write_annotations()

    def read_annotations(self, annotations: dict[str, str]) -> None:
        """Taken over at the main loop's next turn."""
        self._main.call_soon_threadsafe(self._notes.read_annotations, annotations)
