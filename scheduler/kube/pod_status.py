"""Writes on a pod's status. Each names the pod's uid: another pod of the same name is left alone."""

from __future__ import annotations

from typing import Any

from scheduler.api import kinds
from scheduler.kube import client
from scheduler.kube.client import ApiClient
from scheduler.state.pods import PodRecord


async def write_nomination(api: ApiClient, pod: PodRecord, node: str) -> None:
    """Write the node to which a pod is nominated; an empty node removes the nomination.

    Raises:
        ApiError: the API server refused.
    """
    await patch_status(api, pod, {"nominatedNodeName": node or None})


async def patch_status(api: ApiClient, pod: PodRecord, status: dict[str, Any]) -> None:
    """Write some fields of the status; of a list whose items have a key, write those items only.

    Raises:
        ApiError: the API server refused.
    """
    body = {"metadata": {"uid": pod.uid}, "status": status}
    await api.send("PATCH", f"{get_path(pod)}/status", body, content_type=client.STRATEGIC_PATCH)


def get_path(pod: PodRecord) -> str:
    """Return the path of a pod at the API server."""
    return kinds.PODS.find_path(pod.name, pod.namespace)
