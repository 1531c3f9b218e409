"""Moves a pod, so that its controller makes it again, and waits for the successor.

Where that is wanted and the workload allows it, the successor comes first (``surge``); else the pod is evicted. The Eviction API
is called, so disruption budgets hold whatever a plan says. The scheduler chooses the successor's node.
"""

from __future__ import annotations

import asyncio

from scheduler.errors import ApiError
from scheduler.kube import answers
from scheduler.kube.client import ApiClient
from scheduler.kube.evict import requests, successors
from scheduler.kube.evict.successors import Came, Json, Order
from scheduler.kube.evict.surge.surging import surge_pod
from scheduler.state.pods import PodRecord
from scheduler.telling.departures import Departure

_POLL_SECONDS = 1.0
_WORDS = Departure(
    "moved", "Defragmented", "evenkeel plan defrag: moved", "Moved", "Moving", "moved", is_asked=True
)  # fmt: skip


async def move_pod(api: ApiClient, pod: PodRecord, order: Order) -> Came:
    """Move a pod, and wait until it is gone and another pod of its controller is ready.

    Args:
        api: the API server.
        pod: the pod, with the uid by which it was planned.
        order: what else is known of the move.
    """
    way = ""
    if order.is_planned is not None:
        try:
            found = await surge_pod(api, pod, order, order.is_planned)
        except ApiError as error:
            return Came(trouble=str(error), is_evicted=False)
        if isinstance(found, Came):
            return found
        way = f"the pod went first: {found}"
    return (await _evict_and_wait(api, pod, order))._replace(way=way)


async def _evict_and_wait(api: ApiClient, pod: PodRecord, order: Order) -> Came:
    loop = asyncio.get_running_loop()
    until = loop.time() + order.seconds
    is_evicted = False
    try:
        listed = await successors.list_made_by(api, pod.namespace, order.owner)
        before = {one["metadata"]["uid"] for one in listed}
        while (refusal := order.find_hindrance() or await _evict(api, pod)) is not None:
            if loop.time() >= until or order.find_hindrance():
                return Came(trouble=f"it was not evicted: {refusal}", is_evicted=False)
            await asyncio.sleep(_POLL_SECONDS)
        is_evicted = True
        while True:
            there = await successors.list_made_by(api, pod.namespace, order.owner)
            new = successors.list_new(there, before)
            is_gone = not successors.has_uid(there, pod.uid)
            if new and is_gone and successors.is_ready(new[0]):
                return successors.describe_successor(new[0])
            if loop.time() >= until:
                lack = _describe_lack(new[0] if new else None, is_gone=is_gone)
                return Came(trouble=f"{lack} after {order.seconds:g} s")
            await asyncio.sleep(_POLL_SECONDS)
    except ApiError as error:
        # Whether an eviction took effect that was not answered is not known.
        return Came(trouble=str(error), is_evicted=is_evicted or answers.is_unknown(error))


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
