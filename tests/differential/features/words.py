"""What pods say about nodes by their words: taints, labels, names, what they can do."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.worlds import HOST, ZONE, Feature, World

Json = dict[str, Any]
_EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
_TAINTED, _TAINT_VALUES = ("dedicated", "special"), ("", "a", "b")
_VALUES = {
    ZONE: ["zone-0", "zone-1", "zone-2"],
    "rack": ["rack-0", "rack-1", "rack-2"],
    "disk": ["ssd", "hdd"],
}
_ABILITIES = (
    "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport", "VolumeBindMountOptions",
)  # fmt: skip


def _taints(rng: Random, world: World) -> None:
    for node in world.nodes:
        taints = {
            (rng.choice(_TAINTED), rng.choice(_EFFECTS)): rng.choice(_TAINT_VALUES)
            for _ in range(rng.choice([0, 1, 1, 2, 3]))
        }
        node["spec"]["taints"] = [
            {"key": key, "effect": effect} | ({"value": value} if value else {})
            for (key, effect), value in taints.items()
        ]


def _tolerations(rng: Random, _world: World, pod: Json) -> None:
    tolerations = []
    for _ in range(rng.choice([0, 1, 1, 2, 3])):
        one: Json = {"key": rng.choice(_TAINTED), "effect": rng.choice(["", *_EFFECTS])}
        match rng.randrange(4):
            case 0:
                one["operator"] = "Exists"
            case 1:
                one |= {"operator": "Equal", "value": rng.choice(_TAINT_VALUES)}
            case 2:
                one["value"] = rng.choice(_TAINT_VALUES)  # Equal is what is meant
            case 3 if rng.random() < 0.3:
                one |= {"key": "", "operator": "Exists"}
            case _:
                one["operator"] = "Exists"
        if one["effect"] == "NoExecute" and rng.random() < 0.5:
            one["tolerationSeconds"] = 60
        tolerations.append({name: value for name, value in one.items() if value != ""})
    pod["spec"].setdefault("tolerations", []).extend(tolerations)


def _cordon(rng: Random, world: World) -> None:
    for node in world.nodes:
        if rng.random() < 0.4:
            node["spec"]["unschedulable"] = True


def _tolerate_cordon(rng: Random, _world: World, pod: Json) -> None:
    if rng.random() < 0.3:
        one = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
        one |= rng.choice([{}, {"effect": "NoSchedule"}, {"effect": "NoExecute"}])
        pod["spec"].setdefault("tolerations", []).append(one)


def _node_selector(rng: Random, _world: World, pod: Json) -> None:
    keys = rng.sample(list(_VALUES), rng.choice([1, 1, 2]))
    pod["spec"]["nodeSelector"] = {key: rng.choice(_VALUES[key]) for key in keys}


def _expression(rng: Random) -> Json:
    operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
    if operator in {"Gt", "Lt"}:
        # The API server lets words pass that are no number. A term with one matches no node.
        bound = "many" if rng.random() < 0.05 else rng.choice("0259")
        return {"key": "generation", "operator": operator, "values": [bound]}
    key = rng.choice(list(_VALUES))
    if operator in {"Exists", "DoesNotExist"}:
        return {"key": rng.choice([key, "nowhere"]), "operator": operator}
    return {
        "key": key,
        "operator": operator,
        "values": rng.sample(_VALUES[key], rng.choice([1, 2])),
    }


def _term(rng: Random, world: World) -> Json:
    term: Json = {}
    if rng.random() < 0.85:
        term["matchExpressions"] = [_expression(rng) for _ in range(rng.choice([1, 1, 2]))]
    if rng.random() < 0.3:
        names = [node["metadata"]["name"] for node in world.nodes] + ["nobody"]
        operator = rng.choice(["In", "NotIn"])
        term["matchFields"] = [
            {"key": "metadata.name", "operator": operator, "values": [rng.choice(names)]}
            for _ in range(rng.choice([1, 1, 1, 2]))
        ]
    return term


def _node_affinity(rng: Random, world: World, pod: Json) -> None:
    terms = [_term(rng, world) for _ in range(rng.choice([1, 1, 2, 3]))]
    mine = pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    mine["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}


def _preferred(rng: Random, world: World, pod: Json) -> None:
    mine = pod["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
    mine["preferredDuringSchedulingIgnoredDuringExecution"] = [
        {"weight": rng.choice([1, 7, 50, 100]), "preference": _term(rng, world)}
        for _ in range(rng.choice([1, 2, 3]))
    ]


def _missing_labels(rng: Random, world: World) -> None:
    """Nodes without the labels that make domains, or with one that another node has as well."""
    for node in world.nodes:
        labels = node["metadata"]["labels"]
        for key in (HOST, ZONE, "rack"):
            if rng.random() < 0.25:
                labels.pop(key, None)
        if rng.random() < 0.15:
            labels[HOST] = "node-00"


def _abilities(rng: Random, world: World) -> None:
    for node in world.nodes:
        node["status"]["declaredFeatures"] = [one for one in _ABILITIES if rng.random() < 0.5]


def _needs_ability(_rng: Random, _world: World, pod: Json) -> None:
    """The one ability that the API server lets pods ask without an alpha gate."""
    pod["spec"]["restartPolicy"] = "Never"
    pod["spec"]["containers"][0] |= {
        "restartPolicy": "Never",
        "restartPolicyRules": [
            {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}
        ],
    }


FEATURES = (
    Feature(name="taints", world=_taints, pod=_tolerations),
    Feature(name="cordoned nodes", world=_cordon, pod=_tolerate_cordon),
    Feature(name="node selector", pod=_node_selector),
    Feature(name="node affinity", pod=_node_affinity),
    Feature(name="preferred node affinity", pod=_preferred),
    Feature(name="missing labels", world=_missing_labels),
    Feature(name="declared features", world=_abilities, pod=_needs_ability),
)
