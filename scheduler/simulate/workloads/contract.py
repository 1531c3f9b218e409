"""The input and the result of all makers of pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from scheduler.api import steering, values, wire
from scheduler.api.groups.objects import GroupObject, TopologyObject
from scheduler.api.storage import PersistentVolumeClaim
from scheduler.engine.engine import Engine
from scheduler.errors import BadInput
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.reading.priorities import Priorities
from scheduler.simulate.workloads.molds import Mold, Names
from scheduler.simulate.workloads.owned import Owned
from scheduler.simulate.workloads.workload import PODS_MAX, Workload


class Room:
    """Counts how many more pods may be made of all workloads together."""

    def __init__(self) -> None:
        self._left = PODS_MAX

    def take(self, n_pods: int) -> None:
        """Take room for so many pods.

        Raises:
            BadInput: the pods are too many.
        """
        if n_pods > self._left:
            raise BadInput(
                "spec",
                f"makes {n_pods} pods, and other objects make {PODS_MAX - self._left}: at most {PODS_MAX} are "
                "allowed in all",
            )
        self._left -= n_pods


@dataclass(frozen=True, slots=True)
class Scene:
    """The state before any pod is made.

    Attributes:
        owned: the pods of each workload.
        names: the names of all pods.
        priorities: the PriorityClasses.
        replica_sets: the given ReplicaSets of each Deployment.
        running: CronJobs with a Job that is not over.
        there: all workloads that are given.
        nodes: an engine that has seen the nodes and nothing else.
        room: counts how many more pods may be made.
    """

    owned: Owned
    names: Names
    priorities: Priorities
    replica_sets: dict[ObjectKey, list[Workload]]
    running: AbstractSet[ObjectKey]
    there: AbstractSet[ObjectKey]
    nodes: Engine
    room: Room

    def make_mold(self, workload: Workload, n_pods: int) -> Mold:
        """Make the mold for this number of pods of a workload.

        Raises:
            BadInput: the pods are too many, or the template of the workload cannot be read.
        """
        self.room.take(n_pods)
        return Mold(workload, self.priorities)


class Idle(StrEnum):
    """Why a workload has no pods and makes none."""

    SUSPENDED = "suspended"
    FINISHED = "finished"
    UNSUITED = "unsuited"


@dataclass(frozen=True, slots=True)
class Made:
    """The result of a controller.

    Attributes:
        idle: why it makes no pods, if a person may have expected some.
        pods: new ones.
        groups: new objects that select pods.
        claims: the claims of the new pods.
        templates: by uid of a new pod: the path of its template, if the workload has several.
        grouping: new objects that say which pods are a group.
        remark: why no pods are made, if a person must do something about it.
        surplus: existing pods beyond the wanted number, in the order in which they go.
    """

    pods: Sequence[wire.Pod] = ()
    groups: Sequence[steering.PeerObject] = ()
    surplus: Sequence[wire.Pod] = ()
    idle: Idle | None = None
    claims: Sequence[PersistentVolumeClaim] = ()
    templates: Mapping[str, str] = field(default_factory=dict)
    grouping: Sequence[GroupObject | TopologyObject] = ()
    remark: str = ""


NOTHING = Made()


def find_idle(workload: Workload, policy: Mapping[str, Any], over: Sequence[str]) -> Idle | None:
    """Find why a workload makes no pods: a condition of ``over`` holds, or its ``policy`` suspends it."""
    conditions = values.read_items(workload.status.get("conditions"), "status.conditions", dict)
    if any(one.get("type") in over and one.get("status") == "True" for one in conditions):
        return Idle.FINISHED
    return Idle.SUSPENDED if policy.get("suspend") is True else None


def sort_by_deletion(pods: Sequence[wire.Pod]) -> list[wire.Pod]:
    """Sort pods as a controller deletes them: those without a node first, then the youngest."""
    by_name = sorted(pods, key=lambda pod: pod.metadata.name)
    by_age = sorted(by_name, key=lambda pod: pod.metadata.creation_timestamp, reverse=True)
    return sorted(by_age, key=lambda pod: bool(pod.spec.node_name))
