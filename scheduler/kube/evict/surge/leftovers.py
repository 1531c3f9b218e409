"""Puts right what a process left that ended amid a move by one more replica.

A move is left alone until the time is over that it may take: another process may be at it.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from time import monotonic as get_time

from scheduler.api import kinds
from scheduler.errors import ApiError
from scheduler.kube import wall_clock
from scheduler.kube.client import ApiClient
from scheduler.kube.evict import successors
from scheduler.kube.evict.surge import marks, raising
from scheduler.kube.evict.surge.surging import finish
from scheduler.kube.evict.surge.workload import find_place

# A process that is at it still needs so long after that time; clocks differ.
_GRACE_SECONDS = 120
# So long the controllers may take to end pods, of all Deployments together.
_END_SECONDS = 60.0
# So many marked pods are looked at each time, drawn by lot: anybody who may make pods can write marks, and none may keep others
# from being looked at.
_MARKED_MAX = 100


async def mend_moves(api: ApiClient) -> list[str]:
    """Put right what is left of moves; return a sentence for each Deployment that had one pod more, and for each refusal.

    Anybody who may write a Deployment can make it look as if a move had left it; what is refused there holds nothing else up.

    Raises:
        ApiError: the objects cannot be listed.
    """
    now = wall_clock.now().timestamp() - _GRACE_SECONDS
    mended, lowered = list[str](), set[tuple[str, str]]()
    for one in (await api.get(kinds.DEPLOYMENTS.path))["items"]:
        until, meta = raising.find_raised(one), one["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        if until is None or until >= now:
            continue
        try:
            is_lowered = await raising.lower_replicas(api, namespace, name, until)
        except ApiError as error:
            mended.append(
                f"Deployment {namespace}/{name} keeps the pod more that a move had left: {error}"
            )
            continue
        if is_lowered:
            lowered.add((namespace, name))
            mended.append(
                f"Deployment {namespace}/{name} had one pod more, which a move had left; it wants one less again"
            )
    marked = [one for one in await marks.list_marked(api) if (marks.find_mark(one) or 0) < now]
    drawn = random.sample(marked, min(len(marked), _MARKED_MAX))
    ends_at = get_time() + _END_SECONDS
    for pod in drawn:
        try:
            await _remove_mark(api, pod, lowered, ends_at)
        except ApiError as error:
            meta = pod["metadata"]
            mended.append(
                f"pod {meta['namespace']}/{meta['name']} keeps the mark that a move had left: {error}"
            )
    return mended


async def _remove_mark(
    api: ApiClient, pod: successors.Json, lowered: Collection[tuple[str, str]], ends_at: float
) -> None:
    """Remove a mark, and those of the same move; of a pod of a Deployment once the controllers have done what this says."""
    until, namespace = marks.find_mark(pod) or 0, pod["metadata"]["namespace"]
    place = await find_place(api, namespace, str(successors.find_controller(pod).get("uid", "")))
    if place is None:
        await marks.remove_marks(api, [pod], until)
        return
    # The controllers need a moment to end a pod; else nothing is waited for.
    is_new = (namespace, place.name) in lowered
    await finish(api, place, until, max(0.0, ends_at - get_time()) if is_new else 0.0)
