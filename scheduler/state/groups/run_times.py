"""For how long the pods of groups run, by what the groups say."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.api.groups.definitions import GroupKey
from scheduler.state.groups.forming import DEPTH_MAX, Lore


def find_run_seconds(groups: Iterable[GroupKey | None], lore: Lore) -> float | None:
    """Find the shortest time that some groups, or the groups around them, say that they run; None: nobody says."""
    said: list[float] = []
    for first in groups:
        key = first
        for _ in range(DEPTH_MAX):
            definition = lore.find_definition(key) if key is not None else None
            if definition is None:
                break
            if definition.run_seconds is not None:
                said.append(definition.run_seconds)
            key = definition.parent
    return min(said, default=None)
