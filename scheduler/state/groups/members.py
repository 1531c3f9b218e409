"""A pod as a member of its group."""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api.groups.definitions import Membership
from scheduler.state.pods import Life, PodRecord

_LAST = 2**62


class Member(NamedTuple):
    """A pod of a group.

    Attributes:
        says: what it says of the group.
        is_bound: its bind has been made.
        is_leaving: it is being evicted.
    """

    pod: PodRecord
    says: Membership
    is_bound: bool
    is_leaving: bool = False

    @property
    def is_there(self) -> bool:
        """Whether it has a node for good, and stays."""
        return self.is_bound and not self.pod.deleting

    @property
    def is_on_node(self) -> bool:
        """Whether it has a node, if only until its bind fails, and stays."""
        return self.is_there or (self.pod.life == Life.ASSUMED and not self.pod.deleting)

    @property
    def is_kept(self) -> bool:
        """Whether it is there and nobody sends it away, so that others may join it."""
        return self.is_there and not self.is_leaving

    @property
    def waits(self) -> bool:
        """Whether it waits for a node, or for the end of its bind."""
        return not self.is_bound and not self.pod.deleting and self.pod.life != Life.AWAY


def find_place(member: Member) -> tuple[object, ...]:
    """Return the place of a pod among the pods of its team: by its own order, rank, priority and age."""
    pod, says = member.pod, member.says
    rank = says.index if says.index >= 0 else _LAST
    return says.order, rank, -pod.priority, pod.created, pod.order
