"""Writes on a pod's status. Each names the pod's uid: another pod of its name is left alone."""

from __future__ import annotations

from typing import Any

from scheduler.api import kinds
from scheduler.kube import client
from scheduler.kube.client import ApiClient
from scheduler.state.pods import PodRecord


async def nominate(api: ApiClient, pod: PodRecord, node: str) -> None:
    """Write which node a pod is nominated to; none when that is empty.

    Raises:
        ApiError: the API server refused.
    """
    await patch(api, pod, {"nominatedNodeName": node or None})


async def patch(api: ApiClient, pod: PodRecord, status: dict[str, Any]) -> None:
    """Write some fields; of lists whose items have a key those items alone.

    Raises:
        ApiError: the API server refused.
    """
    body = {"metadata": {"uid": pod.uid}, "status": status}
    await api.send("PATCH", f"{path(pod)}/status", body, content_type=client.STRATEGIC_PATCH)


def path(pod: PodRecord) -> str:
    """Where the pod is at the API server."""
    return kinds.PODS.find_path(pod.name, pod.namespace)
