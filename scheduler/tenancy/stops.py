"""Whose next step is due that no other workload has a part in: each is carried out once, until its object has changed."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping

from scheduler.api.door.workload_decisions import SetPriority, StepDecision, SyncChecks
from scheduler.tenancy.steps import Steps
from scheduler.tenancy.works import Where, Work

_KEEP_QUOTA = SetPriority, SyncChecks


class Stops:
    """The workloads that may have a step to go by themselves, now or later.

    Attributes:
        under_way: workloads whose step is being carried out.
    """

    def __init__(self, steps: Steps, works: Mapping[str, Work]) -> None:
        """``steps`` finds the next one of a workload."""
        self._steps, self._works = steps, works
        self.under_way: set[str] = set()
        self._noted: dict[str, None] = {}
        # When the step of a workload is due; an entry of the heap with another time no longer counts.
        self._later: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    @property
    def has_any(self) -> bool:
        """Whether any workload has a step to go now."""
        return bool(self._noted)

    def find_due(self) -> float | None:
        """Find when the next step is due that is not due yet; None if there is none."""
        while self._heap:
            due, key = self._heap[0]
            if self._later.get(key) == due:
                return due
            heapq.heappop(self._heap)
        return None

    def note(self, work: Work) -> None:
        """Note whether a workload has a step to go, and when."""
        key = work.key
        step = None if key in self.under_way else self._steps.find(work, 0.0)
        self._noted.pop(key, None)
        if step is None:
            self._later.pop(key, None)
        elif not step.due:
            self._later.pop(key, None)
            self._noted[key] = None
        elif self._later.get(key) != step.due:
            self._later[key] = step.due
            heapq.heappush(self._heap, (step.due, key))

    def note_all(self, works: Iterable[Work]) -> None:
        """Note whether workloads have a step to go, and when."""
        for work in works:
            self.note(work)

    def take_up(self, key: str) -> None:
        """Note that the step of a workload is being carried out."""
        self.forget(key)
        self.under_way.add(key)

    def forget(self, key: str) -> None:
        """Forget the step that a workload was to go: its object has changed, or the step was not possible."""
        self.under_way.discard(key)
        self._noted.pop(key, None)
        self._later.pop(key, None)

    def take(self, now: float) -> Iterator[StepDecision]:
        """Yield the steps that are due; whoever has to give quota back is going from here on."""
        noted, self._noted = self._noted, {}
        while (due := self.find_due()) is not None and due <= now:
            _, key = heapq.heappop(self._heap)
            del self._later[key]
            noted[key] = None
        for key in noted:
            work = self._works.get(key)
            step = None if work is None or key in self.under_way else self._steps.find(work, now)
            if work is None or step is None:
                continue
            if step.due > now:
                self.note(work)
                continue
            self.under_way.add(key)
            if work.where == Where.HOLDS and not isinstance(step.decision, _KEEP_QUOTA):
                work.is_going = True
            yield step.decision
