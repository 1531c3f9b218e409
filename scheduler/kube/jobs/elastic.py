"""A job that says that it changes its size while it runs, for which Kueue makes slices of workloads.

That is not supported: such a job does not start, and says so. One that runs already goes on in the size for which it has
quota.

Source: Kueue (2026-08), ``pkg/workloadslicing/workloadslicing.go``.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.api import names
from scheduler.api.jobs import workloads
from scheduler.api.jobs.parts import JobPart, Json, has_condition, read_list
from scheduler.api.queues.words import ADMITTED, ELASTIC, EVICTED, FINISHED, NOT_SUPPORTED
from scheduler.kube.jobs import statuses
from scheduler.kube.jobs.deeds import Deed, Refusal, WriteWorkload
from scheduler.kube.jobs.scene import Case
from scheduler.kube.queues import conditions

WORDS = "Warning", NOT_SUPPORTED, ELASTIC


def sort_slices(case: Case) -> Sequence[Json]:
    """List the workloads of a job: of slices that Kueue has made, those with quota first, and those that are over last."""
    found = case.scene.workloads
    if not workloads.is_elastic(case.job):
        return found
    return sorted(
        found, key=lambda one: (has_condition(one, FINISHED), not statuses.has_quota(one))
    )


def stays(case: Case, workload: Json) -> bool:
    """Whether a job that runs goes on with a workload though it wants another number of pods by now.

    Pods beyond those that have quota have a gate. Without the gate these pods would run, and the job has to stop like other
    jobs. A job that became elastic after it got quota has to stop, too: it has no slices of workloads.
    """
    if case.is_suspended or not workloads.is_elastic(case.job) or has_condition(workload, EVICTED):
        return False
    if not workloads.is_elastic(workload):
        return False
    if not has_condition(workload, ADMITTED) or not all(map(_has_gate, case.parts)):
        return False
    counts = [one.get("count", 0) for one in read_list(workload, "spec", "podSets")]
    if len(counts) != len(case.parts):
        return False
    parts = [one._replace(n_pods=n) for one, n in zip(case.parts, counts, strict=True)]
    return workloads.fits_job(
        workload, case.job, parts, case.scene.flavors, is_suspended=case.is_suspended
    )


def _has_gate(part: JobPart) -> bool:
    gates = read_list(part.template, "spec", "schedulingGates")
    return any(one.get("name") == names.KUEUE_ELASTIC for one in gates)


def refuse(case: Case, workload: Json) -> Deed | None:
    """Let the workload of an elastic job that waits say that it is one, and have no quota."""
    is_elastic, has_quota = workloads.is_elastic(case.job), statuses.has_quota(workload)
    if not case.is_suspended or not (is_elastic or workloads.is_elastic(workload)):
        return None
    if workloads.is_elastic(workload) != is_elastic:
        patch = {"metadata": {"annotations": {names.KUEUE_ELASTIC: "true" if is_elastic else None}}}
        return WriteWorkload(workload, patch, words=WORDS if is_elastic else None)
    if not has_quota:
        return None
    return statuses.write_status(
        workload, case.scene.now, conditions.take_quota, NOT_SUPPORTED, ELASTIC, WORDS
    )


def refuse_size(case: Case, workload: Json) -> None:
    """Refuse another size to a job that runs.

    Raises:
        Refusal: it wants another number of pods.
    """
    if not case.is_suspended and workloads.is_elastic(case.job) and not case.fits(workload):
        raise Refusal(NOT_SUPPORTED, f"{ELASTIC}; the job has quota for its pods of before")
