"""One evaluation: its variables, and what it has cost."""

from __future__ import annotations

from typing import Any

from scheduler.devices.cel.errors import LimitError

# Beside the cost that Kubernetes counts, the steps that it lets pass for nothing: copying and comparing lists, texts
# that grow, loops that are begun. No honest selector comes near; one that does ends as if it cost too much.
WORK_LIMIT = 1_000_000


class Run:
    """One evaluation of one selector."""

    __slots__ = ("cost", "device", "limit", "slots", "work")

    def __init__(self, device: Any, slots: int, limit: int) -> None:
        self.device = device
        self.slots: list[Any] = [None] * slots
        self.limit = limit
        self.cost = 0
        self.work = 0

    def charge(self, cost: int) -> None:
        """Count what Kubernetes counts.

        Raises:
            LimitError: it is too much.
        """
        self.cost += cost
        if self.cost > self.limit:
            raise LimitError

    def toil(self, steps: int) -> None:
        """Count what Kubernetes does not count.

        Raises:
            LimitError: it is too much.
        """
        self.work += steps
        if self.work > WORK_LIMIT:
            raise LimitError
