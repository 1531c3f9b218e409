"""How much local queues have used, in the queues in which that counts."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.api.queues.definitions import QueueDefinition
from scheduler.tenancy.directory import Directory
from scheduler.tenancy.history import History
from scheduler.tenancy.lines import Line


class LocalUsage:
    """Finds what local queues have used.

    Args:
        directory: which queues there are.
        history: what local queues have used.
        get_now: gives the time of what happens, in seconds since 1970.
    """

    def __init__(
        self, directory: Directory, history: History, get_now: Callable[[], float]
    ) -> None:
        self._directory, self._history, self._get_now = directory, history, get_now

    def find(self, queue: str, local: str) -> float | None:
        """Find how much a local queue has used; None if that does not count in its queue."""
        defined = self._directory.forest.queues.get(queue)
        if defined is None or not defined.by_usage:
            return None
        known = self._directory.locals.get(local)
        weight = 1.0 if known is None else known.weight
        total = self._directory.sum_up_tree(queue)
        return self._history.find_usage(local, weight, total, self._get_now())

    def make_line(self, queue: QueueDefinition) -> Line:
        """Make the line of a queue, in which local queues that have used less come first if that counts."""

        def find(local: str) -> float:
            return self.find(queue.name, local) or 0.0

        return Line(is_strict=queue.is_strict, find_usage=find if queue.by_usage else None)
