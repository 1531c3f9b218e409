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
        # Whether it counts in any queue, and when everything was added up last.
        self._counts, self._sampled_at = False, 0.0

    def find_due(self) -> float | None:
        """Find when what is used is to be added up next, for those who read it; None if it counts nowhere."""
        return self._sampled_at + self._history.sampling_seconds if self._counts else None

    def sample(self, now: float) -> None:
        """Add up what local queues have used where it counts, if it is time to."""
        due = self.find_due()
        if due is None or now < due:
            return
        self._sampled_at = now
        counting = {one.name for one in self._directory.forest.queues.values() if one.by_usage}
        self._counts = bool(counting)
        for key, local in self._directory.locals.items():
            if local.queue in counting:
                self._history.settle(key, now)

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
        self._counts = self._counts or queue.by_usage

        def find(local: str) -> float:
            return self.find(queue.name, local) or 0.0

        return Line(is_strict=queue.is_strict, find_usage=find if queue.by_usage else None)
