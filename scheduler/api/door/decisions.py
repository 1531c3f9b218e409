"""What the cycle decides; carried out elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

import msgspec

from scheduler.api.cards import Slots
from scheduler.api.door.notes import Note
from scheduler.api.storage import Given
from scheduler.errors import Mistake


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind a pod to a node.

    Attributes:
        slots: its cards, on nodes whose cards are allocated one by one.
        driver: the name of the driver whose cards they are; empty when there are none.
        given: what its claims are to be given before, in their order; of claims that are bound nothing.
    """

    uid: str
    node: str
    slots: Slots = ()
    driver: str = ""
    given: tuple[Given, ...] = ()


class Detail(NamedTuple):
    """What is behind a reason, as a sentence with the figures that matter.

    Attributes:
        about: what the sentence is about; the same as long as only figures and names in it change.
        text: the sentence, without its full stop.
    """

    about: str
    text: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a shape fits nowhere: how many nodes gave which reason.

    Attributes:
        n_nodes: nodes looked at.
        reasons: (reason text, nodes) pairs.
        unresolvable: nodes where no eviction would help.
        details: what is behind the reasons, the most telling first.
        rules: names of the rules that refuse any node.
        of_pod: what refuses all nodes alike for what the pod says by itself; empty for nothing.
    """

    n_nodes: int
    reasons: tuple[tuple[str, int], ...]
    unresolvable: int = 0
    details: tuple[Detail, ...] = ()
    rules: tuple[str, ...] = ()
    of_pod: str = ""


class Barriers(NamedTuple):
    """What keeps pods off nodes: of every node the rule that refuses it first.

    Attributes:
        reasons: bits of the table's reasons.
        short: bits of what they ask, the pod itself first, then their resources.
    """

    reasons: int = 0
    short: int = 0

    def also(self, other: Barriers) -> Barriers:
        """These and others."""
        return Barriers(self.reasons | other.reasons, self.short | other.short)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of looking whose place a pod could take.

    Attributes:
        node: where it can, if so many ``victims`` go; empty when nowhere.
        diagnosis: why nobody's going would help.
        why: why it was not even looked for.
    """

    node: str = ""
    victims: int = 0
    diagnosis: Diagnosis | None = None
    why: str = ""


class Why(StrEnum):
    """Why pods are sent away."""

    PREEMPTED = "preempted"


@dataclass(frozen=True, slots=True)
class Evict:
    """Send units away from a node: each of them goes as a whole.

    Attributes:
        makes_room_for: uid of the pod that needs the room, and is nominated to the node; empty for nobody.
        units: uids of the pods of each unit, the most important unit first.
    """

    makes_room_for: str
    node: str
    units: tuple[tuple[str, ...], ...]
    why: Why

    @property
    def victims(self) -> tuple[str, ...]:
        """Uids of all pods that go, the most important first."""
        return tuple(uid for unit in self.units for uid in unit)


@dataclass(frozen=True, slots=True)
class Nominate:
    """A pod is nominated to a node; to none any more when that is empty."""

    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class Hold:
    """Leave a pod pending.

    Attributes:
        diagnosis: why, where somebody asks.
        problem: what a person must mend, where that is the cause.
        attempt: what came of looking whose place it could take; None where it was not tried.
        barriers: what keeps it off nodes, for the queue.
    """

    uid: str
    diagnosis: Diagnosis | None = None
    problem: Mistake | None = None
    attempt: Attempt | None = None
    barriers: Barriers = field(default=Barriers(), compare=False)

    def copy_for(self, uid: str) -> Hold:
        """The same decision for another pod of its kind."""
        return replace(self, uid=uid)


class Plan(msgspec.Struct, frozen=True, gc=False):
    """A decision for one entity, which stands or falls as a whole.

    Attributes:
        entity: uid of the entity that it is for: that of a pod, if it is one pod.
        binds: pods of it to bind.
        evicts: pods to send away for it.
        nominates: pods whose nomination is another for that.
        hold: it was tried, and this pod of it stays pending; None when no pod does.
    """

    entity: str
    binds: tuple[Bind, ...] = ()
    evicts: tuple[Evict, ...] = ()
    nominates: tuple[Nominate, ...] = ()
    hold: Hold | None = None


@dataclass(slots=True)
class Outcome:
    """What came of one call, each list in the order it was made.

    Attributes:
        plans: what was decided.
        explained: pods that wait on, and why by now.
        left: entities that were not looked at any more, as the others took long; the shell never sees any.
        notes: what else there is to say.
    """

    plans: list[Plan] = field(default_factory=list)
    explained: list[Hold] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def binds(self) -> list[Bind]:
        """Of all plans, pods to bind; to be asked once, as it is gathered anew each time."""
        return [bind for plan in self.plans for bind in plan.binds]

    @property
    def holds(self) -> list[Hold]:
        """Pods that were tried and stay pending, gathered from all plans."""
        return [plan.hold for plan in self.plans if plan.hold is not None]

    @property
    def evicts(self) -> list[Evict]:
        """Pods to send away, and for whom, gathered from all plans."""
        return [evict for plan in self.plans for evict in plan.evicts]

    @property
    def nominates(self) -> list[Nominate]:
        """Pods whose nomination has changed, gathered from all plans."""
        return [nominate for plan in self.plans for nominate in plan.nominates]
