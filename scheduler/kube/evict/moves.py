"""Moves a pod: it is evicted, so that its controller makes it again, and the successor is awaited.

The Eviction API is called, so disruption budgets hold whatever a plan says. Nothing is written on the successor: the
scheduler chooses its node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from scheduler.api import kinds
from scheduler.errors import ApiError
from scheduler.kube import answers
from scheduler.kube.client import ApiClient
from scheduler.kube.evict import requests
from scheduler.state.pods import PodRecord
from scheduler.telling.departures import Departure

_POLL_SECONDS = 1.0
_WORDS = Departure(
    "moved", "Defragmented", "evenkeel plan defrag: moved", "Moved", "Moving", "moved", is_asked=True
)  # fmt: skip

Json = Mapping[str, Any]


class Came(NamedTuple):
    """Where the successor of a moved pod is.

    Attributes:
        name, node: the successor and its node; empty if there is none.
        notes: its annotations.
        trouble: why the move has come to no end; empty if it has.
        is_evicted: whether the pod was evicted.
    """

    name: str = ""
    node: str = ""
    notes: Mapping[str, str] = {}
    trouble: str = ""
    is_evicted: bool = True


async def move_pod(
    api: ApiClient,
    pod: PodRecord,
    owner: str,
    *,
    seconds: float,
    find_hindrance: Callable[[], str] = str,
) -> Came:
    """Evict a pod, and wait until it is gone and another pod of its controller is ready.

    Args:
        api: the API server.
        pod: the pod, with the uid by which it was planned.
        owner: the uid of its controller.
        seconds: how long the eviction and the successor may take together.
        find_hindrance: says right before an eviction why the pod may not go any more; empty if it may.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    is_evicted = False
    try:
        before = {one["metadata"]["uid"] for one in await _list_made_by(api, pod, owner)}
        while (refusal := find_hindrance() or await _evict(api, pod)) is not None:
            if loop.time() >= until or find_hindrance():
                return Came(trouble=f"it was not evicted: {refusal}", is_evicted=False)
            await asyncio.sleep(_POLL_SECONDS)
        is_evicted = True
        while True:
            there = await _list_made_by(api, pod, owner)
            found, is_gone = _find_new(there, before), not _has_pod(there, pod)
            if found is not None and is_gone and _is_ready(found):
                break
            if loop.time() >= until:
                return Came(trouble=f"{_describe_lack(found, is_gone=is_gone)} after {seconds:g} s")
            await asyncio.sleep(_POLL_SECONDS)
    except ApiError as error:
        # Whether an eviction took effect that was not answered is not known.
        return Came(trouble=str(error), is_evicted=is_evicted or answers.is_unknown(error))
    meta = found["metadata"]
    return Came(meta["name"], found["spec"]["nodeName"], meta.get("annotations") or {})


def _describe_lack(found: Json | None, *, is_gone: bool) -> str:
    if found is None:
        return "no successor had a node"
    name, node = found["metadata"]["name"], found["spec"]["nodeName"]
    return f"its successor {name} on {node} was not ready" if is_gone else "it had not ended"


async def _evict(api: ApiClient, pod: PodRecord) -> str | None:
    """Evict a pod; why a budget does not let it go now, None if it goes.

    Raises:
        ApiError: the API server refused for another reason, or the pod is gone or another one.
    """
    try:
        await requests.evict_pod(api, pod, _WORDS)
    except ApiError as error:
        if answers.is_eviction_refused(error):
            return str(error)
        raise
    return None


async def _list_made_by(api: ApiClient, pod: PodRecord, owner: str) -> list[Json]:
    listed = await api.get(kinds.PODS.find_list_path(pod.namespace))
    return [
        one
        for one in listed["items"]
        if any(
            of.get("controller") and of.get("uid") == owner
            for of in one["metadata"].get("ownerReferences") or ()
        )
    ]


def _has_pod(pods: Collection[Json], pod: PodRecord) -> bool:
    return any(one["metadata"]["uid"] == pod.uid for one in pods)


def _find_new(pods: Collection[Json], before: Collection[str]) -> Json | None:
    """Find a pod that was not there before, and has a node; a ready one comes first."""
    new = [one for one in pods if one["metadata"]["uid"] not in before]
    there = [one for one in new if one["spec"].get("nodeName")]
    return next(filter(_is_ready, there), there[0] if there else None)


def _is_ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
