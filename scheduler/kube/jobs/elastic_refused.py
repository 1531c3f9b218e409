"""A job that says that it changes its size while it runs, of a kind for which that is not supported.

Such a job does not start, and says so. One that Kueue has started goes on in the size for which it has quota.

Source: Kueue (2026-08), ``pkg/workloadslicing/workloadslicing.go``.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.api import names
from scheduler.api.jobs import workloads
from scheduler.api.jobs.parts import JobPart, Json, has_condition, read_list
from scheduler.api.queues.words import ADMITTED, EVICTED, FINISHED, NOT_SUPPORTED
from scheduler.kube.jobs import statuses
from scheduler.kube.jobs.deeds import Deed, Refusal, Words, WriteWorkload
from scheduler.kube.jobs.scene import Case
from scheduler.kube.queues import conditions


def find_words(case: Case) -> Words | None:
    """Find what is said of a job that wants what is not supported; None if it does not."""
    if not workloads.is_elastic(case.job):
        return None
    why = case.scene.row.refuse_slices()
    note = f"annotation {names.KUEUE_ELASTIC}: {why}"
    return ("Warning", NOT_SUPPORTED, note) if why else None


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
    if case.is_suspended or find_words(case) is None or has_condition(workload, EVICTED):
        return False
    if not workloads.is_elastic(workload):
        return False
    if not has_condition(workload, ADMITTED) or not has_gates(case):
        return False
    return case.fits_but_for_counts(workload)


def has_gates(case: Case) -> bool:
    """Whether the pods that a job makes wait with a gate until there is quota for them."""
    return all(map(_has_gate, case.parts))


def _has_gate(part: JobPart) -> bool:
    gates = read_list(part.template, "spec", "schedulingGates")
    return any(one.get("name") == names.KUEUE_ELASTIC for one in gates)


def refuse(case: Case, workload: Json) -> Deed | None:
    """Let the workload of a job that waits say whether the job changes its size; if it may not, it has no quota."""
    is_elastic, words = workloads.is_elastic(case.job), find_words(case)
    if not case.is_suspended:
        return None
    if workloads.is_elastic(workload) != is_elastic:
        patch = {"metadata": {"annotations": {names.KUEUE_ELASTIC: "true" if is_elastic else None}}}
        return WriteWorkload(workload, patch, words=words)
    if words is None or not statuses.has_quota(workload):
        return None
    return statuses.write_status(
        workload, case.scene.now, conditions.take_quota, words[1], words[2], words
    )


def refuse_size(case: Case, workload: Json) -> None:
    """Refuse another size to a job that runs.

    Raises:
        Refusal: it wants another number of pods.
    """
    words = find_words(case)
    if words is not None and not case.is_suspended and not case.fits(workload):
        raise Refusal(NOT_SUPPORTED, f"{words[2]}; the job has quota for its pods of before")
