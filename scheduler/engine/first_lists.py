"""Which pods were there before anybody watched: those of the first list of each stream.

Nobody saw these pods come, so they do not tell how many pods come while others leave.
"""

from __future__ import annotations

from collections.abc import Collection


class FirstLists:
    """The first list of each stream of pods; a stream is named by the scheduler of its pods, empty for those of others.

    Args:
        schedulers: the names that this process goes by.
    """

    def __init__(self, schedulers: Collection[str]) -> None:
        self._schedulers = schedulers
        self._open: set[str] = set()
        self._complete: set[str] = set()

    def begin_list(self, scheduler: str) -> None:
        """Note that a list begins, or begins again."""
        if scheduler not in self._complete:
            self._open.add(scheduler)

    def end_list(self, scheduler: str) -> None:
        """Note that a list is complete."""
        self._open.discard(scheduler)
        self._complete.add(scheduler)

    def is_complete(self, scheduler: str) -> bool:
        """Whether the first list of the stream has come to its end."""
        return scheduler in self._complete

    def has_pod_of(self, scheduler: str) -> bool:
        """Whether a pod that gives this scheduler's name, and is seen now, is of a first list."""
        if not self._open:
            return False
        return (scheduler if scheduler in self._schedulers else "") in self._open
