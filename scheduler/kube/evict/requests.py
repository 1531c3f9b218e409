"""The three requests of a preemption. Each names the pod's uid: another pod of its name is left alone."""

from __future__ import annotations

from typing import Any

from scheduler.api import names
from scheduler.kube import client, wall_clock
from scheduler.kube.client import ApiClient
from scheduler.state.pods import PodRecord


async def condition(api: ApiClient, victim: PodRecord, scheduler: str) -> None:
    """Say on a pod why it is about to be deleted: who restarts it does not count that as its failure.

    Raises:
        ApiError: the API server refused.
    """
    said = {
        "type": names.DISRUPTION_TARGET,
        "observedGeneration": victim.generation,
        "status": "True",
        "reason": names.PREEMPTED_BY_SCHEDULER,
        "message": f"{scheduler}: preempting to accommodate a higher priority pod",
        "lastTransitionTime": wall_clock.now().strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    await _patch_status(api, victim, {"conditions": [said]})


async def delete(api: ApiClient, victim: PodRecord, _: str) -> None:
    """Have a pod deleted, with the time that it gives itself.

    Raises:
        ApiError: as ``condition``.
    """
    options = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": victim.uid},
    }
    await api.send("DELETE", _path(victim), options)


async def nominate(api: ApiClient, pod: PodRecord, node: str) -> None:
    """Write which node a pod is nominated to; none when that is empty.

    Raises:
        ApiError: as ``condition``.
    """
    await _patch_status(api, pod, {"nominatedNodeName": node or None})


async def _patch_status(api: ApiClient, pod: PodRecord, status: dict[str, Any]) -> None:
    body = {"metadata": {"uid": pod.uid}, "status": status}
    await api.send("PATCH", f"{_path(pod)}/status", body, content_type=client.STRATEGIC_PATCH)


def _path(pod: PodRecord) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
