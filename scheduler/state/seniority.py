"""Which of two waiting entities comes first: the one of higher priority, then the older one.

An entity may gain priority as it waits. All entities gain alike, so that of two of them the same one comes first at all
times: a point of priority is worth a part of an hour of age.
"""

from __future__ import annotations

from scheduler.api.times import read_time
from scheduler.state.entities import AnyEntity, Entity

_SECONDS_AN_HOUR = 3600.0


class Seniority:
    """The order of waiting entities."""

    def __init__(self, points_per_hour: float = 0.0) -> None:
        """``points_per_hour``: the priority that an entity gains in each hour since it was created."""
        self._points_per_second = points_per_hour / _SECONDS_AN_HOUR

    def find_place(self, entity: AnyEntity) -> tuple[float, bool, str, int]:
        """Find the place of an entity, the lowest first.

        That is the priority with what age adds, whether it is no group below its minimum, the time of creation, the
        number of arrival. What a group below its minimum holds is of no use, so it counts as older than all others if
        it is urgent, see ``state/groups/urgency.py``.
        """
        is_short = isinstance(entity, Entity) and entity.n_short > 0 and entity.is_urgent
        urgency: float = -entity.priority
        if self._points_per_second and not is_short:
            urgency += self._points_per_second * (read_time(entity.created) or 0)
        return urgency, not is_short, entity.created, entity.order
