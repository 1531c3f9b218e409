"""What pods say about other pods: affinity, anti-affinity, spread."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from tests.differential.worlds import APPS, HOST, NAMESPACES, TIERS, ZONE, Feature, World

Json = dict[str, Any]
_KEYS = (HOST, ZONE, ZONE, "rack")
_HARD = "requiredDuringSchedulingIgnoredDuringExecution"
_SOFT = "preferredDuringSchedulingIgnoredDuringExecution"
_LABELS = {"app": APPS, "tier": TIERS, "version": ("v1", "v2")}
# Of these kinds a pod can be; Services select pods that are none of theirs.
_OWNERS = {"ReplicationController", "StatefulSet", "ReplicaSet"}
_NAMESPACE_LABELS = {"team": ("a", "b"), "env": ("prod", "dev")}


def _expression(rng: Random, words: Mapping[str, tuple[str, ...]]) -> Json:
    key = rng.choice(list(words))
    operator = rng.choice(["In", "In", "NotIn", "Exists", "DoesNotExist"])
    found: Json = {"key": key, "operator": operator}
    if operator in {"In", "NotIn"}:
        found["values"] = rng.sample(words[key], rng.choice([1, 1, 2]))
    return found


def _selector(rng: Random, words: Mapping[str, tuple[str, ...]]) -> Json:
    match rng.randrange(5):
        case 0:
            return {"matchExpressions": [_expression(rng, words)]}
        case 1 if rng.random() < 0.5:
            return {}
        case 2:
            return {"matchExpressions": [_expression(rng, words) for _ in range(2)]}
        case _:
            key = rng.choice(list(words))
            return {"matchLabels": {key: rng.choice(words[key])}}


def _keys(rng: Random, selector: Json) -> list[str]:
    """Labels whose values of the pod itself count; not those that the selector names already."""
    said = {one["key"] for one in selector.get("matchExpressions", ())}
    free = [key for key in _LABELS if key not in {*said, *selector.get("matchLabels", {})}]
    return rng.sample(free, min(len(free), 1))


def _term(rng: Random) -> Json:
    term: Json = {"topologyKey": rng.choice(_KEYS)}
    if rng.random() < 0.93:
        term["labelSelector"] = _selector(rng, _LABELS)
        which = rng.random()
        if which < 0.15:
            term["matchLabelKeys"] = _keys(rng, term["labelSelector"])
        elif which < 0.3:
            term["mismatchLabelKeys"] = _keys(rng, term["labelSelector"])
    match rng.randrange(6):
        case 0 | 1:
            term["namespaceSelector"] = _selector(rng, _NAMESPACE_LABELS)
        case 2:
            term["namespaces"] = rng.sample(list(NAMESPACES), 2)
        case 3 if rng.random() < 0.5:
            term["namespaces"] = [rng.choice(list(NAMESPACES))]
            term["namespaceSelector"] = _selector(rng, _NAMESPACE_LABELS)
    return term


def _put(pod: Json, side: str, way: str, terms: list[Json]) -> None:
    mine = pod["spec"].setdefault("affinity", {}).setdefault(side, {})
    mine.setdefault(way, []).extend(terms)


def _hard(rng: Random, pod: Json, side: str) -> None:
    _put(pod, side, _HARD, [_term(rng) for _ in range(rng.choice([1, 1, 2]))])


def _soft(rng: Random, pod: Json, side: str) -> None:
    weights = (1, 10, 50, 100)
    terms = [{"weight": rng.choice(weights), "podAffinityTerm": _term(rng)} for _ in range(2)]
    _put(pod, side, _SOFT, terms[: rng.choice([1, 2])])


def _affinity(rng: Random, _world: World, pod: Json) -> None:
    _hard(rng, pod, "podAffinity")


def _anti_affinity(rng: Random, _world: World, pod: Json) -> None:
    _hard(rng, pod, "podAntiAffinity")


def _preferences(rng: Random, _world: World, pod: Json) -> None:
    for side in rng.choice([("podAffinity",), ("podAntiAffinity",), ("podAffinity", "podAntiAffinity")]):  # fmt: skip
        _soft(rng, pod, side)


def _of_running(rng: Random, world: World) -> None:
    """Pods that run have terms as well, which hold for whoever comes."""
    for pod in world.pods:
        if rng.random() < 0.35:
            side = rng.choice(["podAffinity", "podAntiAffinity"])
            rng.choice([_hard, _soft])(rng, pod, side)


def _constraint(rng: Random, key: str, way: str) -> Json:
    found: Json = {
        "topologyKey": key,
        "whenUnsatisfiable": way,
        "maxSkew": rng.choice([1, 1, 2, 3]),
    }
    if rng.random() < 0.93:
        found["labelSelector"] = _selector(rng, _LABELS)
        if rng.random() < 0.25:
            found["matchLabelKeys"] = _keys(rng, found["labelSelector"])
    if way == "DoNotSchedule" and rng.random() < 0.35:
        found["minDomains"] = rng.choice([1, 2, 3, 5])
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if rng.random() < 0.3:
            found[policy] = rng.choice(["Honor", "Ignore"])
    return found


def _spread(rng: Random, pod: Json, way: str) -> None:
    keys = rng.sample([HOST, ZONE, "rack"], rng.choice([1, 1, 2]))
    constraints = pod["spec"].setdefault("topologySpreadConstraints", [])
    constraints.extend(_constraint(rng, key, way) for key in keys)


def _hard_spread(rng: Random, _world: World, pod: Json) -> None:
    _spread(rng, pod, "DoNotSchedule")


def _soft_spread(rng: Random, _world: World, pod: Json) -> None:
    _spread(rng, pod, "ScheduleAnyway")


def _owners(rng: Random, world: World) -> None:
    """Whose pods are spread without a word of theirs."""
    for space in NAMESPACES:
        for app in APPS:
            if rng.random() < 0.6:
                world.others.append(_owner(rng, space, app))


def _owner(rng: Random, space: str, app: str) -> Json:
    labels = {"app": app}
    meta = {"name": app, "namespace": space}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "c", "image": "registry.example/pause:1"}]},
    }
    spec: Json = {"replicas": 0, "selector": labels, "template": template}
    by_labels = spec | {"selector": {"matchLabels": labels}}
    match rng.randrange(5):
        case 0 | 1:
            ports = [{"port": 80}]
            spec = {"selector": labels, "ports": ports, "clusterIP": "None"}
            return {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": spec}
        case 2:
            kind = "ReplicationController"
            return {"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": spec}
        case 3:
            kind, spec = "StatefulSet", by_labels | {"serviceName": app}
        case _:
            kind, spec = "ReplicaSet", by_labels
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec}


def _owned(rng: Random, world: World, pod: Json) -> None:
    """Of an owner in its own namespace, often; else of whichever Service selects it."""
    owners = [one for one in world.others if one["kind"] in _OWNERS]
    if owners and rng.random() < 0.7:
        owner = rng.choice(owners)
        pod["metadata"]["namespace"] = owner["metadata"]["namespace"]
        pod["metadata"]["labels"]["app"] = owner["metadata"]["name"]
        pod["metadata"]["ownerReferences"] = [
            {
                "apiVersion": owner["apiVersion"],
                "kind": owner["kind"],
                "name": owner["metadata"]["name"],
                "uid": f"uid-of-{owner['metadata']['name']}",
                "controller": True,
            }
        ]


FEATURES = (
    Feature(name="pod affinity", pod=_affinity),
    Feature(name="pod anti-affinity", pod=_anti_affinity),
    Feature(name="preferred pod affinity", pod=_preferences),
    Feature(name="terms of running pods", world=_of_running),
    Feature(name="hard spread", pod=_hard_spread),
    Feature(name="soft spread", pod=_soft_spread),
    Feature(name="implicit spread", world=_owners, pod=_owned),
)
