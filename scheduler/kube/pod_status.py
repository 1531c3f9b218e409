"""Writes on a pod's status. Each names the pod's uid: another pod of the same name is left alone."""

from __future__ import annotations

from typing import Any

import msgspec

from scheduler.api import kinds, wire
from scheduler.kube import client
from scheduler.kube.client import ApiClient
from scheduler.state.pods import PodRecord


class _Written(wire.Wire):
    """What is read of a pod that was written."""

    metadata: wire.Meta = msgspec.field(default_factory=wire.Meta)


_decoder = msgspec.json.Decoder(_Written)


async def write_nomination(api: ApiClient, pod: PodRecord, node: str) -> None:
    """Write the node to which a pod is nominated; an empty node removes the nomination.

    Raises:
        ApiError: the API server refused.
    """
    await patch_status(api, pod, {"nominatedNodeName": node or None})


async def patch_status(api: ApiClient, pod: PodRecord, status: dict[str, Any]) -> str:
    """Write some fields of the status; of a list whose items have a key, write those items only.

    Return the version of the pod after the write.

    Raises:
        ApiError: the API server refused.
    """
    body = {"metadata": {"uid": pod.uid}, "status": status}
    path = f"{get_path(pod)}/status"
    answer = await api.send("PATCH", path, body, content_type=client.STRATEGIC_PATCH)
    return _decoder.decode(answer).metadata.resource_version


def get_path(pod: PodRecord) -> str:
    """Return the path of a pod at the API server."""
    return kinds.PODS.find_path(pod.name, pod.namespace)
