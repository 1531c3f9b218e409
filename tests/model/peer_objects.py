"""Nodes and pods as raw objects, for pods that have rules about other pods."""

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def node(name: str, labels: Json | None = None, **more: Any) -> Json:
    """``taints`` as the API has them, ``images`` as {name: MiB}."""
    images = [
        {"names": [image], "sizeBytes": mib << 20} for image, mib in more.get("images", {}).items()
    ]
    return {
        "metadata": {"name": name, "uid": name, "labels": labels or {}},
        "spec": {"taints": more.get("taints", [])},
        "status": {"allocatable": {"cpu": 99, "pods": 999}, "images": images},
    }


def pod(labels: Json | None = None, *, on: str = "", **more: Any) -> Json:
    """A pod of namespace ``default``; ``images`` are those of its containers, the rest is of its spec."""
    namespace, deleted = more.pop("namespace", "default"), more.pop("deleted", False)
    owner, images = more.pop("owner", None), more.pop("images", [""])
    metadata: Json = {"name": "p", "namespace": namespace, "labels": labels or {}}
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if owner:
        metadata["ownerReferences"] = [owner]
    spec: Json = {
        "containers": [{"name": f"c{i}", "image": image} for i, image in enumerate(images)]
    }
    if on:
        spec["nodeName"] = on
    return {"metadata": metadata, "spec": spec | more}


def named(pods: Sequence[Json]) -> list[Json]:
    """The same pods, each with a name and a uid of its own, as a cluster needs them."""
    return [
        one | {"metadata": one["metadata"] | {"name": f"q{i}", "uid": f"q{i}"}}
        for i, one in enumerate(pods)
    ]


def affinity(kind: str, *required: Json, preferred: Sequence[tuple[int, Json]] = ()) -> Json:
    """``kind`` is podAffinity or podAntiAffinity."""
    weighted = [{"weight": weight, "podAffinityTerm": one} for weight, one in preferred]
    return {kind: {REQUIRED: list(required), PREFERRED: weighted}}
