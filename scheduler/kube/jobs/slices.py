"""Which workload stands for a job that changes its size while it runs: the slices of its workloads.

A job that grows gets another workload, with the same pod sets and more pods, which replaces the first one once it has
quota. Meanwhile the job runs on with the quota that it has, and its pods beyond that have a gate. Of a job that shrinks
the workload gets smaller.

Source: Kueue (2026-08), ``EnsureWorkloadSlices`` and ``normalizeActiveSlices`` of
``pkg/workloadslicing/workloadslicing.go``, ``prepareWorkloadSlice`` of ``pkg/controller/jobframework/reconciler.go``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler.api import names
from scheduler.api.jobs import workloads
from scheduler.api.jobs.parts import Json, get_in, has_condition, read_list, read_object
from scheduler.api.queues.words import EVICTED, FINISHED, OUT_OF_SYNC, SLICE_REPLACED
from scheduler.kube.jobs import elastic_refused, statuses
from scheduler.kube.jobs.deeds import Deed, DropWorkload, MakeWorkload, WriteWorkload
from scheduler.kube.jobs.scene import Case

_OUT_OF_SYNC = "The workload slice is out of sync with its parent job"
_REPLACED = "Replaced to accommodate a new workload slice"


def has_slices(case: Case) -> bool:
    """Whether a job has slices: not if it has got quota as a job of one size."""
    return (
        case.scene.row.has_slices
        and workloads.is_elastic(case.job)
        and all(
            workloads.is_elastic(one) or has_condition(one, FINISHED) or not statuses.has_quota(one)
            for one in case.scene.workloads
        )
    )


def may_run(case: Case, workload: Json) -> bool:
    """Whether a job may run on though its workload is not admitted: another slice has quota, or had it until now."""
    is_next = statuses.has_quota(workload) and bool(workloads.find_replaced(workload))
    return case.running is not None or is_next


def choose_slice(case: Case) -> Case | Deed | None:
    """Find the slice that stands for a job; else what is to be done before one does, None if nothing is.

    Raises:
        BadInput: the job says something that cannot be.
    """
    uid = get_in(case.job, ("metadata", "uid"))
    found = sorted(case.scene.workloads, key=_get_order)
    strange = [one for one in found if (workloads.find_controller(one) or {}).get("uid") != uid]
    if strange:
        return DropWorkload(strange[0])
    finished = [one for one in found if has_condition(one, FINISHED)]
    for one in finished:
        if statuses.is_held(one):
            return DropWorkload(one, may_stay=True)
    living = [one for one in found if one not in finished]
    if case.state.end is not None:
        return Case(case.scene, case.job, living[0]) if living else None
    if not living:
        failed = [one for one in finished if not statuses.is_past_slice(one)]
        return Case(case.scene, case.job, failed[-1] if failed else None)
    return _choose_living(case, living)


def _get_order(workload: Json) -> tuple[str, str]:
    """Return by what slices are sorted: the oldest one first."""
    meta = read_object(workload, "metadata")
    return str(meta.get("creationTimestamp", "")), str(meta.get("uid", ""))


def _choose_living(case: Case, living: Sequence[Json]) -> Case | Deed | None:
    """Choose among the slices that are not finished."""
    leaving = [one for one in living if _is_leaving(one)]
    if leaving:
        # Before anything else its job stops.
        return Case(case.scene, case.job, leaving[-1])
    staying = [one for one in living if not has_condition(one, EVICTED)]
    next_ones = _index_next(staying)
    running = _find_running(staying, next_ones)
    if running is not None and statuses.is_going(running):
        return Case(case.scene, case.job, running)
    chosen = (staying or living)[-1]
    if running is not None:
        chosen = next_ones.get(statuses.write_key(running), running)
    for one in living:
        following = next_ones.get(statuses.write_key(one))
        if one is not chosen and one is not running and not _hands_over(one, following):
            why = (SLICE_REPLACED, _REPLACED) if following else (OUT_OF_SYNC, _OUT_OF_SYNC)
            return statuses.write_status(one, case.scene.now, statuses.finish, *why)
    if chosen is not running and running is not None and statuses.is_going(chosen):
        return DropWorkload(chosen, may_stay=True) if statuses.is_held(chosen) else None
    return _resize(case, chosen, running)


def _hands_over(one: Json, following: Json | None) -> bool:
    """Whether the scheduler finishes a slice, as it has given the quota to the following one."""
    place = "status", "admission", "clusterQueue"
    queue = get_in(one, place)
    return queue is not None and following is not None and get_in(following, place) == queue


def _is_leaving(one: Json) -> bool:
    """Whether a slice is evicted, and has not given its quota back."""
    return has_condition(one, EVICTED) and statuses.has_quota(one)


def _index_next(staying: Sequence[Json]) -> dict[str, Json]:
    """Return which slice replaces which: of several that would replace the same, one with quota."""
    found: dict[str, Json] = {}
    for one in staying:
        key = workloads.find_replaced(one)
        if key and not (key in found and statuses.has_quota(found[key])):
            found[key] = one
    return found


def _find_running(staying: Sequence[Json], next_ones: Mapping[str, Json]) -> Json | None:
    """Find the last slice with quota that no other one with quota replaces."""
    for one in reversed(staying):
        following = next_ones.get(statuses.write_key(one))
        is_replaced = following is not None and statuses.has_quota(following)
        if statuses.has_quota(one) and not is_replaced:
            return one
    return None


def _resize(case: Case, chosen: Json, running: Json | None) -> Case | Deed | None:
    """Let the chosen slice have as many pods as the job; if it cannot, make the next one."""
    if not case.fits_but_for_counts(running or chosen):
        return Case(case.scene, case.job, None, [one for one in (chosen, running) if one])
    wanted = [one.n_pods for one in case.parts]
    have = [one.get("count", 0) for one in read_list(chosen, "spec", "podSets")]
    if wanted == have and (chosen is running or running is None or not _is_held(case)):
        return Case(case.scene, case.job, chosen, (), None if chosen is running else running)
    if chosen is not running and running is not None and _needs_no_more(case, wanted, running):
        why = OUT_OF_SYNC, _OUT_OF_SYNC
        return statuses.write_status(chosen, case.scene.now, statuses.finish, *why)
    spec = _write_spec(case, chosen)
    is_smaller = all(n <= m for n, m in zip(wanted, have, strict=True))
    if is_smaller or not statuses.has_quota(chosen):
        return WriteWorkload(chosen, {"metadata": case.write_fit(), "spec": spec})
    if _is_held(case) or not elastic_refused.has_gates(case):
        # It does not run, and need not wait for more with what it has; or its new pods run without quota.
        return Case(case.scene, case.job, None, [chosen])
    body = workloads.make_workload(case.scene.row.kind, case.job, case.parts)
    body["spec"] |= spec
    return MakeWorkload(write_slice(case, body, chosen), case.ranked)


def _is_held(case: Case) -> bool:
    """Whether a job may not run: it waits, or is about to stop."""
    return get_in(case.job, case.scene.row.suspend) is True


def _needs_no_more(case: Case, wanted: Sequence[int], running: Json) -> bool:
    """Whether a job needs no other slice than the one with which it runs: it is as small by now, or was stopped by its user."""
    have = [one.get("count", 0) for one in read_list(running, "spec", "podSets")]
    return _is_held(case) or all(n <= m for n, m in zip(wanted, have, strict=True))


def _write_spec(case: Case, workload: Json) -> Json:
    """Write the pod sets of a slice with the counts of the job: its templates are as they were before the start."""
    found = read_list(workload, "spec", "podSets")
    return {
        "podSets": [
            {**one, "count": part.n_pods} for one, part in zip(found, case.parts, strict=True)
        ]
    }


def write_slice(case: Case, body: Json, old: Json | None) -> Json:
    """Write into a new workload which slice it is; ``old``: the slice that it is to replace."""
    meta = read_object(case.job, "metadata")
    generation = str(meta.get("generation", ""))
    name = workloads.make_name(case.scene.row.kind, meta["name"], meta["uid"], generation)
    texts = {names.KUEUE_CHAIN: name}
    if old is not None:
        texts = {
            names.KUEUE_CHAIN: workloads.find_first_slice(old),
            names.KUEUE_REPLACES: statuses.write_key(old),
        }
    made = read_object(body, "metadata")
    annotations = {**read_object(made, "annotations"), **texts}
    return {**body, "metadata": {**made, "name": name, "annotations": annotations}}
