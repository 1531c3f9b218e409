"""kube-scheduler 1.37's choice by one profile: which nodes fit, and the weighted score of every plugin on each.

From raw objects and a profile in plain words, by the twins of the plugins. What a profile says is what
KubeSchedulerConfiguration says, after the merge with the defaults, see `Profile`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.oracles import (
    filters,
    image_locality,
    kube_scores,
    pod_affinity,
    requests,
    topology_spread,
)

Json = dict[str, Any]
WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NONZERO = ("cpu", "memory")


@dataclass(frozen=True)
class Profile:
    """`weights` are 0 of scores that are off, `off` are filters; the rest are arguments as they stand in a file."""

    weights: Json = field(default_factory=lambda: dict(WEIGHTS))
    off: frozenset[str] = frozenset()
    strategy: Json = field(default_factory=lambda: {"type": "LeastAllocated"})
    balanced: tuple[str, ...] = ("cpu", "memory")
    ignored: tuple[str, ...] = ()
    ignored_groups: tuple[str, ...] = ()
    spread: list[Json] | None = None
    hard_weight: int = 1
    ignores_others: bool = False
    added: Json = field(default_factory=dict)


@dataclass(frozen=True)
class World:
    """A pod that waits and what there is; `pods` have nodes."""

    pod: Json
    nodes: list[Json]
    pods: list[Json]
    namespaces: Json
    owners: list[Json]

    def on(self, node: Json) -> list[Json]:
        name = node["metadata"]["name"]
        return [one for one in self.pods if one["spec"]["nodeName"] == name]


def fitting(world: World, profile: Profile) -> list[str]:
    """The nodes that no filter which is on refuses."""
    pod, nodes = world.pod, world.nodes
    spread = topology_spread.refusals(pod, nodes, world.pods, world.owners, profile.spread)
    near = pod_affinity.refusals(pod, nodes, world.pods, world.namespaces)
    found = []
    for node in nodes:
        name = node["metadata"]["name"]
        refuses = {
            "TaintToleration": not all(
                filters.tolerates(pod["spec"], taint)
                for taint in node["spec"].get("taints", ())
                if taint["effect"] != "PreferNoSchedule"
            ),
            "NodeAffinity": not filters.likes(pod["spec"], node) or not _is_let_in(profile, node),
            "NodeResourcesFit": _is_short(world, node, profile),
            "PodTopologySpread": spread[name] != topology_spread.FITS,
            "InterPodAffinity": near[name] != pod_affinity.FITS,
        }
        if not any(it_does for rule, it_does in refuses.items() if rule not in profile.off):
            found.append(name)
    return found


def weighted(world: World, profile: Profile, names: Sequence[str]) -> dict[str, dict[str, int]]:
    """By node that fits the weighted score of every plugin that is on."""
    pod, candidates = world.pod, list(names)
    nodes = [node for node in world.nodes if node["metadata"]["name"] in candidates]
    affinity = pod_affinity.scores(
        pod, world.nodes, world.pods, candidates, world.namespaces, profile.hard_weight
    )
    own = [pod_affinity.preferred(pod, kind) for kind in ("podAffinity", "podAntiAffinity")]
    if profile.ignores_others and not any(own):
        affinity = dict.fromkeys(candidates, 0)

    def in_order(points: dict[str, int]) -> list[int]:
        return [points[node["metadata"]["name"]] for node in nodes]

    columns = {
        "TaintToleration": kube_scores.default_normalize(
            [_soft_taints(pod, node) for node in nodes], reverse=True
        ),
        "NodeAffinity": kube_scores.default_normalize(
            [_preference(pod, profile, node) for node in nodes], reverse=False
        ),
        "NodeResourcesFit": [_fit(world, profile, node) for node in nodes],
        "NodeResourcesBalancedAllocation": [_balanced(world, profile, node) for node in nodes],
        "PodTopologySpread": in_order(
            topology_spread.scores(
                pod, world.nodes, world.pods, candidates, world.owners, profile.spread
            )
        ),
        "InterPodAffinity": in_order(affinity),
        "ImageLocality": in_order(image_locality.scores(pod, world.nodes)),
    }
    return {
        node["metadata"]["name"]: {
            plugin: weight * column[i]
            for plugin, column in columns.items()
            if (weight := profile.weights[plugin])
        }
        for i, node in enumerate(nodes)
    }


def _is_let_in(profile: Profile, node: Json) -> bool:
    required = profile.added.get(_REQUIRED)
    if required is None:
        return True
    return any(filters.matches(term, node) for term in required["nodeSelectorTerms"])


def _is_short(world: World, node: Json, profile: Profile) -> bool:
    there, offered = world.on(node), node["status"]["allocatable"]
    if len(there) + 1 > requests.amount("pods", offered.get("pods", 0)):
        return True
    for resource, asked in requests.everything(world.pod).items():
        is_extended = "/" in resource and "kubernetes.io/" not in resource
        group = resource.partition("/")[0]
        if is_extended and (resource in profile.ignored or group in profile.ignored_groups):
            continue
        used = sum(requests.total(one, resource) or 0 for one in there)
        if asked > requests.amount(resource, offered.get(resource, 0)) - used:
            return True
    return False


def _soft_taints(pod: Json, node: Json) -> int:
    # Tolerations of other effects are left out before taints are compared.
    spec = {
        "tolerations": [
            one
            for one in pod["spec"].get("tolerations", ())
            if one.get("effect", "") in {"", "PreferNoSchedule"}
        ]
    }
    taints = node["spec"].get("taints", ())
    return sum(
        one["effect"] == "PreferNoSchedule" and not filters.tolerates(spec, one) for one in taints
    )


def _preference(pod: Json, profile: Profile, node: Json) -> int:
    own = pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get(_PREFERRED, [])
    return sum(
        one["weight"]
        for one in (*own, *profile.added.get(_PREFERRED, ()))
        if filters.matches(one["preference"], node)
    )


def _fit(world: World, profile: Profile, node: Json) -> int:
    # 1.37.1 makes this scorer without the gate of pod-level resources.
    world = replace(world, pod=requests.without_pod_level(world.pod))
    default: list[Json] = [{"name": "cpu"}, {"name": "memory"}]
    listed = [
        _resource(world, node, one["name"], one.get("weight") or 1)
        for one in profile.strategy.get("resources") or default
    ]
    if profile.strategy["type"] == "LeastAllocated":
        return kube_scores.least_allocated(listed)
    if profile.strategy["type"] == "MostAllocated":
        return kube_scores.most_allocated(listed)
    shape = profile.strategy["requestedToCapacityRatio"]["shape"]
    points = [(one["utilization"], one["score"]) for one in shape]
    return kube_scores.requested_to_capacity_ratio(listed, points)


def _balanced(world: World, profile: Profile, node: Json) -> int:
    listed = [_resource(world, node, name, 1) for name in profile.balanced]
    return kube_scores.balanced_allocation(listed) or 0


def _resource(world: World, node: Json, name: str, weight: int) -> kube_scores.Resource:
    there = world.on(node)
    stand_ins: tuple[int | None, int | None] = None, None
    if name in _NONZERO:
        used = sum(requests.nonzero(one, name) for one in there)
        stand_ins = used, requests.nonzero(world.pod, name)
    return kube_scores.Resource(
        requests.amount(name, node["status"]["allocatable"].get(name, 0)),
        sum(requests.total(one, name) or 0 for one in there),
        requests.total(world.pod, name) or 0,
        weight,
        *stand_ins,
        is_core=name == "ephemeral-storage",
    )
