"""HAMi's node lock: the device plugin serves one pod at a time, and the lock names this pod.

The lock is an annotation ``time,namespace,pod`` on the node, written with the node's resourceVersion
so that a race ends in 409. It ends by facts about the pod, see ``holders``: it may be taken over when it is ours, or when its
pod is gone, done, served, started, on another node, or a pod of ours that was never bound (left by a crash). As long
as its pod is on the node and not served, it is kept, however old it is: a plugin that wakes up would give that pod the
limits of the next one.

Age ends only a lock that no fact can end. That is the lock of a pod of another scheduler that is bound nowhere, because that
scheduler may have died between lock and bind, and a lock that names no pod: the bare time of old plugins, and the locks of
some vendors. Such a vendor's lock is ours if it is the time that was written for the pod.

The pod is read from the API server, and only when a lock is found with another pod: no stream has the unbound pods of other
schedulers, and a lock that was just read may be newer than what the streams have delivered.

A pod with devices of several vendors takes all locks at once, or none.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping
from typing import Any

from scheduler.api import hami, kinds
from scheduler.devices.contract import Lock
from scheduler.errors import ApiError, BadInput
from scheduler.kube import answers, client, wall_clock
from scheduler.kube.bind.holders import Hold, Holder, judge_hold, read_holder
from scheduler.kube.bind.jobs import Answer, Contended, Done, Job
from scheduler.kube.client import ApiClient

_RACES = 5
# For so many locks it is remembered which pod they were written for; what is forgotten ends by age at the latest.
_REMEMBERED_MAX = 10_000


class NodeLock:
    """The step before the bind of a pod that HAMi's device plugin has to serve.

    Args:
        api: the API server.
        schedulers: the scheduler names of this process, whose unbound pods cannot rightly hold a lock.
        timeout_seconds: the age from which a lock may be taken over that no fact can end.
    """

    name = "node lock"
    is_in_turn, is_final, waiting = True, False, None

    def __init__(
        self, api: ApiClient, *, schedulers: Collection[str], timeout_seconds: float
    ) -> None:
        self._api = api
        self._schedulers = frozenset(schedulers)
        self._timeout = timeout_seconds
        # By node and key of the lock: what was written, and the uid of the pod for which it was.
        self._written: dict[tuple[str, str], tuple[str, str]] = {}

    def is_needed_by(self, job: Job) -> bool:
        """Whether a plugin that finds its pod by the lock has to serve the pod."""
        return bool(job.list_locks())

    def has_written(self, node: str, key: str, text: str) -> bool:
        """Whether this process has written a lock of a node."""
        return self._written.get((node, key), ("", ""))[0] == text

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
            if (contended := await self._find_contender(found, job)) is not None:
                return contended
            if not may_write():
                return Contended("the next leader")
            job.locked_at = wall_clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
            values = {one.key: _write(one, job) for one in job.list_locks()}
            self._remember(job, values)
            try:
                await self._write_locks(found, values)
            except ApiError as error:
                if answers.is_conflict(error):
                    # Nothing was written: a lock of this time is another one's.
                    job.locked_at = ""
                    continue
                raise
            return Done()
        return Contended("writers of the node")

    async def undo(self, job: Job) -> None:
        """Remove the locks that were written for the pod.

        Raises:
            ApiError: the node cannot be read or written; a node that is gone is no error.
        """
        for _ in range(_RACES if job.locked_at else 0):
            try:
                found = await self._api.get(kinds.NODES.find_path(job.node))
                notes = found["metadata"].get("annotations") or {}
                # A pod that came later under the same name may have a lock of its own.
                own = [one for one in job.list_locks() if notes.get(one.key) == _write(one, job)]
                if own:
                    await self._write_locks(found, dict.fromkeys((one.key for one in own), None))
            except ApiError as error:
                if answers.is_conflict(error):
                    continue
                if not answers.is_not_found(error):
                    raise
            return

    def _remember(self, job: Job, values: Mapping[str, str]) -> None:
        if len(self._written) >= _REMEMBERED_MAX:
            self._written.clear()
        for key, text in values.items():
            self._written[job.node, key] = text, job.uid

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

    async def _find_contender(self, node: dict[str, Any], job: Job) -> Contended | None:
        """Find a lock that the pod needs and another one holds; None if there is none."""
        notes = node["metadata"].get("annotations") or {}
        for lock in job.list_locks():
            held = notes.get(lock.key, "")
            if not held or _is_own(lock, held, job):
                continue
            if (contended := await self._judge_lock(lock, held, job)) is not None:
                return contended
        return None

    async def _judge_lock(self, lock: Lock, held: str, job: Job) -> Contended | None:
        """Say who holds a lock of another one; None if it may be taken over."""
        try:
            named = hami.read_lock_holder(held) if lock.names_pod else None
        except BadInput:
            # A lock that cannot be read cannot be released either.
            return None
        if named is None:
            return None if self._is_old(lock, held) else Contended(held)
        since = named[0]
        holder = await read_locked_pod(self._api, held)
        if holder is None:
            return None
        text, uid = self._written.get((job.node, lock.key), ("", ""))
        locked_for = uid if text == held else ""
        match judge_hold(holder, job.node, self._schedulers, locked_for, job.drivers):
            case Hold.POD:
                return Contended(held, holder.metadata.uid)
            case Hold.SCHEDULER if not self._is_old(lock, since):
                return Contended(held)
        return None

    def _is_old(self, lock: Lock, since: str) -> bool:
        """Whether a lock is too old, or from a future that no error of a clock explains."""
        age = _get_age(since)
        most = self._timeout if lock.seconds is None else lock.seconds
        return age is None or abs(age) > most


async def read_locked_pod(api: ApiClient, text: str) -> Holder | None:
    """Read the pod that a lock names; None if it names none, or if the pod is gone.

    Raises:
        ApiError: the pod cannot be read.
    """
    named = _read_name(text)
    if named is None:
        return None
    try:
        return read_holder(await api.get(kinds.PODS.find_path(named[2], named[1])))
    except ApiError as error:
        if answers.is_not_found(error):
            return None
        raise


def names_pod(text: str) -> bool:
    """Whether a lock names a pod."""
    return _read_name(text) is not None


def _read_name(text: str) -> tuple[str, str, str] | None:
    try:
        return hami.read_lock_holder(text)
    except BadInput:
        return None


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
