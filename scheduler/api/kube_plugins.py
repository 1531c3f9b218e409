"""What a profile sets for kube-scheduler's plugins: which are on, their weights, and their arguments.

The defaults are those of kube-scheduler 1.37: a ``KubePlugins`` of which nothing is said is its default profile.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from scheduler.api import names
from scheduler.api.pods.spread import Constraints
from scheduler.api.selectors import NodeTerm

# More than the own weights of all scores come to.
_OWN_WEIGHTS_MOST = 64
# (utilization 0..100, score 0..10) points, utilization rising.
Curve = tuple[tuple[int, int], ...]
FIT, BALANCED = "NodeResourcesFit", "NodeResourcesBalancedAllocation"


class Strategy(StrEnum):
    """How NodeResourcesFit scores, by the names of ``scoringStrategy.type``."""

    LEAST = "LeastAllocated"
    MOST = "MostAllocated"
    RATIO = "RequestedToCapacityRatio"


class FitScore(NamedTuple):
    """What NodeResourcesFit scores by.

    Attributes:
        resources: (name, weight 1..100), in the order given.
        shape: of RequestedToCapacityRatio.
    """

    strategy: Strategy = Strategy.LEAST
    resources: tuple[tuple[str, int], ...] = ((names.CPU, 1), (names.MEMORY, 1))
    shape: Curve = ((0, 0), (100, 10))


class AddedAffinity(NamedTuple):
    """Node affinity that all pods of a profile have on top of their own.

    Attributes:
        required: of these terms one must match; None: nothing is required. None that can match matches nothing.
        preferred: (weight, term).
    """

    required: tuple[NodeTerm, ...] | None = None
    preferred: tuple[tuple[int, NodeTerm], ...] = ()


class Preemption(NamedTuple):
    """On how many nodes it is tried at least to evict others for a pod."""

    candidates_percent: int = 10
    candidates_least: int = 100


class VolumeBinding(NamedTuple):
    """How long the binding of volumes is waited for, and points by how full they or the room for them get."""

    timeout_seconds: int = 600
    shape: Curve = ((0, 10), (100, 0))


@dataclass(frozen=True, kw_only=True)
class KubePlugins:
    """The plugins of one profile.

    Attributes:
        not_asked: filters that are disabled, by name.
        weights: (score, weight) where it is another than the score's own; 0: it is disabled.
        fit: what NodeResourcesFit scores by.
        balanced: resources of NodeResourcesBalancedAllocation.
        ignored, ignored_groups: extended resources that NodeResourcesFit does not look at when it refuses
            nodes, by name and by the domain of the name.
        spread: constraints of pods that have none of their own, whose selector is deduced; None: the system's.
        required_weight: what a required term of a pod on a node counts that is about a pod to come.
        only_own_preferences: preferred terms of pods on nodes count only for pods that have some themselves.
        added_affinity: on top of what pods say themselves.
    """

    not_asked: frozenset[str] = frozenset()
    weights: tuple[tuple[str, int], ...] = ()
    fit: FitScore = field(default_factory=FitScore)
    balanced: tuple[str, ...] = (names.CPU, names.MEMORY)
    ignored: frozenset[str] = frozenset()
    ignored_groups: frozenset[str] = frozenset()
    spread: Constraints | None = None
    required_weight: int = 1
    only_own_preferences: bool = False
    added_affinity: AddedAffinity = field(default_factory=AddedAffinity)
    preemption: Preemption = field(default_factory=Preemption)
    volume_binding: VolumeBinding = field(default_factory=VolumeBinding)

    def weight(self, score: str, own: int) -> int:
        """The weight of a score, ``own`` where nothing is said of it; 0: it counts nothing."""
        return dict(self.weights).get(score, own)

    @property
    def weight_most(self) -> int:
        """No weights of scores add up to more."""
        return _OWN_WEIGHTS_MOST + sum(weight for _, weight in self.weights)

    def ignores(self, resource: str) -> bool:
        """Whether NodeResourcesFit lets pods on nodes whatever is free of a resource."""
        if FIT in self.not_asked:
            return True
        return is_extended(resource) and (
            resource in self.ignored or resource.partition("/")[0] in self.ignored_groups
        )

    def __hash__(self) -> int:
        """It is part of every pod's shape and says a lot: counted once."""
        found: int | None = self.__dict__.get("_hash")
        if found is None:
            found = hash(tuple(value for key, value in self.__dict__.items() if key != "_hash"))
            object.__setattr__(self, "_hash", found)
        return found


DEFAULT = KubePlugins()


def is_extended(resource: str) -> bool:
    """Whether a resource is extended: of a domain, and of one that is not Kubernetes' own."""
    return (
        "/" in resource
        and "kubernetes.io/" not in resource
        and not resource.startswith("requests.")
    )
