"""A job that names a workload that was made before it: the job takes over this one, and gets no other.

Source: Kueue (2026-08), ``pkg/controller/jobframework/reconciler.go``: ``ensureOneWorkload``,
``EnsurePrebuiltWorkloadOwnership`` and ``ensurePrebuiltWorkloadInSync``.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.api import values
from scheduler.api.jobs import workloads
from scheduler.api.jobs.parts import Json, get_in, has_condition
from scheduler.api.kinds import PODS
from scheduler.api.queues.words import FINISHED, OUT_OF_SYNC
from scheduler.kube.jobs import statuses
from scheduler.kube.jobs.deeds import Deed, DropWorkload, Refusal, WriteWorkload
from scheduler.kube.jobs.scene import Case

NOT_FOUND, NOT_FREE, IS_OVER = (
    "PrebuiltWorkloadNotFound",
    "PrebuiltWorkloadInUse",
    "PrebuiltWorkloadFinished",
)
_OUT_OF_SYNC = "The prebuilt workload is out of sync with its user job"


def take_over(case: Case) -> Case | Deed | None:
    """Find what is to be done before a job has the workload that it names; the case with this workload if it has it.

    Raises:
        BadInput: the job says something that cannot be.
        Refusal: the job has stopped, and cannot have the workload.
    """
    name, found = case.prebuilt, case.scene.prebuilt
    owner = workloads.find_controller(found) if found is not None else None
    uid = get_in(case.job, ("metadata", "uid"))
    if found is not None and owner is not None and owner.get("uid") == uid:
        return _keep(case, found, _list_others(case, found))
    others = _list_others(case, None)
    if found is None or (owner is None and statuses.is_going(found)):
        why = f"there is no Workload {values.quote(name)} in this namespace"
        return _refuse(case, others, NOT_FOUND, why)
    # A workload of a pod group has all its pods as owners, and none of them is its controller.
    owner = owner or next(
        (one for one in _list_owners(found) if one.get("kind") == PODS.name), None
    )
    if owner is None:
        return _adopt(case, found)
    why = f"the Workload {values.quote(name)} is that of {owner.get('kind')} {values.quote(str(owner.get('name')))}"
    return _refuse(case, others, NOT_FREE, why)


def _list_owners(found: Json) -> Sequence[Json]:
    return get_in(found, ("metadata", "ownerReferences")) or ()


def _list_others(case: Case, own: Json | None) -> list[Json]:
    """List the workloads that the job owns beside the one that it names, and those of an earlier job of its name."""
    kept = get_in(own, ("metadata", "uid"))
    return [one for one in case.scene.workloads if get_in(one, ("metadata", "uid")) != kept]


def _refuse(case: Case, others: Sequence[Json], reason: str, why: str) -> Deed | None:
    """Stop a job that cannot have the workload that it names, and drop others that it may have had.

    Raises:
        BadInput: what it names is no name.
        Refusal: the job has stopped.
    """
    if case.state.end is not None:
        return DropWorkload(others[0]) if others else None
    stopped = case.stop(others[0] if len(others) == 1 else None, "missing workload")
    if stopped is not None or not case.is_suspended or case.state.is_active:
        return stopped
    if others:
        return DropWorkload(others[0])
    workloads.find_prebuilt(case.job)
    raise Refusal(reason, why)


def _adopt(case: Case, found: Json) -> Deed:
    """Make the job the controller of a workload that has none."""
    patch = {
        "metadata": workloads.write_ownership(case.scene.row.kind, case.job, _list_owners(found))
    }
    note = f"Took over Workload: {statuses.write_key(found)}"
    return WriteWorkload(found, patch, words=("Normal", "TookOverWorkload", note))


def _keep(case: Case, found: Json, others: Sequence[Json]) -> Case | Deed | None:
    """Go on with the workload that is the job's by now; one that does not fit the job is finished.

    Raises:
        BadInput: the job says something that cannot be.
        Refusal: the workload is finished, and the job has not ended.
    """
    taken = Case(case.scene, case.job, found, others)
    if case.state.end is not None or statuses.is_going(found):
        return taken
    if has_condition(found, FINISHED):
        return _leave(case, found, others)
    if case.parts and case.fits(found):
        return taken
    if not case.parts and case.is_suspended:
        # The pods of the job are not known yet.
        return None
    stopped = case.stop(found, _OUT_OF_SYNC)
    if stopped is not None or not case.is_suspended or case.state.is_active:
        return stopped
    return statuses.write_status(found, case.scene.now, statuses.finish, OUT_OF_SYNC, _OUT_OF_SYNC)


def _leave(case: Case, found: Json, others: Sequence[Json]) -> Deed | None:
    """Stop a job whose workload is finished, though the job has not ended, and let go of the workload.

    Raises:
        Refusal: that has been done.
    """
    message = statuses.get_message(found, FINISHED)
    stopped = case.stop(found, message)
    if stopped is not None or not case.is_suspended:
        return stopped
    if statuses.is_held(found):
        return DropWorkload(found, may_stay=True)
    if others:
        return DropWorkload(others[0])
    raise Refusal(IS_OVER, f"the Workload {values.quote(case.prebuilt)} is finished: {message}")
