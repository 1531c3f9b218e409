"""The decisions of the cycle, which are carried out elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

import msgspec

from scheduler.api.cards import Grants
from scheduler.api.claims.answers import Allotment, ClaimKey
from scheduler.api.door.notes import Note
from scheduler.api.door.workload_decisions import QuotaDecision
from scheduler.api.groups.definitions import GroupKey
from scheduler.api.storage import Given
from scheduler.errors import Mistake


@dataclass(frozen=True, slots=True)
class Bind:
    """Bind a pod to a node.

    Attributes:
        devices: the devices that it gets one by one, of each driver.
        given: what its volume claims get before the bind, in their order; nothing for claims that are bound already.
        allotted: its ResourceClaims, with the devices of those that get them with this decision.
    """

    uid: str
    node: str
    devices: Grants = ()
    given: tuple[Given, ...] = ()
    allotted: tuple[Allotment, ...] = ()


class Detail(NamedTuple):
    """The details of a reason, as a sentence with the figures that matter.

    Attributes:
        about: the subject of the sentence; it stays the same while only figures and names in the sentence change.
        text: the sentence, without its full stop.
    """

    about: str
    text: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a shape fits nowhere: how many nodes gave which reason.

    Attributes:
        n_nodes: the number of nodes that were looked at.
        reasons: (reason text, nodes) pairs.
        unresolvable: the number of nodes on which no eviction would help.
        details: details of the reasons, the most telling first.
        rules: names of the rules that refuse a node.
        of_pod: the reason for which all nodes are refused because of the pod's own spec; empty for none.
    """

    n_nodes: int
    reasons: tuple[tuple[str, int], ...]
    unresolvable: int = 0
    details: tuple[Detail, ...] = ()
    rules: tuple[str, ...] = ()
    of_pod: str = ""


class Barriers(NamedTuple):
    """What keeps pods off nodes: for every node the rule that refuses it first.

    Attributes:
        reasons: bits of the table's reasons.
        short: bits of the resources that are short, the pod itself first.
    """

    reasons: int = 0
    short: int = 0

    def merge(self, other: Barriers) -> Barriers:
        """Return these barriers and others."""
        return Barriers(self.reasons | other.reasons, self.short | other.short)


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of the search for pods whose place a pod could take.

    Attributes:
        node: the node that has room if so many ``victims`` go; empty for none.
        diagnosis: why no node has room even if other pods go.
        why: why it was not even searched.
        frees: whether a claim of the pod loses its devices, whatever else was found.
    """

    node: str = ""
    victims: int = 0
    diagnosis: Diagnosis | None = None
    why: str = ""
    frees: bool = False


class Why(StrEnum):
    """Why pods are sent away."""

    PREEMPTED = "preempted"
    BELOW_MINIMUM = "below its minimum"


@dataclass(frozen=True, slots=True)
class Evict:
    """Send units away from a node: each of them goes as a whole.

    Attributes:
        makes_room_for: uid of the pod that needs the room, and is nominated to the node; empty for none.
        units: uids of the pods of each unit, the most important unit first.
        group: the uid of the object of the group that needs the room, or its name if it has no object; empty for a pod.
            Of a group that is sent away itself: what it is called, and how many pods it lacks.
        is_asked: the API server is asked to evict them, and refuses what a disruption budget forbids; else they are
            deleted.
    """

    makes_room_for: str
    node: str
    units: tuple[tuple[str, ...], ...]
    why: Why
    group: str = ""
    is_asked: bool = False

    @property
    def victims(self) -> tuple[str, ...]:
        """Uids of all pods that go, the most important first."""
        return tuple(uid for unit in self.units for uid in unit)


@dataclass(frozen=True, slots=True)
class Nominate:
    """Nominate a pod to a node; an empty node ends its nomination."""

    uid: str
    node: str


@dataclass(frozen=True, slots=True)
class Free:
    """Take the devices from a claim, which nobody may use but a pod that they keep off all nodes.

    Attributes:
        version: the ``resourceVersion`` at which this was decided.
        deletes: the claim goes itself: it was made for extended resources in a bind that came to nothing.
    """

    key: ClaimKey
    uid: str
    version: str
    deletes: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """Leave a pod pending.

    Attributes:
        diagnosis: why it stays pending, if that is wanted.
        problem: what a person must mend, if that is the cause.
        attempt: the result of the search for pods whose place it could take; None if it was not tried.
        barriers: what keeps it off nodes, for the queue.
        said: words that say it all, such as kube-scheduler's; empty if the rest says it.
    """

    uid: str
    diagnosis: Diagnosis | None = None
    problem: Mistake | None = None
    attempt: Attempt | None = None
    barriers: Barriers = field(default=Barriers(), compare=False)
    said: str = ""

    def copy_for(self, uid: str) -> Hold:
        """Return the same decision for another pod of the same kind."""
        return replace(self, uid=uid)


class LeafResult(NamedTuple):
    """The result for one Kubernetes PodGroup, in kube-scheduler's words.

    Attributes:
        name: the name of the PodGroup.
        status: why it is not placed; empty if it is.
        fitting: uids of the members that fit by themselves, and wait for the others.
        n_sharing: how many groups of the tree share the status: each adds what preemption came to.
        is_error: it was not even tried, as something is wrong.
    """

    name: str
    status: str
    fitting: tuple[str, ...] = ()
    n_sharing: int = 1
    is_error: bool = False


class GroupResult(msgspec.Struct, frozen=True, gc=False):
    """The result of trying to place a group.

    Attributes:
        group: the key of the group.
        waiting: uids of the members that were to be placed.
        least: how many of these had to have a node at once.
        n_placed: how many of these have a node; if the group is not placed: how many had one in the attempt that came
            closest.
        domain: the domain of that attempt: the label of its level and its values from the widest level on; empty for
            no domain.
        n_domains: how many domains the level has; 0 for no domain.
        n_short: of a group with pods on nodes, how many it lacks there until it has its minimum; else 0.
        members: why each member waits, if each is told in kube-scheduler's words.
        status: kube-scheduler's words about the group; empty if it is placed, or speaks in Evenkeel's words.
        leaves: the result for each PodGroup with waiting members, if it is told in kube-scheduler's words.
    """

    group: GroupKey
    waiting: tuple[str, ...]
    least: int
    n_placed: int
    domain: tuple[str, tuple[str, ...]] = ("", ())
    n_domains: int = 0
    n_short: int = 0
    members: tuple[Hold, ...] = ()
    status: str = ""
    leaves: tuple[LeafResult, ...] = ()


class Plan(msgspec.Struct, frozen=True, gc=False):
    """A decision for one entity, which stands or falls as a whole.

    Attributes:
        entity: uid of the entity: for a single pod, the uid of the pod.
        binds: pods of it to bind.
        evicts: pods to send away for it.
        nominates: pods whose nomination changes with the decision.
        frees: claims that lose their devices for it.
        hold: the pod of the entity that stays pending after it was tried; None when no pod does.
        group: the result for the group; None for a single pod.
    """

    entity: str
    binds: tuple[Bind, ...] = ()
    evicts: tuple[Evict, ...] = ()
    nominates: tuple[Nominate, ...] = ()
    hold: Hold | None = None
    group: GroupResult | None = None
    frees: tuple[Free, ...] = ()


@dataclass(slots=True)
class Outcome:
    """The result of one call; each list is in the order in which it was made.

    Attributes:
        plans: the decisions.
        explained: pods that still wait, and why they wait now.
        left: entities that were not looked at, because the others took long; the shell never sees any.
        notes: everything else that is reported.
        quotas: decisions about workloads in queues.
    """

    plans: list[Plan] = field(default_factory=list)
    quotas: list[QuotaDecision] = field(default_factory=list)
    explained: list[Hold] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def binds(self) -> list[Bind]:
        """Pods to bind, gathered from all plans; read it once, because it is gathered anew each time."""
        return [bind for plan in self.plans for bind in plan.binds]

    @property
    def holds(self) -> list[Hold]:
        """Pods that were tried and stay pending, gathered from all plans."""
        return [plan.hold for plan in self.plans if plan.hold is not None]

    @property
    def evicts(self) -> list[Evict]:
        """Pods to send away, and the pods that need the room, gathered from all plans."""
        return [evict for plan in self.plans for evict in plan.evicts]

    @property
    def frees(self) -> list[Free]:
        """Claims that lose their devices, gathered from all plans."""
        return [free for plan in self.plans for free in plan.frees]

    @property
    def nominates(self) -> list[Nominate]:
        """Pods whose nomination has changed, gathered from all plans."""
        return [nominate for plan in self.plans for nominate in plan.nominates]
