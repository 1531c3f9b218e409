"""Who waits for something other than quota: for a time, or for a place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager

from scheduler.api.queues.words import EVALUATED_LATER, GATED
from scheduler.tenancy.places import Places
from scheduler.tenancy.works import Where, Work

_OPEN = "AdmissionGatedBy cleared, waiting for quota reservation"


class Unplaced:
    """Those who wait for a time or for a place.

    Attributes:
        later: workloads that may not be tried before a time.
        lacking: queues in which somebody waits for a place.
        somewhere: workloads with quota whose pods may have no places yet.
        aside: workloads that have just been put aside, as something has to be mended or changed first, or have come back.
    """

    def __init__(self, works: Mapping[str, Work]) -> None:
        self._works = works
        self.later: set[str] = set()
        self.lacking: dict[str, None] = {}
        self.somewhere: dict[str, None] = {}
        self.aside: dict[str, None] = {}

    @property
    def wants_places(self) -> bool:
        """Whether anybody waits for a place."""
        return bool(self.lacking or self.somewhere)

    def find_due(self) -> float | None:
        """Find when the next workload may be tried that has to wait; None if none has to."""
        times = (self._works[key].defined.not_before for key in self.later)
        return min((at for at in times if at is not None), default=None)

    def list_over(self, now: float) -> list[str]:
        """List the workloads that may be tried by now."""
        return [
            key
            for key in self.later
            if (at := self._works[key].defined.not_before) is not None and at <= now
        ]

    def note_aside(self, work: Work, now: float) -> None:
        """Note a workload that was put aside.

        One that waits for a time is among ``later``. It is not among ``aside``, nor is one that has ended or was stopped itself.
        """
        if work.reason and work.defined.is_active and work.reason != EVALUATED_LATER:
            self.aside[work.key] = None
        not_before = work.defined.not_before
        if not_before is not None and not_before > now:
            self.later.add(work.key)

    def note_back(self, work: Work) -> tuple[str, str]:
        """Return the reason and the message with which a workload that was aside waits from here on.

        Its object said that others had to agree, so it says that they have.
        """
        if work.reason != GATED:
            return "", ""
        self.aside[work.key] = None
        return EVALUATED_LATER, _OPEN

    def take_aside(self) -> Iterator[Work]:
        """Yield the workloads that have been put aside, and still are; and those that have come back and were not tried."""
        aside, self.aside = self.aside, {}
        for key in aside:
            work = self._works.get(key)
            if work is None or not work.reason:
                continue
            is_back = work.where == Where.WAITS and work.reason == EVALUATED_LATER
            if work.where == Where.ASIDE or is_back:
                yield work

    def take_lacking(self) -> list[str]:
        """Return the queues in which somebody waits for a place, and forget them: they are tried again."""
        lacking, self.lacking = list(self.lacking), {}
        return lacking

    def restore_places(self, places: Places) -> None:
        """Take places for the pods of those who have had quota before, as far as there are any."""
        for key in list(self.somewhere):
            work = self._find_holder(key, places)
            if work is None or places.restore(work):
                del self.somewhere[key]

    def suppose_restored(self, places: Places) -> AbstractContextManager[None]:
        """Have the places taken that ``restore_places`` would take, as long as it lasts."""
        found = (self._find_holder(key, places) for key in self.somewhere)
        return places.suppose_restored([work for work in found if work is not None])

    def _find_holder(self, key: str, places: Places) -> Work | None:
        """Find a workload that has quota, keeps it, and needs a place; None if it does not."""
        work = self._works.get(key)
        is_over = work is None or work.where != Where.HOLDS or work.is_going
        return None if work is None or is_over or not places.needs_place(work) else work
