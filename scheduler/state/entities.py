"""What is decided about as one: a pod, or several pods of which enough are placed at once or none is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from scheduler.state.pods import PodRecord


class Domain(NamedTuple):
    """The nodes with a value of a label."""

    label: str
    value: str


class Entity(msgspec.Struct, frozen=True):
    """Several pods that are decided about as one. A pod is an entity by itself, and needs no such value.

    Attributes:
        uid: its own, which no pod has.
        members: its pods without a node and those whose bind is under way, in the order in which they are to be placed.
        minimum: how many of them must have a node at once.
        domain: where all of them go; None: anywhere.
    """

    uid: str
    members: tuple[PodRecord, ...]
    minimum: int
    domain: Domain | None = None

    @property
    def namespace(self) -> str:
        """The namespace of all members."""
        return self.members[0].namespace

    @property
    def priority(self) -> int:
        """The priority of all members."""
        return self.members[0].priority

    @property
    def created(self) -> str:
        """Since when its first member waits."""
        return self.members[0].created

    @property
    def order(self) -> int:
        """The arrival number of its first member."""
        return self.members[0].order

    @property
    def gated(self) -> bool:
        """Whether a member waits behind scheduling gates."""
        return any(pod.gated for pod in self.members)

    def with_member(self, pod: PodRecord) -> Entity:
        """The same, with what is known of a member by now."""
        members = tuple(pod if one.uid == pod.uid else one for one in self.members)
        return msgspec.structs.replace(self, members=members)

    def without(self, uid: str, *, is_bound: bool) -> Entity:
        """What is left of it without a member, who has a node or is gone; at least one more is needed."""
        members = tuple(one for one in self.members if one.uid != uid)
        minimum = max(1, self.minimum - is_bound)
        return msgspec.structs.replace(self, members=members, minimum=minimum)


# A pod is one of one, with the same fields that an order reads.
AnyEntity = PodRecord | Entity


def count_pods(entities: Iterable[AnyEntity]) -> int:
    """How many pods there are in entities."""
    # Nearly all are one pod, whose members nobody has to count.
    return sum([len(one.members) if isinstance(one, Entity) else 1 for one in entities])
