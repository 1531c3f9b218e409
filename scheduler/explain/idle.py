"""Why a workload has no pods, from its manifest and the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.explain.scene import Scene


def why(scene: Scene, body: Mapping[str, Any]) -> str:
    """The first reason that applies, with the field that it comes from."""
    spec = body.get("spec") or {}
    if spec.get("suspend") is True:
        return "it is suspended (spec.suspend is true)"
    for field in ("replicas", "parallelism"):
        if spec.get(field) == 0:
            return f"it requests none (spec.{field} is 0)"
    if body.get("kind") != "DaemonSet":
        return "it requests none"
    if not scene.nodes:
        return "there are no nodes"
    pod = (spec.get("template") or {}).get("spec") or {}
    labels = [node.metadata.labels or {} for node in scene.nodes.values()]
    for name, value in sorted((pod.get("nodeSelector") or {}).items()):
        if not any(one.get(name) == value for one in labels):
            return f"no node has the label {name}={value}"
    return f"no node of {len(labels)} suits it; its nodeSelector, its node affinity or the taints of the nodes keep it off"
