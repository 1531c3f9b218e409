"""Running groups that have fewer pods on nodes than their minimum."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.api.groups.definitions import Definition, GroupKey
from scheduler.state.entities import Entity
from scheduler.state.groups.forming import Former
from scheduler.state.groups.urgency import Urgency
from scheduler.state.pods import Life


class Shortages:
    """The groups that are below their minimum.

    Attributes:
        below: these groups, each with how many pods it lacks.
        restarting: those of them that are to start anew as a whole if they cannot go on.
        urgency: which of them come before others.
    """

    def __init__(self, tell_time: Callable[[], float]) -> None:
        """``tell_time`` returns the present time, in seconds."""
        self.below: dict[GroupKey, int] = {}
        self.restarting: set[GroupKey] = set()
        self.urgency = Urgency(tell_time)

    def note_group(
        self, root: GroupKey, entity: Entity | None, former: Former, *, is_root: bool
    ) -> None:
        """Note how many pods a running root group lacks until it has its minimum; ``entity`` are those that wait."""
        n_below, is_binding = 0, False
        if entity is not None:
            n_below = entity.team.count_below() if entity.n_short else 0
            n_there = sum(len(leaf.there) for leaf in entity.team.list_leaves())
            is_binding = any(pod.life == Life.ASSUMED for pod in entity.members)
        else:
            n_there = len(former.members)
        if n_below or (entity is None and is_root):
            n_below = former.count_below()
        self.urgency.note_size(root, n_below, n_there, is_binding=is_binding)
        self.below.pop(root, None)
        self.restarting.discard(root)
        if n_below:
            self.below[root] = n_below
            if former.is_to_restart():
                self.restarting.add(root)

    def goes_when_short(self, key: GroupKey, definition: Definition | None) -> bool:
        """Whether a root group goes as a whole if it stays below its minimum."""
        if definition is None:
            return False
        return definition.grace_seconds is not None or key in self.restarting

    def comes_first(self, root: GroupKey) -> bool:
        """Whether a group is below its minimum and urgent: what it holds is of no use until it is whole again."""
        return root in self.below and self.urgency.is_urgent(root)
