"""The pods of groups: which of them wait, and which have a node and count."""

from __future__ import annotations

from collections.abc import Sequence
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
        return self.is_there or self.is_binding

    @property
    def is_kept(self) -> bool:
        """Whether it is there and nobody sends it away, so that others may join it."""
        return self.is_there and not self.is_leaving

    @property
    def waits(self) -> bool:
        """Whether it waits for a node, or for the end of its bind."""
        return not self.is_bound and not self.pod.deleting and self.pod.life != Life.AWAY

    @property
    def is_binding(self) -> bool:
        """Whether its bind is under way."""
        return self.waits and self.pod.life == Life.ASSUMED


def find_place(member: Member) -> tuple[object, ...]:
    """Return the place of a pod among the pods of its team: by its own order, rank, priority and age."""
    pod, says = member.pod, member.says
    rank = says.index if says.index >= 0 else _LAST
    return says.order, rank, -pod.priority, pod.created, pod.order


def find_minimum_of_new(members: Sequence[Member], minimum: int, *, was_cut: bool) -> int:
    """Find how many pods of a part must have a node at once, where only pods that wait count, and not those that run.

    A pod whose bind is under way has a node: it counts no more than when its bind has been made.

    Args:
        members: the pods of the part.
        minimum: how many of them have to wait.
        was_cut: the scheduler has bound some of the pods that waited together, and failed to bind others. These belong
            to the ones that run.
    """
    if not any(one.waits and not one.is_binding for one in members):
        return 0
    n_on_nodes = sum(one.is_kept or one.is_binding for one in members)
    return minimum if was_cut and 0 < n_on_nodes < minimum else minimum + n_on_nodes
