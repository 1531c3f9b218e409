"""What a cycle over a tree of queues needs to know beside the tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from scheduler.api.queues.definitions import QueueDefinition
from scheduler.tenancy.assignments import Assignment
from scheduler.tenancy.candidates import Rules
from scheduler.tenancy.flavors import FlavorBook
from scheduler.tenancy.lines import Line
from scheduler.tenancy.places import Places
from scheduler.tenancy.promise_book import PromiseBook
from scheduler.tenancy.readiness import Readiness
from scheduler.tenancy.works import Work


class Ground(Protocol):
    """What a cycle needs to know beside the tree."""

    @property
    def now(self) -> float: ...  # noqa: D102 - the time, in seconds since 1970
    @property
    def book(self) -> FlavorBook: ...  # noqa: D102 - the flavors
    @property
    def works(self) -> Mapping[str, Work]: ...  # noqa: D102 - all workloads, by key
    @property
    def lines(self) -> Mapping[str, Line]: ...  # noqa: D102 - those who wait in each queue
    @property
    def rules(self) -> Rules: ...  # noqa: D102 - how queues take quota back from each other
    @property
    def places(self) -> Places: ...  # noqa: D102 - who finds places for workloads
    @property
    def promise_book(self) -> PromiseBook: ...  # noqa: D102 - who may be promised quota
    @property
    def readiness(self) -> Readiness: ...  # noqa: D102 - whether others have to wait until pods are ready
    @property
    def pause(self) -> Callable[[], None]: ...  # noqa: D102 - a long cycle may pause here

    def find_queue(self, name: str) -> QueueDefinition: ...  # noqa: D102
    def admit(self, work: Work, assignment: Assignment) -> None: ...  # noqa: D102 - hold quota
