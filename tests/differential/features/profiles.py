"""Profiles of one configuration file, which both sides read; pods choose theirs by ``schedulerName``."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.worlds import HOST, SCHEDULER, ZONE, Feature, World

Json = dict[str, Any]
_NAMES = tuple(f"profile-{i:02}" for i in range(24))
# Profiles that disable each plugin as likely as not, and of those about volumes every subset.
_SUBSETS = tuple(f"subset-{i:02}" for i in range(32))
_ABOUT_VOLUMES = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")
_SCORES = (
    "TaintToleration", "NodeAffinity", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity",
    "NodeResourcesBalancedAllocation", "ImageLocality", "VolumeBinding",
)  # fmt: skip
_FILTERS = (
    "NodeUnschedulable", "NodePorts", "VolumeRestrictions", "NodeVolumeLimits", "VolumeZone",
    "DefaultPreemption", "NodeDeclaredFeatures", *_SCORES,
)  # fmt: skip
_RESOURCES = (
    "cpu", "memory", "ephemeral-storage", "example.com/widget", "example.org/gadget", "hugepages-2Mi",
)  # fmt: skip


def file(seed: int) -> Json:
    """The configuration of a run; all nodes are scored, and who fits nowhere is soon asked again."""
    profiles = [{"schedulerName": SCHEDULER}]
    profiles += [_profile(Random(f"{seed}/{name}"), name) for name in _NAMES]
    profiles += [_subset(Random(f"{seed}/{name}"), name, i) for i, name in enumerate(_SUBSETS)]
    return {
        "percentageOfNodesToScore": 100,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
        "profiles": profiles,
    }


def _profile(rng: Random, name: str) -> Json:
    found: Json = {"schedulerName": name, "plugins": _plugins(rng)}
    arguments = {
        "NodeResourcesFit": _fit,
        "NodeResourcesBalancedAllocation": _balanced,
        "PodTopologySpread": _spread,
        "InterPodAffinity": _pod_affinity,
        "NodeAffinity": _node_affinity,
        "VolumeBinding": _volumes,
    }
    found["pluginConfig"] = [
        {"name": plugin, "args": make(rng)}
        for plugin, make in arguments.items()
        if rng.random() < 0.5
    ]
    return found


def _subset(rng: Random, name: str, number: int) -> Json:
    others = sorted({"NodeName", *_FILTERS} - {*_ABOUT_VOLUMES, "ImageLocality"})
    off = {one for one in others if rng.random() < 0.4}
    off |= {one for i, one in enumerate(_ABOUT_VOLUMES) if number >> i & 1}
    return {"schedulerName": name, "plugins": _all_but(off, rng)}


def _plugins(rng: Random) -> Json:
    return _all_but({one for one in _FILTERS if rng.random() < 0.08} - {"ImageLocality"}, rng)


def _all_but(off: set[str], rng: Random) -> Json:
    """Weights of the plugins that are left, some of which are disabled where they score."""
    everywhere: Json = {"enabled": [], "disabled": [{"name": one} for one in sorted(off)]}
    score: Json = {"enabled": [], "disabled": []}
    for name in _SCORES:
        if name in off:
            continue
        weighed = {"name": name, "weight": rng.choice([1, 2, 3, 5, 20, 100])}
        match rng.randrange(6):
            case 0:
                score["enabled"].append(weighed)
            case 1:
                everywhere["enabled"].append(weighed)
            case 2 if rng.random() < 0.6:
                score["disabled"].append({"name": name})
    if rng.random() < 0.1 and score["enabled"]:
        score["disabled"] = [{"name": "*"}]
        if not any(one["name"] == "ImageLocality" for one in score["enabled"]):
            # It scores every pod. Of those that nothing scores the log does not tell where they fit.
            score["enabled"].append({"name": "ImageLocality", "weight": 1})
    return {"multiPoint": everywhere, "score": score}


def _shape(rng: Random) -> list[Json]:
    use = sorted(rng.sample(range(0, 101, 10), rng.choice([1, 2, 2, 3])))
    return [{"utilization": percent, "score": rng.randint(0, 10)} for percent in use]


def _fit(rng: Random) -> Json:
    kind = rng.choice(["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"])
    resources = [
        {"name": name, "weight": rng.choice([1, 1, 2, 10, 100])}
        for name in rng.sample(_RESOURCES, rng.choice([1, 2, 3, 4]))
    ]
    strategy: Json = {"type": kind, "resources": resources}
    if kind == "RequestedToCapacityRatio":
        strategy["requestedToCapacityRatio"] = {"shape": _shape(rng)}
    found: Json = {"scoringStrategy": strategy}
    if rng.random() < 0.3:
        found["ignoredResources"] = ["example.com/widget"]
    if rng.random() < 0.3:
        found["ignoredResourceGroups"] = ["example.org"]
    return found


def _balanced(rng: Random) -> Json:
    names = rng.sample(_RESOURCES, rng.choice([1, 2, 3, 4]))
    return {"resources": [{"name": name, "weight": 1} for name in names]}


def _spread(rng: Random) -> Json:
    if rng.random() < 0.2:
        return {"defaultingType": "List", "defaultConstraints": []}
    constraints = []
    for key in rng.sample([HOST, ZONE, "rack"], rng.choice([1, 1, 2])):
        one: Json = {"topologyKey": key, "maxSkew": rng.choice([1, 1, 2, 5])}
        one["whenUnsatisfiable"] = rng.choice(["DoNotSchedule", "ScheduleAnyway"])
        if one["whenUnsatisfiable"] == "DoNotSchedule" and rng.random() < 0.3:
            one["minDomains"] = rng.choice([1, 2, 4])
        constraints.append(one)
    return {"defaultingType": "List", "defaultConstraints": constraints}


def _pod_affinity(rng: Random) -> Json:
    return {
        "hardPodAffinityWeight": rng.choice([0, 1, 5, 100]),
        "ignorePreferredTermsOfExistingPods": rng.random() < 0.4,
    }


def _term(rng: Random) -> Json:
    here = rng.choice([
        {"key": ZONE, "operator": "In", "values": rng.sample(["zone-0", "zone-1", "zone-2"], 2)},
        {"key": "disk", "operator": "NotIn", "values": ["hdd"]},
        {"key": "generation", "operator": "Gt", "values": ["1"]},
    ])  # fmt: skip
    return {"matchExpressions": [here]}


def _node_affinity(rng: Random) -> Json:
    added: Json = {}
    if rng.random() < 0.5:
        terms = [_term(rng) for _ in range(rng.choice([1, 2]))]
        added["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if rng.random() < 0.7:
        added["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": rng.choice([1, 10, 100]), "preference": _term(rng)} for _ in range(2)
        ]
    return {"addedAffinity": added}


def _volumes(rng: Random) -> Json:
    return {"bindTimeoutSeconds": 60, "shape": _shape(rng)}


def _chosen(rng: Random, _world: World, pod: Json) -> None:
    pod["spec"]["schedulerName"] = rng.choice(_NAMES)


def _chosen_subset(rng: Random, _world: World, pod: Json) -> None:
    pod["spec"]["schedulerName"] = rng.choice(_SUBSETS)


FEATURES = (
    Feature(name="profiles", pod=_chosen),
    Feature(name="disabled plugins", pod=_chosen_subset),
)
