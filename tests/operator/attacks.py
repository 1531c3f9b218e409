"""What a tenant who may only create pods can throw at a scheduler, at any size.

Each attack is a list of manifests in one namespace. What is large in them is what the API server lets
through: objects of up to 1.5 MB whose lists it does not bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Json = dict[str, Any]

_KIB = 1024


def _pod(name: str, namespace: str, **spec: Any) -> Json:
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": "1m"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "schedulerName": "evenkeel",
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **spec,
        },
    }


def _limits(pod: Json, limits: Mapping[str, str]) -> Json:
    pod["spec"]["containers"][0]["resources"] = {"requests": dict(limits), "limits": dict(limits)}
    return pod


def claims(namespace: str, scale: float) -> list[Json]:
    """One pod without any GPU request on each GPU node, which claims what nobody can read."""
    pods = [
        _pod(f"claim-{i}", namespace, nodeName=f"gpu-{i:02}", schedulerName="nobody")
        for i in range(max(1, round(10 * scale)))
    ]
    for pod in pods:
        pod["metadata"]["annotations"] = {"hami.io/vgpu-devices-allocated": "x"}
    return pods


def named(namespace: str, scale: float) -> list[Json]:
    """Pods that ask next to nothing on GPU nodes and claim thousands of cards, no two alike.

    Having a node they are no scheduler's to hold, and what they say is read at each of their changes.
    """
    asked = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1"}
    pods = [
        _limits(
            _pod(f"named-{i}", namespace, nodeName=f"gpu-{i % 10:02}", schedulerName="nobody"),
            asked,
        )
        for i in range(max(1, round(100 * scale)))
    ]
    for i, pod in enumerate(pods):
        records = "".join(f"{i:x}-{j:x},N,1,1:" for j in range(30_000))[:250_000]
        pod["metadata"]["annotations"] = {"hami.io/vgpu-devices-allocated": records}
    return pods


def terms(namespace: str, scale: float) -> list[Json]:
    """Node affinity of very many terms."""

    def one(i: int) -> Json:
        many = [
            {"matchExpressions": [{"key": f"k{i}-{j}", "operator": "Exists"}]}
            for j in range(round(30_000 * min(1.0, scale * 3)))
        ]
        required = {"nodeSelectorTerms": many}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        return _pod(f"terms-{i}", namespace, affinity=affinity)

    return [one(i) for i in range(max(1, round(8 * scale)))]


def keys(namespace: str, scale: float) -> list[Json]:
    """A nodeSelector of very many keys, no two alike."""
    n_keys = round(40_000 * min(1.0, scale * 3))
    return [
        _pod(f"keys-{i}", namespace, nodeSelector={f"k{i}-{j}": "v" for j in range(n_keys)})
        for i in range(max(1, round(6 * scale)))
    ]


def compares(namespace: str, scale: float) -> list[Json]:
    """As many comparisons with every node's name as the bounds allow."""

    def one(i: int) -> Json:
        key, n = "kubernetes.io/hostname", 1000
        expressions = [{"key": key, "operator": "Gt", "values": [f"{i}{j}"]} for j in range(n)]
        terms = {"nodeSelectorTerms": [{"matchExpressions": [one]} for one in expressions]}
        affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
        return _pod(f"compares-{i}", namespace, affinity=affinity)

    return [one(i) for i in range(max(1, round(100 * scale)))]


def peers(namespace: str, scale: float) -> list[Json]:
    """Rules about very many other pods, no two alike: affinity, anti-affinity and spread."""
    n_terms = round(6000 * min(1.0, scale * 3))

    def one(i: int) -> Json:
        terms = [
            {"topologyKey": "zone", "labelSelector": {"matchLabels": {f"k{i}-{j}": "v"}}}
            for j in range(n_terms)
        ]
        kind = ("podAffinity", "podAntiAffinity", "spread")[i % 3]
        if kind == "spread":
            soft = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
            spread = [soft | term | {"topologyKey": f"t{j}"} for j, term in enumerate(terms)]
            return _pod(f"peers-{i}", namespace, topologySpreadConstraints=spread)
        weighted = [{"weight": 1, "podAffinityTerm": term} for term in terms]
        rules = {"preferredDuringSchedulingIgnoredDuringExecution": weighted}
        return _pod(f"peers-{i}", namespace, affinity={kind: rules})

    return [one(i) for i in range(max(1, round(30 * scale)))]


def images(namespace: str, scale: float) -> list[Json]:
    """Images by names of a megabyte, no two alike."""
    pods = [_pod(f"images-{i}", namespace) for i in range(max(1, round(30 * scale)))]
    for i, pod in enumerate(pods):
        name = "x" * round(1_000_000 * min(1.0, scale * 3))
        pod["spec"]["containers"][0]["image"] = f"{i}/{name}"
    return pods


def ports(namespace: str, scale: float) -> list[Json]:
    """Very many host ports."""
    pods = [_pod(f"ports-{i}", namespace) for i in range(max(1, round(8 * scale)))]
    for pod in pods:
        pod["spec"]["containers"][0]["ports"] = [
            {"containerPort": port, "hostPort": port} for port in range(1000, 9000)
        ]
    return pods


def resources(namespace: str, scale: float) -> list[Json]:
    """Very many resources that no node has, no two alike."""
    n_resources = round(15_000 * min(1.0, scale * 3))
    return [
        _limits(
            _pod(f"resources-{i}", namespace),
            {f"x.example/r{i}-{j}": "1" for j in range(n_resources)},
        )
        for i in range(max(1, round(6 * scale)))
    ]


def wishes(namespace: str, scale: float) -> list[Json]:
    """GPU pods that name thousands of cards, no two lists alike."""
    pods = [
        _limits(_pod(f"wishes-{i}", namespace), {"nvidia.com/gpu": "1"})
        for i in range(round(300 * scale))
    ]
    for i, pod in enumerate(pods):
        words = ",".join(f"GPU-{i}-{j}" for j in range(30_000))[: 255 * _KIB]
        pod["metadata"]["annotations"] = {"nvidia.com/use-gpuuuid": words}
    return pods


def containers(namespace: str, scale: float) -> list[Json]:
    """Pods of a hundred containers and a thousand labels, no two alike."""
    pods = [_pod(f"containers-{i}", namespace) for i in range(round(200 * scale))]
    for i, pod in enumerate(pods):
        pod["metadata"]["labels"] = {f"label-{i}-{j}": f"value-{j}" for j in range(1000)}
        pod["spec"]["containers"] = [
            {
                "name": f"c{j}",
                "image": "work",
                "resources": {"requests": {"cpu": f"{1 + i % 7}m", "memory": f"{i + j}Ki"}},
            }
            for j in range(100)
        ]
    return pods


def picks(namespace: str, scale: float) -> list[Json]:
    """Pods whose init containers ask thousands of cards, one after the other: any node has enough for each."""
    asked = {"nvidia.com/gpu": "16", "nvidia.com/gpumem": "1"}
    pods = [
        _limits(_pod(f"picks-{i}", namespace), {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1"})
        for i in range(max(1, round(30 * scale)))
    ]
    for pod in pods:
        pod["spec"]["initContainers"] = [
            {"name": f"i{j}", "image": "work", "resources": {"requests": asked, "limits": asked}}
            for j in range(999)
        ]
    return pods


def bulk(namespace: str, scale: float) -> list[Json]:
    """Pods of 1.3 MB each, most of it commands and environment."""
    pods = [
        _pod(f"bulk-{i}", namespace, nodeSelector={"no": "where"})
        for i in range(round(300 * scale))
    ]
    for i, pod in enumerate(pods):
        lines = round(1250 * min(1.0, scale * 7))
        pod["spec"]["containers"][0]["args"] = [f"{i}-" + "x" * 1000] * lines
    return pods


def unlike(namespace: str, scale: float) -> list[Json]:
    """Thousands of pods that fit nowhere, no two alike."""
    return [
        _limits(
            _pod(f"unlike-{i}", namespace, nodeSelector={"rack": f"r{i}"}), {"cpu": f"{1000 + i}m"}
        )
        for i in range(round(20_000 * scale))
    ]


Attack = Callable[[str, float], list[Json]]
ALL: Mapping[str, Attack] = {
    "claims": claims,
    "named": named,
    "terms": terms,
    "keys": keys,
    "compares": compares,
    "peers": peers,
    "images": images,
    "ports": ports,
    "resources": resources,
    "wishes": wishes,
    "containers": containers,
    "picks": picks,
    "bulk": bulk,
    "unlike": unlike,
}
