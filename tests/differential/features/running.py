"""What may be special about pods that have a node: they end, have ended, or are being resized."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.differential.worlds import Feature, World

Json = dict[str, Any]
_DELETED_AT = "2026-01-01T00:00:00Z"


def _terminating(rng: Random, world: World) -> None:
    """Their time is only a word for the API server, which sets its own."""
    for pod in world.pods:
        if rng.random() < 0.35:
            pod["metadata"]["deletionTimestamp"] = _DELETED_AT


def _finished(rng: Random, world: World) -> None:
    for pod in world.pods:
        if rng.random() < 0.35:
            pod["status"] = {"phase": rng.choice(["Succeeded", "Failed"])}


def _resized(rng: Random, world: World) -> None:
    for pod in world.pods:
        if rng.random() < 0.6:
            _resize(rng, pod)


def _resize(rng: Random, pod: Json) -> None:
    spec, status = pod["spec"], pod.setdefault("status", {})
    status["phase"] = status.get("phase", "Running")
    status["containerStatuses"] = [_status(rng, one) for one in spec["containers"]]
    if spec.get("initContainers"):
        status["initContainerStatuses"] = [_status(rng, one) for one in spec["initContainers"]]
    if rng.random() < 0.6:
        reason = rng.choice(["Infeasible", "Deferred"])
        status["conditions"] = [{"type": "PodResizePending", "status": "True", "reason": reason}]
    if "resources" in spec and rng.random() < 0.6:
        status["allocatedResources"] = _amounts(rng)
        status["resources"] = {"requests": _amounts(rng)}


def _status(rng: Random, container: Json) -> Json:
    found: Json = {
        "name": container["name"],
        "image": container["image"],
        "imageID": "",
        "ready": True,
        "restartCount": 0,
    }
    if rng.random() < 0.8:
        found["allocatedResources"] = _amounts(rng)
    if rng.random() < 0.8:
        found["resources"] = {"requests": _amounts(rng)}
    return found


def _amounts(rng: Random) -> dict[str, str]:
    return {
        "cpu": rng.choice(["100m", "500m", "1", "2", "3"]),
        "memory": rng.choice(["128Mi", "512Mi", "1Gi", "3Gi", "6Gi"]),
    }


FEATURES = (
    Feature(name="terminating pods", world=_terminating),
    Feature(name="finished pods", world=_finished),
    Feature(name="resized pods", world=_resized),
)
