"""Pods as the state knows them: one small record each, no copy of the object."""

from __future__ import annotations

from enum import IntEnum

import msgspec

from scheduler.api.cards import Slots
from scheduler.api.pods.templates import PodTemplate
from scheduler.api.pods.volumes import PodVolumes
from scheduler.api.storage import Given
from scheduler.errors import Mistake
from scheduler.state import told_cards


class Life(IntEnum):
    """pending → assumed → bound → gone; ``forget`` leads from assumed back to pending.

    A pod that is taken from its node in a trial is away, until it is put back or the trial ends.
    """

    PENDING = 0
    ASSUMED = 1
    BOUND = 2
    AWAY = 3


class PodRecord(msgspec.Struct, gc=False, frozen=True):
    """One pod that is not finished; a change of the pod makes a new record.

    Attributes:
        node: where it is bound or assumed, empty while pending.
        template: what it asks; shared with all like pods.
        initialized: its init containers are done, and hold no cards any more that they asked.
        claim: which cards of ``node`` they hold, as far as that is allowed; empty when nobody can tell.
        profile: the one of our scheduler names that it gives, empty for pods of others.
        gated: it waits behind scheduling gates.
        deleting: it has a deletion timestamp; it still holds what it holds.
        labels: for policies; None when the pod has none.
        order: arrival, ties in priority go to the lower.
        created: creation time as the API writes it.
        problem: what a person must mend, None when nothing.
        version: the object's ``resourceVersion``; other than the rest it moves without any meaning.
        row: of the pod table, while it has a node; else -1.
        controller: API version, kind and name of what made it; None when nothing did, and once it has a node.
        nominated: the node in its ``status.nominatedNodeName``, while it has none.
        preempts: it may take the place of pods of lower priority.
        evicted: it is being deleted to make room for another.
        volumes: its storage, None for most pods.
        given: what its claims are given, as long as it is assumed.
        generation: of the object; conditions tell of which one they speak.
    """

    uid: str
    namespace: str
    name: str
    node: str
    life: Life
    template: PodTemplate
    initialized: bool
    claim: Slots
    priority: int
    profile: str
    gated: bool
    deleting: bool
    labels: dict[str, str] | None
    order: int
    created: str
    problem: Mistake | None
    version: str
    row: int
    controller: tuple[str, str, str] | None
    nominated: str = ""
    preempts: bool = True
    evicted: bool = False
    volumes: PodVolumes | None = None
    given: tuple[Given, ...] = ()
    generation: int = 0

    @property
    def asks(self) -> told_cards.Asks:
        """What the pod's containers may now hold on cards; empty for none."""
        most = self.template.most
        return told_cards.staying(most) if self.initialized else most

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def minimum(self) -> int:
        """The minimum of the entity that one pod is: itself."""
        return 1

    @property
    def members(self) -> tuple[PodRecord]:
        """The pod alone, as an entity."""
        return (self,)

    @property
    def ours(self) -> bool:
        """Whether Evenkeel is to place the pod."""
        return bool(self.profile)


def charged(pod: PodRecord) -> tuple[object, ...]:
    """Return all that decides what a pod is charged, and where."""
    return pod.node, pod.claim, pod.initialized, pod.template


def followed(pod: PodRecord) -> tuple[object, ...]:
    """Return what may change on a pod that stays where it is, and is counted by followers of charges."""
    return pod.namespace, pod.labels, pod.deleting, pod.given
