"""HAMi's node lock: the device plugin serves one pod at a time, and the lock names this pod.

The lock is an annotation ``time,namespace,pod`` on the node, written with the node's resourceVersion
so that a race ends in 409. A lock may be taken over when it is ours, when it is older than five minutes, or when its
holder is gone, done, or a pod of ours that was never bound (left by a crash).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection
from typing import Any

from scheduler.api import hami, kinds, names
from scheduler.errors import ApiError, BadInput
from scheduler.kube import answers, client, wall_clock
from scheduler.kube.bind.jobs import Answer, Contended, Done, Job
from scheduler.kube.client import ApiClient

_RACES = 5


class NodeLock:
    """The step before the bind of a pod that HAMi's device plugin has to serve.

    Args:
        api: the API server.
        schedulers: the scheduler names of this process, whose unbound pods cannot rightly hold a lock.
        timeout_seconds: the age from which a lock may be taken over.
    """

    name = "node lock"
    is_in_turn, is_final, waiting = True, False, None

    def __init__(
        self, api: ApiClient, *, schedulers: Collection[str], timeout_seconds: float
    ) -> None:
        self._api = api
        self._schedulers = frozenset(schedulers)
        self._timeout = timeout_seconds

    def is_needed_by(self, job: Job) -> bool:
        """Whether a plugin that finds its pod by the lock has to serve the pod."""
        return job.takes_turns

    async def take(self, job: Job, may_write: Callable[[], bool]) -> Answer:
        """Make the lock name the pod; contended while another pod rightly holds the lock.

        Args:
            job: a pod and its node.
            may_write: whether the lock may be written; called right before that.

        Raises:
            ApiError: the node cannot be read or written, or is gone.
        """
        namespace, pod = job.pod.namespace, job.pod.name
        for _ in range(_RACES):
            found = await self._api.get(kinds.NODES.find_path(job.node))
            held = (found["metadata"].get("annotations") or {}).get(names.HAMI_LOCK, "")
            if held and not await self._may_take_over(held, namespace, pod):
                return Contended(held)
            if not may_write():
                return Contended("the next leader")
            now = wall_clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
            try:
                await self._write_lock(found, f"{now},{namespace},{pod}")
            except ApiError as error:
                if answers.is_conflict(error):
                    continue
                raise
            return Done()
        return Contended("writers of the node")

    async def undo(self, job: Job) -> None:
        """Remove the lock if it names the pod.

        Raises:
            ApiError: the node cannot be read or written; a node that is gone is no error.
        """
        for _ in range(_RACES):
            try:
                found = await self._api.get(kinds.NODES.find_path(job.node))
                held = (found["metadata"].get("annotations") or {}).get(names.HAMI_LOCK, "")
                if held.endswith(f",{job.pod.namespace},{job.pod.name}"):
                    await self._write_lock(found, None)
            except ApiError as error:
                if answers.is_conflict(error):
                    continue
                if not answers.is_not_found(error):
                    raise
            return

    async def _write_lock(self, node: dict[str, Any], value: str | None) -> None:
        metadata = node["metadata"]
        body = {
            "metadata": {
                "resourceVersion": metadata["resourceVersion"],
                "annotations": {names.HAMI_LOCK: value},
            }
        }
        path = kinds.NODES.find_path(metadata["name"])
        await self._api.send("PATCH", path, body, content_type=client.MERGE_PATCH)

    async def _may_take_over(self, held: str, namespace: str, pod: str) -> bool:
        try:
            holder = hami.read_lock_holder(held)
        except BadInput:
            # A lock that cannot be read cannot be released either.
            return True
        age = _get_age(held.split(",", 1)[0])
        if age is None or abs(age) > self._timeout:
            # It is too old, or from a future that no error of a clock explains.
            return True
        if holder is None:
            return False
        if holder[1:] == (namespace, pod):
            return True
        try:
            other = await self._api.get(kinds.PODS.find_path(holder[2], holder[1]))
        except ApiError as error:
            if answers.is_not_found(error):
                return True
            raise
        return self._is_over(other)

    def _is_over(self, holder: dict[str, Any]) -> bool:
        spec, annotations = holder["spec"], holder["metadata"].get("annotations") or {}
        if not spec.get("nodeName"):
            # Pods of one node take turns in this process, so an unbound holder of ours was left by a leader
            # that died between its lock and its bind; the bind was fenced since.
            return spec.get("schedulerName") in self._schedulers
        if holder.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
            return True
        return annotations.get(names.HAMI_BIND_PHASE) in {names.BIND_SUCCESS, names.BIND_FAILED}


def _get_age(text: str) -> float | None:
    """Return the seconds since a lock was taken; None if the text is no time that a clock can show."""
    try:
        taken_at = dt.datetime.fromisoformat(text)
        if taken_at.tzinfo is None:
            taken_at = taken_at.astimezone()
        return (wall_clock.now() - taken_at).total_seconds()
    except (ValueError, OverflowError, OSError):
        return None
