"""An entity in the queue, and the part of the queue that it is in."""

from __future__ import annotations

from collections.abc import Hashable
from enum import StrEnum

import msgspec

from scheduler.api.door.decisions import GroupResult, Hold
from scheduler.state.entities import AnyEntity, Entity, Team
from scheduler.state.pods import Life, PodRecord
from scheduler.waiting.admissions import Held


class Where(StrEnum):
    """Which part of the queue an entity is in; kube-scheduler's names, used as metric labels."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"


class Came(StrEnum):
    """Why an entity came to a part of the queue; kube-scheduler's names of events where it has them."""

    POD_ADDED = "UnschedulablePodAdd"
    POD_CHANGED = "UnschedulablePodUpdate"
    FAILED = "ScheduleAttemptFailure"
    BACKOFF_OVER = "BackoffComplete"
    WAITED_LONG = "UnschedulableTimeout"
    CLUSTER_CHANGED = "ClusterChange"
    STEERING_CHANGED = "PolicyChange"


class Entry(msgspec.Struct):
    """One waiting entity.

    Attributes:
        uid: the uid of the entity.
        pod: the pod that stands for the entity: of several pods the one that fitted nowhere.
        ticket: a new number with every move; an item of a heap that has an older ticket is stale.
        attempts: how often the entity was tried.
        failed_at: when the entity was last tried in vain, in seconds.
        since: when the entity was active for the first time, in seconds; None before.
        active_at: when the entity became active last, in seconds.
        waited: for how long the entity was then active before it was tried, in seconds.
        kind: while the entity is parked, the kind of its pod: what decides whether the pod fits; else None.
        result: the result for a group that was tried in vain last; None for a single pod.
        why: why the pod that stands for the entity found no node; None before it was tried.
        held: while the entity is gated, why it may not be tried; else None.
    """

    uid: str
    entity: AnyEntity
    pod: PodRecord
    where: Where
    ticket: int
    attempts: int = 0
    failed_at: float = 0.0
    since: float | None = None
    active_at: float = 0.0
    waited: float = 0.0
    kind: Hashable = None
    result: GroupResult | None = None
    why: Hold | None = None
    held: Held | None = None

    def stand_for(self, entity: AnyEntity) -> None:
        """Take over a newer state of the entity."""
        self.entity = entity
        by_uid = {pod.uid: pod for pod in entity.members}
        self.pod = by_uid.get(self.pod.uid, entity.members[0])


def is_alike(a: AnyEntity, b: AnyEntity) -> bool:
    """Whether two states of an entity differ in nothing that could decide where its pods fit, or when."""
    if isinstance(a, PodRecord) and isinstance(b, PodRecord):
        return _read_deciding(a) == _read_deciding(b)
    if not (isinstance(a, Entity) and isinstance(b, Entity)):
        return False
    same = (a.definition, a.lacks, a.problem) == (b.definition, b.lacks, b.problem)
    return same and _is_alike_team(a.team, b.team)


def _read_deciding(pod: PodRecord) -> tuple[object, ...]:
    """Return all that could decide where a pod fits, or when."""
    of_claims = pod.claims, pod.names_claim
    return pod.template, pod.priority, pod.gated, pod.labels, pod.problem, *of_claims


def _is_alike_team(old: Team, new: Team) -> bool:
    """Whether a team has changed in nothing but that some of its pods have got a node meanwhile."""
    if (old.minimum, old.where, len(old.teams)) != (new.minimum, new.where, len(new.teams)):
        return False
    left = {pod.uid: pod for pod in old.pods}
    for pod in new.pods:
        before = left.pop(pod.uid, None)
        if pod.life == Life.PENDING and (
            before is None or before.life != Life.PENDING or not is_alike(before, pod)
        ):
            return False
    there = {pod.uid for pod in new.there}
    stays = there.issuperset(left) and there.issuperset(pod.uid for pod in old.there)
    return stays and all(map(_is_alike_team, old.teams, new.teams))
