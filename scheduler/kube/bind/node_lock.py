"""HAMi's node lock: the device plugin serves one pod at a time, and the lock names this pod.

The lock is an annotation ``time,namespace,pod`` on the node, written with the node's resourceVersion
so that a race ends in 409. A lock may be taken over when it is ours, when it is older than five minutes, or when its
holder is gone, done, or a pod of ours that was never bound (left by a crash).

Some vendors have a lock of their own, which is a bare time. It is ours if it is the time that was written for the pod.
A pod with devices of several vendors takes all locks at once, or none.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping
from typing import Any

from scheduler.api import hami, kinds, names
from scheduler.devices.contract import Lock
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
        """Make the locks name the pod; contended while another pod rightly holds one of them.

        Args:
            job: a pod and its node.
            may_write: whether the lock may be written; called right before that.

        Raises:
            ApiError: the node cannot be read or written, or is gone.
        """
        for _ in range(_RACES):
            found = await self._api.get(kinds.NODES.find_path(job.node))
            if contender := await self._find_contender(found, job):
                return Contended(contender)
            if not may_write():
                return Contended("the next leader")
            job.locked_at = wall_clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
            try:
                await self._write_locks(
                    found, {one.key: _write(one, job) for one in job.list_locks()}
                )
            except ApiError as error:
                if answers.is_conflict(error):
                    # Nothing was written: a lock of this time is another one's.
                    job.locked_at = ""
                    continue
                raise
            return Done()
        return Contended("writers of the node")

    async def undo(self, job: Job) -> None:
        """Remove the locks that are the pod's.

        Raises:
            ApiError: the node cannot be read or written; a node that is gone is no error.
        """
        for _ in range(_RACES):
            try:
                found = await self._api.get(kinds.NODES.find_path(job.node))
                notes = found["metadata"].get("annotations") or {}
                own = [one for one in job.list_locks() if _is_own(one, notes.get(one.key, ""), job)]
                if own:
                    await self._write_locks(found, dict.fromkeys((one.key for one in own), None))
            except ApiError as error:
                if answers.is_conflict(error):
                    continue
                if not answers.is_not_found(error):
                    raise
            return

    async def _write_locks(self, node: dict[str, Any], values: Mapping[str, str | None]) -> None:
        metadata = node["metadata"]
        body = {
            "metadata": {
                "resourceVersion": metadata["resourceVersion"],
                "annotations": values,
            }
        }
        path = kinds.NODES.find_path(metadata["name"])
        await self._api.send("PATCH", path, body, content_type=client.MERGE_PATCH)

    async def _find_contender(self, node: dict[str, Any], job: Job) -> str:
        """Find a lock that the pod needs and another one holds; empty if there is none."""
        notes = node["metadata"].get("annotations") or {}
        for lock in job.list_locks():
            held = notes.get(lock.key, "")
            if held and not await self._may_take_over(lock, held, job):
                return str(held)
        return ""

    async def _may_take_over(self, lock: Lock, held: str, job: Job) -> bool:
        try:
            holder = hami.read_lock_holder(held) if lock.names_pod else None
        except BadInput:
            # A lock that cannot be read cannot be released either.
            return True
        age = _get_age(held.split(",", 1)[0] if lock.names_pod else held)
        most = self._timeout if lock.seconds is None else lock.seconds
        if age is None or abs(age) > most or _is_own(lock, held, job):
            # It is too old, or from a future that no error of a clock explains.
            return True
        if holder is None:
            return False
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


def _write(lock: Lock, job: Job) -> str:
    if not lock.names_pod:
        return job.locked_at
    return f"{job.locked_at},{job.pod.namespace},{job.pod.name}"


def _is_own(lock: Lock, held: str, job: Job) -> bool:
    if not lock.names_pod:
        return bool(held) and held == job.locked_at
    return held.endswith(f",{job.pod.namespace},{job.pod.name}")


def _get_age(text: str) -> float | None:
    """Return the seconds since a lock was taken; None if the text is no time that a clock can show."""
    try:
        taken_at = dt.datetime.fromisoformat(text)
        if taken_at.tzinfo is None:
            taken_at = taken_at.astimezone()
        return (wall_clock.now() - taken_at).total_seconds()
    except (ValueError, OverflowError, OSError):
        return None
