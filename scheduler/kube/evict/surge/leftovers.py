"""Puts right what a process left that ended amid a move by one more replica.

A move is left alone until the time is over that it may take: another process may be at it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from scheduler.api import kinds
from scheduler.kube import wall_clock
from scheduler.kube.client import ApiClient
from scheduler.kube.evict import successors
from scheduler.kube.evict.surge import marks, raising
from scheduler.kube.evict.surge.surging import finish
from scheduler.kube.evict.surge.workload import Place, find_place

# A process that is at it still needs so long after that time; clocks differ.
_GRACE_SECONDS = 120
# So long the controllers may take to end a pod.
_END_SECONDS = 60.0
# So many marked pods are looked at each time, drawn by lot: anybody who may make pods can write marks, and none may keep others
# from being looked at.
_MARKED_MAX = 100


async def mend_moves(api: ApiClient) -> list[str]:
    """Put right what is left of moves; return a sentence for each Deployment that had one pod more.

    Raises:
        ApiError: the API server refused, or did not answer.
    """
    now = wall_clock.now().timestamp() - _GRACE_SECONDS
    mended, lowered = list[str](), set[tuple[str, str]]()
    for one in (await api.get(kinds.DEPLOYMENTS.path))["items"]:
        until, meta = raising.find_raised(one), one["metadata"]
        namespace, name = meta["namespace"], meta["name"]
        if until is None or until >= now:
            continue
        if await raising.lower_replicas(api, namespace, name, until):
            lowered.add((namespace, name))
            mended.append(
                f"Deployment {namespace}/{name} had one pod more, which a move had left; it wants one less again"
            )
    marked = [one for one in await marks.list_marked(api) if (marks.find_mark(one) or 0) < now]
    drawn = random.sample(marked, min(len(marked), _MARKED_MAX))
    for place, until in await _find_places(api, drawn):
        # The controllers need a moment to end a pod; else nothing is waited for.
        is_new = (place.namespace, place.name) in lowered
        await finish(api, place, until, _END_SECONDS if is_new else 0.0)
    return mended


async def _find_places(api: ApiClient, marked: Iterable[successors.Json]) -> set[tuple[Place, int]]:
    """Find the Deployments of marked pods, and the ends of their moves; pods of no Deployment lose their marks."""
    found = set[tuple[Place, int]]()
    for pod in marked:
        until = marks.find_mark(pod) or 0
        uid = str(successors.find_controller(pod).get("uid", ""))
        place = await find_place(api, pod["metadata"]["namespace"], uid)
        if place is None:
            await marks.remove_marks(api, [pod], until)
        else:
            found.add((place, until))
    return found
