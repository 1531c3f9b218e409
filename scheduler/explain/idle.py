"""Explains why a workload has no pods, from its manifest and the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.explain.scene import Scene
from scheduler.simulate.workloads.daemons import explain_unsuited


def explain_idle(scene: Scene, body: Mapping[str, Any]) -> str:
    """Find the first reason that applies, with its field."""
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
    return explain_unsuited(spec, scene.nodes.values())
