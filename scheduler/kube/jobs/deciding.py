"""What is to be done next for a job and its workloads, as they are: one deed after the other, until there is none.

Source: Kueue (2026-08), ``pkg/controller/jobframework/reconciler.go``: ``ReconcileGenericJob`` and ``ensureOneWorkload``.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from scheduler.api import names
from scheduler.api.jobs import changes, gates, pod_sets, workloads
from scheduler.api.jobs.parts import (
    Json,
    get_in,
    has_condition,
    read_list,
    read_object,
)
from scheduler.api.jobs.templates import CannotStart
from scheduler.api.queues.words import ADMITTED, EVICTED, FINISHED
from scheduler.kube.jobs import elastic_refused, prebuilt, slices, statuses
from scheduler.kube.jobs.deeds import (
    Deed,
    DropWorkload,
    MakeWorkload,
    SetImportance,
    Words,
    WriteJob,
    WriteWorkload,
)
from scheduler.kube.jobs.scene import Case, Scene
from scheduler.kube.queues import conditions

_FAILED_TO_START = "FailedToStart"
_SECONDS = "maximumExecutionTimeSeconds"


class _Done(Enum):
    """Nothing more is to be done."""

    DONE = "done"


_DONE = _Done.DONE
_Found = Deed | _Done | None


def find_deed(scene: Scene) -> Deed | None:
    """Find what is to be done next; None for nothing.

    Raises:
        BadInput: the job says something that cannot be.
        Refusal: it wants what it cannot have.
    """
    if scene.job is None or get_in(scene.job, ("metadata", "deletionTimestamp")) is not None:
        return _let_go(scene)
    case = Case(scene, scene.job)
    sorted_out = _sort_out(case)
    if not isinstance(sorted_out, Case):
        return sorted_out
    case = sorted_out
    for step in _STEPS if case.workload is not None else _STEPS_WITHOUT:
        found = step(case, case.workload or {})
        if found is not None:
            return None if isinstance(found, _Done) else found
    return None


def _sort_out(case: Case) -> Case | Deed | None:
    """Find which workload stands for the job, or what is to be done before one does."""
    if case.prebuilt:
        return prebuilt.take_over(case)
    return slices.choose_slice(case) if slices.has_slices(case) else _sort_workloads(case)


def _let_go(scene: Scene) -> Deed | None:
    """Let go of the workloads of a job that is going: one that would stay has quota no longer."""
    for one in scene.workloads:
        if scene.job is None and not statuses.is_going(one) and not has_condition(one, FINISHED):
            why = "OwnerNotFound", statuses.NO_OWNER
            return statuses.write_status(one, scene.now, statuses.finish, *why)
        if statuses.is_held(one):
            return DropWorkload(one, may_stay=True)
    return None


def _sort_workloads(case: Case) -> Case:
    """Find the first workload that fits the job, and all others; a slice of former times does not fit."""
    scene, fitting, others = case.scene, None, []
    for one in elastic_refused.sort_slices(case):
        is_over = has_condition(one, FINISHED)
        fits = fitting is None and not statuses.is_past_slice(one)
        if fits and (is_over or case.fits(one) or elastic_refused.stays(case, one)):
            fitting = one
        else:
            others.append(one)
    return Case(scene, case.job, fitting, others)


# Without a workload that fits.


def _await_parts(case: Case, workload: Json) -> _Found:
    """Do nothing before the pods of the job are known."""
    del workload
    if case.parts:
        return None
    if case.is_suspended or case.state.end is not None:
        return _DONE
    return case.stop(None, "The pods of the job are not known yet") or _DONE


def _stop_without(case: Case, workload: Json) -> _Found:
    """Stop a job that runs without a workload that fits it; of one that somebody has stopped, end the stop."""
    del workload
    known = case.others[0] if len(case.others) == 1 else None
    if case.state.end is not None or (case.is_suspended and known is None):
        return None
    stopped = case.stop(known, "No matching Workload; the job waits again")
    return stopped or (None if case.is_suspended else _DONE)


def _update_waiting(case: Case, workload: Json) -> _Found:
    """Bring a workload that waits up to date with its job."""
    del workload
    first = case.others[0] if case.others else None
    if first is None or not case.is_suspended or statuses.has_quota(first):
        return None
    if statuses.is_going(first):
        return None
    # What the job no longer says has to go.
    spec = {_SECONDS: None} | workloads.make_spec(case.job, case.parts)
    patch = {"metadata": case.write_fit(), "spec": spec}
    note = f"Updated not matching Workload for suspended job: {statuses.write_key(first)}"
    return WriteWorkload(first, patch, words=("Normal", "UpdatedWorkload", note))


def _make(case: Case, workload: Json) -> _Found:
    """Make a workload for a job that has stopped."""
    del workload
    if case.state.end is not None or case.state.is_active:
        return None
    body = workloads.make_workload(case.scene.row.kind, case.job, case.parts)
    if slices.has_slices(case):
        body = slices.write_slice(case, body, None)
    return MakeWorkload(body, case.ranked, elastic_refused.find_words(case))


def _drop_others(case: Case, workload: Json) -> _Found:
    """Drop the workloads that do not fit the job, or that it does not need."""
    del workload
    return DropWorkload(case.others[0]) if case.others else None


# With a workload that fits.


def _end_finished(case: Case, workload: Json) -> _Found:
    """Let go of a workload that is finished."""
    del case
    if not has_condition(workload, FINISHED):
        return None
    return DropWorkload(workload, may_stay=True) if statuses.is_held(workload) else _DONE


def _stop_deleted(case: Case, workload: Json) -> _Found:
    """Stop a job whose workload somebody deletes."""
    if not statuses.is_going(workload):
        return None
    stopped = case.stop(workload, "Workload is deleted")
    if stopped is not None or not case.is_suspended:
        return stopped or _DONE
    return DropWorkload(workload, may_stay=True) if statuses.is_held(workload) else _DONE


def _hold(case: Case, workload: Json) -> _Found:
    """Give the quota of a job back that cannot run as it is."""
    if not case.state.is_on_hold:
        return None
    if not statuses.has_quota(workload):
        return _DONE
    return statuses.write_status(
        workload, case.scene.now, conditions.take_quota, "OnHold", "Job is on hold"
    )


def _finish(case: Case, workload: Json) -> _Found:
    """Finish the workload of a job that has ended."""
    end = case.state.end
    if end is None:
        return None
    note = f"Workload '{statuses.write_key(workload)}' is declared finished"
    words: Words = ("Normal", "FinishedWorkload", note)
    reason = "Succeeded" if end.has_succeeded else "Failed"
    return statuses.write_status(
        workload, case.scene.now, statuses.finish, reason, end.message, words
    )


def _note_ended(case: Case, workload: Json) -> _Found:
    """Give back what pods need no longer that have ended for good."""
    del workload
    for one in case.slices:
        if (deed := _note_ended_on(case, one)) is not None:
            return deed
    return None


def _note_ended_on(case: Case, workload: Json) -> Deed | None:
    counts = {one["name"]: one.get("count", 0) for one in read_list(workload, "spec", "podSets")}
    left = {name: min(count, counts.get(name, 0)) for name, count in case.state.ended}
    known = {
        one.get("name"): one.get("count", 0)
        for one in read_list(workload, "status", "reclaimablePods")
    }
    # What was given back is not taken again while the workload has quota.
    shrinks = any(left.get(name, 0) < count for name, count in known.items())
    if left == known or (shrinks and statuses.has_quota(workload)):
        return None
    items = [{"name": name, "count": count} for name, count in left.items()]
    return WriteWorkload(workload, {"status": {"reclaimablePods": items or None}}, is_status=True)


def _note_readiness(case: Case, workload: Json) -> _Found:
    """Write on a workload whether its pods are ready."""
    if not case.scene.watches_pods:
        return None
    workload = case.running or workload
    changing = statuses.read_conditions(workload, case.scene.now)
    if not conditions.note_readiness(changing, is_ready=case.state.is_ready):
        return None
    return WriteWorkload(workload, {"status": {"conditions": changing.write()}}, is_status=True)


def _follow_eviction(case: Case, workload: Json) -> _Found:
    """Stop a job whose workload is evicted, and then give its quota back."""
    if not has_condition(workload, EVICTED):
        return None
    message = statuses.get_message(workload, EVICTED)
    stopped = case.stop(workload, message)
    if stopped is not None:
        return stopped
    if not case.is_suspended or case.state.is_active or not statuses.has_quota(workload):
        return _DONE
    return statuses.write_status(workload, case.scene.now, statuses.requeue, "", message)


def _start(case: Case, workload: Json) -> _Found:
    """Start a job whose workload is admitted."""
    if not case.is_suspended or not has_condition(workload, ADMITTED):
        return None
    scene = case.scene
    try:
        additions = workloads.list_additions(workload, scene.flavors)
        change = changes.find_start(scene.row, case.job, case.parts, additions)
    except CannotStart as error:
        words: Words = ("Warning", _FAILED_TO_START, str(error))
        return statuses.write_status(
            workload, scene.now, statuses.finish, _FAILED_TO_START, str(error), words
        )
    except KeyError:
        # The flavor is gone, or has not been seen yet: the start comes when it is there.
        return _DONE
    queue = get_in(workload, ("status", "admission", "clusterQueue"))
    note = f"Admitted by clusterQueue {queue}"
    return WriteJob(change, ("Normal", "Started", note) if change.decides else None)


def _refuse_mistakes(case: Case, workload: Json) -> _Found:
    """Refuse a job that waits and says what cannot be, before it gets quota.

    Raises:
        BadInput: it does.
    """
    if case.is_suspended and not statuses.has_quota(workload):
        pod_sets.write_pod_sets(case.parts)
    return None


def _follow_queue(case: Case, workload: Json) -> _Found:
    """Follow a job that waits to another queue."""
    queue = workloads.find_queue(case.job)
    if not case.is_suspended or get_in(workload, ("spec", "queueName")) == queue:
        return None
    patch = {"metadata": case.write_fit(), "spec": {"queueName": queue}}
    return WriteWorkload(workload, patch)


def _follow_class(case: Case, workload: Json) -> _Found:
    """Follow a job to another class; once a workload without one has quota, it can get none.

    A workload that was made before its job has the priority with which it was made.
    """
    del workload
    if case.prebuilt:
        return None
    wanted = workloads.find_class(case.job)
    for one in case.slices:
        name, is_of_workloads = statuses.read_class(one)
        is_other = name != wanted and (is_of_workloads or not name)
        if is_other and (name or not statuses.has_quota(one)):
            return SetImportance(one, case.ranked)
    return None


def _follow_gates(case: Case, workload: Json) -> _Found:
    """Take the names off a workload that its job no longer has: they have agreed."""
    before = gates.find_gates(workload)
    left = gates.narrow(before, gates.find_gates(case.job))
    if case.prebuilt or left == before:
        return None
    note = f'Updated workload AdmissionGatedBy to "{left}"'
    patch = {"metadata": {"annotations": {names.KUEUE_GATED: left or None}}}
    return WriteWorkload(workload, patch, words=("Normal", "UpdatedWorkload", note))


def _stop_unadmitted(case: Case, workload: Json) -> _Found:
    """Stop a job that runs though its workload is not admitted."""
    if case.is_suspended or has_condition(workload, ADMITTED) or slices.may_run(case, workload):
        return None
    return case.stop(workload, "Not admitted by cluster queue")


def _stop_astray(case: Case, workload: Json) -> _Found:
    """Stop a job that somebody else has started: its pods could run on nodes of a flavor in which it has no quota."""
    if case.is_suspended or case.scene.row.made is not None:
        return None
    try:
        additions = workloads.list_additions(workload, case.scene.flavors)
    except (CannotStart, KeyError):
        return None
    for part, addition in zip(case.parts, additions, strict=False):
        # A value may have been another one when the job was started.
        if addition.selector.keys() - read_object(part.template, "spec", "nodeSelector").keys():
            return case.stop(workload, "Its pods lack the node labels of its flavors")
    return None


_STEPS_WITHOUT: tuple[Callable[[Case, Json], _Found], ...] = (
    _await_parts,
    _stop_without,
    _update_waiting,
    _drop_others,
    _make,
)
_STEPS: tuple[Callable[[Case, Json], _Found], ...] = (
    _drop_others,
    _end_finished,
    _stop_deleted,
    _hold,
    _finish,
    _note_ended,
    _note_readiness,
    _follow_eviction,
    elastic_refused.refuse,
    _start,
    _refuse_mistakes,
    _follow_queue,
    _follow_class,
    _follow_gates,
    _stop_unadmitted,
    _stop_astray,
    elastic_refused.refuse_size,
)
