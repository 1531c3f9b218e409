"""Entities: a pod, or several pods of which either enough are placed at once or none."""

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
    """Several pods about which one decision is made. A single pod is an entity by itself, and needs no such value.

    Attributes:
        uid: its own, which no pod has.
        members: its pods without a node and those whose bind is under way, in the order in which they are placed.
        minimum: how many of them must have a node at once.
        domain: the nodes to which all of them go; None: any nodes.
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
        """The creation time of its first member."""
        return self.members[0].created

    @property
    def order(self) -> int:
        """The arrival number of its first member."""
        return self.members[0].order

    @property
    def gated(self) -> bool:
        """Whether a member waits behind scheduling gates."""
        return any(pod.gated for pod in self.members)

    def update_member(self, pod: PodRecord) -> Entity:
        """Return the same entity with the newest record of a member."""
        members = tuple(pod if one.uid == pod.uid else one for one in self.members)
        return msgspec.structs.replace(self, members=members)

    def remove_member(self, uid: str, *, is_bound: bool) -> Entity:
        """Return what is left without a member that has a node or is gone; another member must be left."""
        members = tuple(one for one in self.members if one.uid != uid)
        minimum = max(1, self.minimum - is_bound)
        return msgspec.structs.replace(self, members=members, minimum=minimum)


# A pod is an entity of one member, and has the fields that an order reads.
AnyEntity = PodRecord | Entity


def count_pods(entities: Iterable[AnyEntity]) -> int:
    """Count the pods of entities."""
    # Nearly all entities are single pods.
    return sum([len(one.members) if isinstance(one, Entity) else 1 for one in entities])
