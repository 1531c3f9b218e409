"""Questions about the pods that wait."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from scheduler.api.door.decisions import GroupResult, Hold
from scheduler.api.groups.definitions import GroupKey
from scheduler.engine.questions.contract import Lookup, Question
from scheduler.state.pods import PodRecord


class IsParked(Question[bool], frozen=True):
    """Whether a pod was tried in vain and waits for a change."""

    uid: str


class Wait(NamedTuple):
    """How a pod waits, in seconds.

    Attributes:
        since: when it could be tried for the first time; None before.
        attempts: how often it was tried.
        waited: for how long it was active before it was tried last.
    """

    since: float | None
    attempts: int
    waited: float


# A place in the order of waiting pods, the lowest first: priority, what comes between priority and age, creation, name.
Place = tuple[float, float, str, str]


class LastingPlace(Lookup[Place], frozen=True):
    """The place of a pod in the order of waiting pods, by what the API server has of it: after a restart it is the same.

    Of pods created in one second the first by name comes first, as in a list; in which order they arrived is not kept.
    """

    uid: str


class WaitOf(Question[Wait | None], frozen=True):
    """How a pod waits; None when it does not."""

    uid: str


class TriedInVain(Question[Mapping[str, str]], frozen=True):
    """Those of some pods that wait because they fit nowhere, with the profile of each."""

    uids: Collection[str]


class QueueState(NamedTuple):
    """How many pods wait, and when the next is tried that is not active; None when none is in its backoff."""

    n_pods: int
    next_due: float | None


class Queue(Question[QueueState], frozen=True):
    """Whether pods wait, and how long nothing has to be done for them."""


class Unplaced(NamedTuple):
    """A pod or a group that waits, and why.

    Attributes:
        pods: the pods that have no node.
        group: the key of the group; None for a single pod.
        least: how many of the pods must have a node at once.
        held: why it may not be tried; empty if it may.
        result: the result for the group when it was tried last; None before, and for a single pod.
        hold: why one of the pods found no node then.
    """

    pods: Sequence[PodRecord]
    group: GroupKey | None
    least: int
    held: str
    result: GroupResult | None
    hold: Hold | None


class WhatWaits(Question[Sequence[Unplaced]], frozen=True):
    """Everything that waits, in no order. O(waiting pods)."""


class GroupFacts(NamedTuple):
    """An object that stands for a group.

    Attributes:
        kind: the name of its kind in the table of kinds.
        generation: its generation.
        was_placed: its status says that the group was placed once (Kubernetes: ``PodGroupInitiallyScheduled``).
    """

    kind: str
    namespace: str
    name: str
    uid: str
    generation: int
    was_placed: bool


class ObjectsOf(Question[Sequence[GroupFacts]], frozen=True):
    """The objects that stand for a group and for the groups within it."""

    group: GroupKey


class AllGroups(Question[Mapping[GroupKey, GroupKey]], frozen=True):
    """All groups with pods and those above them, each with the group that is decided about as a whole. O(pods)."""


class QueueFigures(NamedTuple):
    """The queue in figures, under kube-scheduler's names.

    Attributes:
        pods: how many are in each part.
        groups: how many groups with waiting pods are in each part.
        came: how many came to each part so far, by part and by event.
        broken: how many groups have pods on nodes, but fewer than their minimum.
    """

    pods: Mapping[str, int]
    groups: Mapping[str, int]
    came: Mapping[tuple[str, str], int]
    broken: int


class QueueCounts(Question[QueueFigures], frozen=True):
    """How many pods are in each part of the queue, and how many came there. O(waiting pods)."""


class NamespaceWait(NamedTuple):
    """How many pods of a namespace wait, and since when the first of them could be tried."""

    n_pods: int
    since: float


class WaitsByNamespace(Question[Mapping[str, NamespaceWait]], frozen=True):
    """How many pods wait in each namespace, without gated pods and pods that were never active. O(waiting pods)."""
