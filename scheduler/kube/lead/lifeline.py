"""The lifeline: a thread for work that must go on even if the main loop is busy.

The lifeline renews the lease and answers the probes, over connections of their own: a decision that takes long must
cost neither leadership nor the life of the process. What one thread reads from the other is one value that is replaced
as a whole, or is handed in through ``call_soon_threadsafe``.
"""

from __future__ import annotations

import asyncio

from scheduler.kube.lead.lease import Notes


class NotesAcross:
    """Notes of the main loop, for a lease in another thread."""

    def __init__(self, notes: Notes, main: asyncio.AbstractEventLoop) -> None:
        self._notes, self._main = notes, main

    def write_annotations(self) -> dict[str, str]:
        """Return the annotations; they are made of numbers, each of which is read at once."""
        return self._notes.write_annotations()

    def read_annotations(self, annotations: dict[str, str]) -> None:
        """Let the main loop take the annotations over at its next turn."""
        self._main.call_soon_threadsafe(self._notes.read_annotations, annotations)
