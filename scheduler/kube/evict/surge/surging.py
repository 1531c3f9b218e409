"""One move by one more replica, in the order of its writes.

1. The pod is marked as the one that goes.
2. The Deployment wants one pod more, if it is still as it was looked at.
3. Once the successor is ready where it should be, and the controllers know that, the Deployment wants one pod less. If something
   speaks against the move, the successor is marked before that, so that it goes and the pod stays.
4. The marks are removed from those pods that are still there.

After each of them the process may be killed: ``leftovers`` does the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import monotonic as get_time

from scheduler.api import kinds
from scheduler.errors import ApiError
from scheduler.kube import answers, wall_clock
from scheduler.kube.client import ApiClient
from scheduler.kube.evict import requests, successors
from scheduler.kube.evict.successors import Came, Order
from scheduler.kube.evict.surge import marks, raising, standing
from scheduler.kube.evict.surge.allowing import find_objection
from scheduler.kube.evict.surge.standing import Raised
from scheduler.kube.evict.surge.workload import Place, Workload, find_place, read_workload
from scheduler.state.pods import PodRecord

POLL_SECONDS = 1.0
# So long the controllers may take to end a pod, and so long it may take to end, if no more time is left.
_END_SECONDS = 60.0


async def surge_pod(
    api: ApiClient, pod: PodRecord, order: Order, is_planned: Callable[[Came], bool]
) -> Came | str:
    """Move a pod by one more replica; or say why that is not done, with nothing left of it.

    Raises:
        ApiError: the API server refused, or did not answer; the pod is where it was.
    """
    place = await find_place(api, pod.namespace, order.owner)
    if place is None:
        return "its controller is not a ReplicaSet of a Deployment"
    now = await read_workload(api, place)
    if now.deployment is not None and raising.find_raised(now.deployment) is not None:
        # An eviction would disturb that move.
        held = f"it was not moved: Deployment {place.name} has one pod more by another move"
        return Came(trouble=held, is_evicted=False)
    if objection := await _find_objection(api, pod, now):
        return objection
    if hindrance := order.find_hindrance():
        return Came(trouble=f"it was not moved: {hindrance}", is_evicted=False)
    until = int(wall_clock.now().timestamp() + order.seconds)
    before = frozenset(one["metadata"]["uid"] for one in now.pods)
    generation = int(now.deployment["metadata"].get("generation", 0)) + 1 if now.deployment else 0
    raised = Raised(pod.uid, before, generation, until, is_planned)
    return await _Surge(api, place, order, raised).run(pod, now)


async def _find_objection(api: ApiClient, pod: PodRecord, now: Workload) -> str:
    if not successors.has_uid(now.alive, pod.uid):
        return "it is not there any more"
    listed = []
    for kind in (kinds.AUTOSCALERS, kinds.CLAIMS):
        try:
            listed.append((await api.get(kind.find_list_path(pod.namespace)))["items"])
        except ApiError as error:
            if answers.is_transient(error):
                raise
            return f"{kind.plural} cannot be listed: {error}"
    autoscalers, claims = listed
    return find_objection(now, autoscalers, claims) or await requests.find_refusal(api, pod)


class _Surge:
    """One move whose workload allows it."""

    def __init__(self, api: ApiClient, place: Place, order: Order, raised: Raised) -> None:
        self._api, self._place, self._order, self._raised = api, place, order, raised
        self._ends_at = get_time() + order.seconds
        # Why it is not known whether the first writes took effect; empty if it is.
        self._doubt = ""

    async def run(self, pod: PodRecord, now: Workload) -> Came | str:
        """Move the pod."""
        if refusal := await self._begin(now):
            return refusal
        try:
            trouble = await self._await_successor(pod)
        except asyncio.CancelledError:
            # The process ends: what this does not do is left to the next one.
            with suppress(ApiError):
                await self._mark_new()
                place, until = self._place, self._raised.until
                await raising.lower_replicas(self._api, place.namespace, place.name, until)
            raise
        try:
            return await self._end(trouble)
        except ApiError as error:
            return Came(trouble=f"what is left of the move is put right by a later one: {error}")

    async def _end(self, trouble: str) -> Came:
        """Have one pod less again: the one that is moved, or its successor if something speaks against the move."""
        gives_up_at = get_time() + _END_SECONDS
        is_marked = not trouble
        while not is_marked:
            try:
                await self._mark_new()
                is_marked = True
            except ApiError:
                if get_time() >= gives_up_at:
                    raise
            await asyncio.sleep(POLL_SECONDS)
        left = max(self._ends_at - get_time(), _END_SECONDS)
        await finish(self._api, self._place, self._raised.until, left)
        return await self._describe_end(trouble and (self._doubt or trouble))

    async def _begin(self, now: Workload) -> Came | str:
        """Mark the pod, and have one more; return why that cannot be, empty if it may have been done."""
        until = self._raised.until
        try:
            for one in self._list_moved(now.pods):
                await marks.mark_pod(self._api, one, until)
            if now.deployment is not None:
                await raising.raise_replicas(self._api, now.deployment, until)
        except ApiError as error:
            # A call that was not answered may have taken effect: what follows finds out.
            if answers.is_unknown(error):
                self._doubt = str(error)
                return ""
            # The marks of a move that another process has begun at this time are the same.
            moved = self._list_moved(await self._list_pods())
            await marks.remove_marks(self._api, moved, until)
            if answers.is_conflict(error):
                # What was looked at holds no more: it may be another move, which an eviction would disturb.
                held = f"it was not moved: Deployment {self._place.name} was written meanwhile"
                return Came(trouble=held, is_evicted=False)
            return f"Deployment {self._place.name} could not have one more: {error}"
        return ""

    async def _mark_new(self) -> None:
        fresh = standing.list_fresh(self._raised, await read_workload(self._api, self._place))
        for one in fresh:
            await marks.mark_successor(self._api, one, self._raised.until)

    def _list_moved(self, pods: Iterable[successors.Json]) -> list[successors.Json]:
        """List the pod that is moved, if it is among others."""
        return [one for one in pods if one["metadata"]["uid"] == self._raised.uid]

    async def _list_pods(self) -> list[successors.Json]:
        return await successors.list_made_by(self._api, self._place.namespace, self._place.set_uid)

    async def _await_successor(self, pod: PodRecord) -> str:
        """Wait until the successor is ready where it should be; return why the pod stays, empty if it may go."""
        while True:
            try:
                now = await read_workload(self._api, self._place)
                ready, trouble = standing.find_standing(self._raised, now)
                if trouble:
                    return trouble
                if ready is not None:
                    refusal = await requests.find_refusal(self._api, pod)
                    return self._order.find_hindrance() or refusal
                lack = standing.describe_lack(self._raised, now)
            except ApiError as error:
                lack = str(error)
            if get_time() >= self._ends_at:
                return lack
            await asyncio.sleep(POLL_SECONDS)

    async def _describe_end(self, trouble: str) -> Came:
        """Say what has become of the move: the controller chose which pod went."""
        pods = await self._list_pods()
        old = next((one for one in pods if one["metadata"]["uid"] == self._raised.uid), None)
        if old is not None and not successors.is_ending(old):
            why = trouble or "another pod of its Deployment went, which was not ready"
            return Came(trouble=f"it stays: {why}", is_evicted=False, is_taken_back=True)
        if old is not None:
            return Came(trouble=f"it had not ended after {self._order.seconds:g} s")
        new = [one for one in successors.list_new(pods, self._raised.before) if successors.is_ready(one)]  # fmt: skip
        if not new:
            return Came(trouble=trouble or "no successor is ready any more")
        planned = [one for one in new if self._raised.is_planned(successors.describe_successor(one))]  # fmt: skip
        came = successors.describe_successor((planned or new)[0])
        return came._replace(way="which was ready before the pod went")


async def finish(api: ApiClient, place: Place, until: int, seconds: float) -> bool:
    """Have one pod less again, and remove the marks once the controllers have ended a pod and it is gone.

    What is not reached within so many seconds is left to a later call; returns whether all was.

    Raises:
        ApiError: the API server refused, or did not answer.
    """
    ends_at = get_time() + seconds
    while True:
        is_late = get_time() >= ends_at
        try:
            await raising.lower_replicas(api, place.namespace, place.name, until)
            now = await read_workload(api, place)
            marked = [one for one in now.pods if marks.find_mark(one) == until]
            alive = [one for one in marked if not successors.is_ending(one)]
            if now.is_settled and len(alive) == len(marked):
                await marks.remove_marks(api, alive, until)
                return True
        except ApiError:
            if is_late:
                raise
        if is_late:
            return False
        await asyncio.sleep(POLL_SECONDS)
