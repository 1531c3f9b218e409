"""What people say of a group of pods, as one value, whichever system's words they use."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

import msgspec

from scheduler.errors import Mistake


class System(StrEnum):
    """The systems in whose words groups are written."""

    KUBERNETES = "Kubernetes"
    COSCHEDULING = "Coscheduling"
    KUEUE = "Kueue"
    KAI = "KAI"
    VOLCANO = "Volcano"
    OWNER = "owner"


class GroupKey(NamedTuple):
    """The key of a group.

    Attributes:
        kind: the kind and the API group of the object that stands for the group, such as
            ``PodGroup.scheduling.k8s.io``; groups that no object stands for have a kind of their own.
        name: the name of the object. A LeaderWorkerSet stands for several groups, ``<name>/<number of the replica>``.
    """

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.partition('.')[0]} {self.namespace}/{self.name}"


class Rule(StrEnum):
    """By whose rules a domain is chosen."""

    KEEL = "keel"
    KUBERNETES = "Kubernetes"
    KUEUE = "Kueue"
    KAI = "KAI"
    KOORDINATOR = "Koordinator"


class Slice(NamedTuple):
    """Pods in a row of ranks, all of which go to one domain of a level: pods 0..size-1, then size..2*size-1, and so on."""

    level: str
    size: int


class Constraint(msgspec.Struct, frozen=True):
    """Where in a topology the pods of a part go. A level is named as its topology names it.

    Attributes:
        rule: by whose rules the domain is chosen.
        topology: name of the object with the levels; empty: the topology that has the named levels.
        required: all pods go to one domain of this level; empty: no level is required.
        also_required: other levels of which all pods share a domain.
        preferred: levels at which one domain is wished for, the most wished for first.
        spreads_freely: any nodes will do, but the fewest domains are wished for (Kueue: unconstrained).
        slices: the outermost first; each size divides the size before it.
    """

    rule: Rule
    topology: str = ""
    required: str = ""
    also_required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    spreads_freely: bool = False
    slices: tuple[Slice, ...] = ()


class Take(NamedTuple):
    """Pods that name a part, and whose ranks are from ``first`` to below ``end``."""

    part: str
    first: int
    end: int


# The name of a part for pods whose part has no other name in the group.
OTHERS = "*"


class Part(msgspec.Struct, frozen=True):
    """A part of a group: pods of its own, or parts.

    Attributes:
        name: by which pods or other parts name it; unique in its group, empty for the group as a whole, ``OTHERS`` for
            pods that name no other part.
        minimum: how many of its pods must have a node at once, or how many of its parts must be placed; at least 0.
        total: how many pods there will be; 0 if nobody says so. Of a part with parts it has no meaning.
        constraint: where its pods go; None: anywhere.
        parts: the parts within; empty for a part with pods.
        takes: which pods are in it, if not those that name it.
    """

    name: str
    minimum: int
    total: int = 0
    constraint: Constraint | None = None
    parts: tuple[Part, ...] = ()
    takes: tuple[Take, ...] = ()

    def list_leaves(self) -> Iterator[Part]:
        """Yield the parts that have pods, in order."""
        if not self.parts:
            yield self
        for one in self.parts:
            yield from one.list_leaves()


class Disruption(StrEnum):
    """How pods of a running group may be evicted to make room for others."""

    SINGLE = "each pod by itself"
    EXTRAS = "pods beyond the minimum by themselves, then the whole group"
    WHOLE = "the whole group at once"


class Match(StrEnum):
    """Which members count towards the minimum (Koordinator's match policies)."""

    ONCE = "once-satisfied"
    WAITING = "only-waiting"
    WAITING_AND_RUNNING = "waiting-and-running"


class Progress(NamedTuple):
    """How far a part of a group has come.

    Attributes:
        part: the name of the part.
        spare: so many of its pods may succeed before one that does counts towards the minimum: others follow them, or the
            minimum is only what is left.
        succeeded: so many have succeeded, as the owner counts.
    """

    part: str
    spare: int
    succeeded: int


class GroupClaim(NamedTuple):
    """A ResourceClaim that all pods of a group have together which have an equal entry.

    Attributes:
        entry: the name of the entry.
        name: the name of the claim; empty for one that is made from a template.
        template: the ResourceClaimTemplate; empty for a claim that is named.
    """

    entry: str
    name: str
    template: str


class Definition(msgspec.Struct, frozen=True):
    """What an object, or the pods themselves, say of one group.

    Attributes:
        key: the key of the group.
        root: the group as a whole; with parts, or with the pods themselves.
        created: the creation time of its object as the API writes it; empty for a group without an object.
        uid: the uid of its object; empty for a group without one.
        generation: the generation of its object.
        is_gang: less than the minimum may not run. Else any pod that fits runs (Kubernetes: basic).
        by_role: unlike pods are parts of their own, each with its own constraint (Kueue: pod sets).
        priority: the priority of the group; None: the priority of its pods.
        preempts: whether it may take the place of others; None: as its pods say.
        disruption: how its pods may be evicted.
        parent: the group of which this group is a part; None for none.
        together: groups that are placed with it, or none of them is; itself among them. Empty for none.
        match: which members count towards the minimum.
        stays_placed: once placed, its pods come again one by one, even if those that ran with them have all succeeded.
        grace_seconds: a running group that is below its minimum for longer is evicted; None: never.
        run_seconds: after so many seconds it will have ended; None: nobody says so.
        restarts: a running group that is below its minimum, and of which the missing pods fit nowhere, is evicted whole;
            None: this object, or these pods, do not say.
        progress: of parts whose owner counts what has succeeded, or makes pods after those that have.
        queue: the name of KAI's queue in which it is; empty: its pods say so.
        queue_priority: its priority among all that is in its queue, whatever priority its pods have elsewhere; None: its
            pods say so.
        is_preemptible: whether it may lose its place to others by the rules of KAI's queues; None: its pods say so.
        claims: ResourceClaims that are reserved for the group, and not for its pods.
        problem: what a person must mend before the group can be placed.
    """

    key: GroupKey
    root: Part
    created: str = ""
    uid: str = ""
    generation: int = 0
    is_gang: bool = True
    by_role: bool = False
    priority: int | None = None
    preempts: bool | None = None
    disruption: Disruption = Disruption.EXTRAS
    parent: GroupKey | None = None
    together: tuple[GroupKey, ...] = ()
    match: Match = Match.ONCE
    stays_placed: bool = False
    grace_seconds: float | None = None
    run_seconds: float | None = None
    restarts: bool | None = None
    progress: tuple[Progress, ...] = ()
    queue: str = ""
    queue_priority: int | None = None
    is_preemptible: bool | None = None
    claims: tuple[GroupClaim, ...] = ()
    problem: Mistake | None = None


class Membership(msgspec.Struct, frozen=True):
    """What a pod says of the group that it is in.

    Attributes:
        group: the key of its group.
        part: the name of the part of the group; empty: the group has one part.
        index: its rank in the part; -1 if it has none.
        order: members with a lower number are placed first; then come rank and age.
        definition: what the pod itself says of the whole group; None: an object says it.
        constraint: where the pod says that the pods of its part go; an object's constraint comes first.
        company: pods with this word belong near each other, whatever group they are in; empty for none.
        scheduler: the name of the scheduler that is to place the pod.
        owner: the group of its owner if it names another group itself; None for a pod without such an owner.
        restarts: what it says of ``Definition.restarts``, if neither the object of the group nor an owner says anything.
        problem: what a person must mend before the pod can be placed.
    """

    group: GroupKey
    part: str = ""
    index: int = -1
    order: int = 0
    definition: Definition | None = None
    constraint: Constraint | None = None
    company: str = ""
    scheduler: str = ""
    owner: GroupKey | None = None
    restarts: bool | None = None
    problem: Mistake | None = None


class Level(NamedTuple):
    """A level of a topology: nodes with equal values of the label, and of the labels of the levels above, are a domain."""

    name: str
    label: str


class Topology(msgspec.Struct, frozen=True):
    """Levels of domains that lie within each other, the widest first.

    Attributes:
        rule: whose object it is.
        name: the name of the object; empty for the topology of the configuration.
        levels: the widest level first.
    """

    rule: Rule
    name: str
    levels: tuple[Level, ...]
