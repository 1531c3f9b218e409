"""Marks of the pods of which a ReplicaSet is to choose one that goes.

Both marks are lower than any deletion cost of the other pods, which have none. So whichever marks the controller has seen when
it chooses: of pods that are ready, it is one of the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from scheduler.api import kinds, names
from scheduler.errors import ApiError
from scheduler.kube import answers, client
from scheduler.kube.client import ApiClient

Json = Mapping[str, Any]
# The least figures that the controller reads: of the pod that is moved; and of its successor, if that goes in its place.
_LEAST = -(2**31)
_OF_OLD, _OF_NEW = str(_LEAST + 1), str(_LEAST)


async def mark_pod(api: ApiClient, pod: Json, until: int) -> None:
    """Mark a pod as the one that goes.

    Raises:
        ApiError: the API server refused.
    """
    await _write(api, pod, str(until), _OF_OLD)


async def mark_successor(api: ApiClient, pod: Json, until: int) -> None:
    """Mark a successor as the one that goes before the pod that is moved.

    Raises:
        ApiError: the API server refused.
    """
    await _write(api, pod, str(until), _OF_NEW)


async def remove_marks(api: ApiClient, pods: Iterable[Json], until: int) -> None:
    """Remove the marks of a move from those pods that have them.

    Raises:
        ApiError: the API server refused.
    """
    for pod in pods:
        if find_mark(pod) == until:
            await _write(api, pod, None, None)


async def list_marked(api: ApiClient) -> list[Json]:
    """List the pods of all namespaces that have a mark.

    Raises:
        ApiError: the API server refused.
    """
    listed: list[Json] = (await api.get(kinds.PODS.path, {"labelSelector": names.SURGE}))["items"]
    return listed


def find_mark(pod: Json) -> int | None:
    """Find until when the move may take of which a pod has a mark; 0 if somebody else wrote it; None without one."""
    text = (pod["metadata"].get("labels") or {}).get(names.SURGE)
    if text is None:
        return None
    return int(text) if text.isascii() and text.isdigit() else 0


async def _write(api: ApiClient, pod: Json, label: str | None, cost: str | None) -> None:
    """Write both parts of a mark in one step, for which the right to write a status is enough; nothing if the pod is gone."""
    meta = pod["metadata"]
    body = {
        "metadata": {
            "uid": meta["uid"],
            "labels": {names.SURGE: label},
            "annotations": {names.DELETION_COST: cost},
        }
    }
    path = f"{kinds.PODS.find_path(meta['name'], meta['namespace'])}/status"
    try:
        await api.send("PATCH", path, body, content_type=client.MERGE_PATCH)
    except ApiError as error:
        # A conflict says that another pod has the name by now.
        if not (answers.is_not_found(error) or answers.is_conflict(error)):
            raise
