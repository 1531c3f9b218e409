"""What a profile sets for kube-scheduler's plugins: which are on, their weights, and their arguments.

The defaults are those of kube-scheduler 1.37: a ``KubePlugins`` without arguments is its default profile.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from scheduler.api import names
from scheduler.api.claims.wanted import is_extended
from scheduler.api.pods.spread import Constraints
from scheduler.api.selectors import NodeTerm

# More than the sum of the own weights of all scores.
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
    """How NodeResourcesFit scores.

    Attributes:
        resources: (name, weight 1..100), in the order given.
        shape: the curve of RequestedToCapacityRatio.
    """

    strategy: Strategy = Strategy.LEAST
    resources: tuple[tuple[str, int], ...] = ((names.CPU, 1), (names.MEMORY, 1))
    shape: Curve = ((0, 0), (100, 10))


class AddedAffinity(NamedTuple):
    """Node affinity that all pods of a profile have on top of their own.

    Attributes:
        required: one of these terms must match; None: nothing is required; empty: no node matches.
        preferred: (weight, term).
    """

    required: tuple[NodeTerm, ...] | None = None
    preferred: tuple[tuple[int, NodeTerm], ...] = ()


class Preemption(NamedTuple):
    """On how many nodes at least preemption is tried for a pod: a percentage, and a number."""

    candidates_percent: int = 10
    candidates_least: int = 100


class VolumeBinding(NamedTuple):
    """How long a bind waits for its volumes, and the points by how full volumes or storage become."""

    timeout_seconds: int = 600
    shape: Curve = ((0, 10), (100, 0))


@dataclass(frozen=True, kw_only=True)
class KubePlugins:
    """The plugins of one profile.

    Attributes:
        not_asked: filters that are disabled, by name.
        weights: (score, weight) of scores with another weight than their own; 0: the score is disabled.
        fit: how NodeResourcesFit scores.
        balanced: the resources of NodeResourcesBalancedAllocation.
        ignored, ignored_groups: extended resources that NodeResourcesFit does not look at when it refuses
            nodes, by name and by the domain of the name.
        spread: constraints of pods without constraints, whose selector is deduced; None: the system's defaults.
        required_weight: the weight of a required term of a pod on a node that is about a later pod.
        only_own_preferences: preferred terms of pods on nodes count only for pods that have preferred terms themselves.
        added_affinity: node affinity on top of the pods' own.
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

    def find_weight(self, score: str, own: int) -> int:
        """Find the weight of a score, which is ``own`` if the profile sets none; 0: the score does not count."""
        return dict(self.weights).get(score, own)

    @property
    def weight_most(self) -> int:
        """A bound of the sum of the weights of all scores."""
        return _OWN_WEIGHTS_MOST + sum(weight for _, weight in self.weights)

    def is_ignored(self, resource: str) -> bool:
        """Whether NodeResourcesFit accepts nodes however little is free of a resource."""
        if FIT in self.not_asked:
            return True
        return is_extended(resource) and (
            resource in self.ignored or resource.partition("/")[0] in self.ignored_groups
        )

    def __hash__(self) -> int:
        """Hash all fields once: the value is long, and part of every pod's shape."""
        found: int | None = self.__dict__.get("_hash")
        if found is None:
            found = hash(tuple(value for key, value in self.__dict__.items() if key != "_hash"))
            object.__setattr__(self, "_hash", found)
        return found


DEFAULT = KubePlugins()
