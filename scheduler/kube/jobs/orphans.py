"""Ends workloads that nothing owns any more, so that none has quota for ever.

Mostly the garbage collector deletes a workload after its job. It only removes the owner where the job was deleted with
``--cascade=orphan``, and it cannot delete what has a finalizer.

Source: Kueue (2026-08), ``pkg/controller/core/workload_controller.go`` (``isOrphanedWorkload``) and
``pkg/workload/workload.go`` (``FinalizeOrphanedWorkload``).
"""

from __future__ import annotations

from collections.abc import Iterable

from scheduler.api import kinds, kueue, names, wire
from scheduler.api.jobs.parts import Json, get_in, has_condition
from scheduler.api.queues.words import FINISHED
from scheduler.kube.client import ApiClient
from scheduler.kube.jobs import known, statuses
from scheduler.kube.jobs.deeds import DropWorkload, WriteWorkload
from scheduler.kube.jobs.looks import Looks, Named
from scheduler.kube.jobs.ties import JobTies
from scheduler.kube.jobs.writing import JobWrites, read_if_there

_DEEDS = 4


def find_deed(workload: Json, now: float) -> WriteWorkload | DropWorkload | None:
    """Find what is to be done next for a workload that may have lost its job; None for nothing."""
    if get_in(workload, ("metadata", "ownerReferences")):
        return None
    if not statuses.is_going(workload):
        if not get_in(workload, ("metadata", "labels", names.KUEUE_JOB_UID)):
            # It was made by itself.
            return None
        if not has_condition(workload, FINISHED):
            return statuses.write_status(
                workload, now, statuses.finish, "OwnerNotFound", statuses.NO_OWNER
            )
    return DropWorkload(workload, may_stay=True) if statuses.is_held(workload) else None


class Orphans:
    """The workloads that have lost their job, or are being deleted without one.

    Attributes:
        looks: looks at them.
    """

    def __init__(self, api: ApiClient, ties: JobTies, writes: JobWrites) -> None:
        self._api, self._ties, self._writes = api, ties, writes
        self._found: dict[str, wire.Meta] = {}
        self.looks: Looks[str] = Looks(self, ties.reporter)

    def see_workload(self, found: kueue.Workload) -> None:
        """Take over what a watch says of a workload."""
        meta = found.metadata
        key = f"{meta.namespace}/{meta.name}"
        is_held = names.KUEUE_IN_USE in (meta.finalizers or ())
        had_job = names.KUEUE_JOB_UID in (meta.labels or {})
        is_over = FINISHED in known.read_workload(found).true
        if meta.owner_references or not (
            (had_job and not is_over) or (is_held and (had_job or meta.deletion_timestamp))
        ):
            self.drop_workload(key)
            return
        self._found[key] = known.pick_meta(meta)
        self.looks.note(key)

    def drop_workload(self, key: str) -> None:
        """Note that a workload is gone, or has an owner."""
        if self._found.pop(key, None) is not None:
            self.looks.forget(key)

    # The subject of looks.

    def list_keys(self) -> Iterable[str]:
        """List the keys of the workloads."""
        return self._found

    def needs_look(self, key: str) -> bool:
        """Whether there may be something to do for a workload."""
        return key in self._found

    def find_object(self, key: str) -> Named | None:
        """Find the kind and the metadata of a workload."""
        found = self._found.get(key)
        return (self._ties.find_workloads(), found) if found is not None else None

    async def look_at(self, key: str) -> bool:
        """Finish a workload, and let go of it; return whether there may be more.

        Raises:
            ApiError: the API server refuses.
        """
        path = self._ties.find_workloads().find_path(*reversed(kinds.split_key(key)))
        for _ in range(_DEEDS):
            if not self._ties.may_write():
                return False
            workload = await read_if_there(self._api, path)
            deed = find_deed(workload, self._ties.clock()) if workload is not None else None
            if deed is None:
                return False
            await self._writes.write_workload(deed)
        return True
