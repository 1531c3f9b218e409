"""Questions for judging a cluster as it is. Columns are copies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from scheduler.api import wire
from scheduler.api.groups.definitions import GroupKey
from scheduler.engine.questions.contract import Foresight, Question
from scheduler.measure.cards import Cards
from scheduler.measure.figures import Figures
from scheduler.measure.shares import Shares
from scheduler.measure.typical import Typical
from scheduler.schema import columns as c
from scheduler.state.demand import DemandShape
from scheduler.telling.advice.losses import Loss
from scheduler.telling.unused import UnusedDevices


class TypicalPods(Question[Typical], frozen=True):
    """The typical pods; ``own`` are uids of pods that belong to their node."""

    own: Collection[str]


class FiguresBy(Question[Figures], frozen=True):
    """What every node has in use, free and stranded, judged by these typical pods."""

    typical: Typical


class JudgedNodes(Question[list[str]], frozen=True):
    """The names of the nodes that are judged, sorted: malformed ones are not."""


class EmptyNodes(Question[int], frozen=True):
    """How many nodes have no pod but those that belong to them, whose uids are ``own``; of malformed nodes none."""

    own: Collection[str]


class SharesOf(Question[Shares], frozen=True):
    """What every pod has of some nodes. O(pods + cards)."""

    nodes: Sequence[str]


class GroupOfPods(Question[Mapping[str, GroupKey]], frozen=True):
    """By the uid of a pod: the group with which it would move; pods that move by themselves are left out."""


class NodeDevices(NamedTuple):
    """The devices of n nodes.

    Attributes:
        cards: the nodes by their place among those that were named.
        has_gpu: [n] whether a node has GPUs, be they counted or not.
        models: the words for the models of cards.
        resources: of each family.
    """

    cards: Cards
    has_gpu: c.Flags
    models: Sequence[str]
    resources: tuple[str, ...]


class DevicesOn(Question[NodeDevices], frozen=True):
    """The devices of some nodes."""

    nodes: Sequence[str]


class UncountedOffer(Question[Mapping[str, int]], frozen=True):
    """How many devices a node offers that no driver counts, by resource."""

    node: str


class WrongLabels(Question[tuple[bool, ...]], frozen=True):
    """For each of some shapes, whether the labels of a node are not those that the shape selects."""

    node: str
    shapes: Sequence[DemandShape]


class Return(NamedTuple):
    """What keeps a pod from being placed on its node again.

    Attributes:
        has_told_wrong: there is a mistake in what it tells of its cards.
        is_missteered: there is a mistake in its placement settings.
        objection: why the node would refuse it by now; empty when it would not.
    """

    has_told_wrong: bool
    is_missteered: bool
    objection: str


class ReturnOf(Question[Return], frozen=True):
    """Whether a pod that has a node could be placed there again."""

    uid: str


class BestNode(NamedTuple):
    """A node that takes a pod, as in ``telling.advice.best.Scored``."""

    node: str
    preference: int
    scores: Mapping[str, Any]
    loss: Loss | None


class BestNodes(NamedTuple):
    """The best nodes for a pod.

    Attributes:
        requests: what it asks, by resource.
        n_fitting: how many nodes take it.
        weights: of each score.
        objective: which of equal nodes comes first.
    """

    requests: Mapping[str, int]
    nodes: tuple[BestNode, ...]
    n_fitting: int
    weights: Mapping[str, int]
    objective: str


class BestNodesFor(Foresight[BestNodes], frozen=True):
    """Where a pod would go if it came now: so many nodes, the best first."""

    pod: wire.Pod
    most: int


class UnusedClaimDevices(Foresight[UnusedDevices], frozen=True):
    """Which devices of ResourceSlices usual pods with claims can get, and which claims nobody has reserved."""
