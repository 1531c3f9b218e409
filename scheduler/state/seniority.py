"""Which of two waiting entities comes first: the one of higher priority, then the older one.

An entity may gain priority as it waits. All entities gain alike, so that of two of them the same one comes first at all
times: a point of priority is worth a part of an hour of age.
"""

from __future__ import annotations

from typing import Protocol

from scheduler.api.times import read_time

_SECONDS_AN_HOUR = 3600.0


class Waiting(Protocol):
    """What the order of the queue reads of a pod or a group."""

    @property
    def priority(self) -> int: ...  # noqa: D102
    @property
    def created(self) -> str: ...  # noqa: D102
    @property
    def order(self) -> int: ...  # noqa: D102


class Seniority:
    """The order of waiting entities."""

    def __init__(self, points_per_hour: float = 0.0) -> None:
        """``points_per_hour``: the priority that an entity gains in each hour since it was created."""
        self._points_per_second = points_per_hour / _SECONDS_AN_HOUR

    def find_place(self, entity: Waiting) -> tuple[float, str, int]:
        """Find the place of an entity, the lowest first: by priority and age, time of creation, number of arrival."""
        urgency: float = -entity.priority
        if self._points_per_second and (at := read_time(entity.created)) is not None:
            urgency += self._points_per_second * at
        return urgency, entity.created, entity.order
