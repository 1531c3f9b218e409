"""Jobs: as many pods at once as they may run, and in Indexed mode an index for each."""

from __future__ import annotations

from dataclasses import replace

from scheduler.api import selectors, values, wire
from scheduler.api.names import JOB_INDEX
from scheduler.errors import BadInput
from scheduler.simulate.reading import objects
from scheduler.simulate.workloads import workload as workloads
from scheduler.simulate.workloads.contract import NOTHING, Idle, Made, Scene, sort_by_deletion
from scheduler.simulate.workloads.workload import PODS_MAX, Workload, prefix_errors

# The most digits of an index, which is an int32.
_DIGITS_MAX = 10
_MODES = ("NonIndexed", "Indexed")
_OVER = ("Complete", "Failed")


def make_job_pods(job: Workload, scene: Scene) -> Made:
    """Make the pods that a Job would start now; none if it is suspended or has finished."""
    if is_over(job):
        return Made(idle=Idle.FINISHED)
    if _is_suspended(job):
        return Made(idle=Idle.SUSPENDED)
    alive, done = scene.owned.list_alive(job.key), scene.owned.list_succeeded(job.key)
    at_once = job.read_count("parallelism", 1)
    mode = job.spec.get("completionMode", _MODES[0])
    if mode not in _MODES:
        raise BadInput("spec.completionMode", f"{mode!r} is not one of {', '.join(_MODES)}")
    completions = job.read_count("completions", 1) if "completions" in job.spec else None
    n_done = max(len(done), _count_succeeded(job))
    indexed = mode == "Indexed"
    is_done = n_done >= completions if completions is not None else n_done > 0
    if is_done and not alive:
        return Made(idle=Idle.FINISHED)
    if completions is not None:
        wanted = min(at_once, max(0, completions - n_done))
    elif indexed:
        raise BadInput("spec.completions", "must be set where completionMode is Indexed")
    else:
        # The pods share a queue of work: once one of them has found the queue empty, no more are started.
        wanted = min(at_once, len(alive)) if n_done else at_once
    missing = wanted - len(alive)
    if missing <= 0:
        return Made(surplus=sort_by_deletion(alive)[:-missing])
    mold = scene.make_mold(job, missing)
    labels = {"batch.kubernetes.io/job-name": job.key.name, "job-name": job.key.name}
    if not indexed:
        names = (scene.names.make_name(job.key.namespace, job.key.name) for _ in range(missing))
        return Made([mold.make_pod(name, labels=labels) for name in names])
    taken = {_read_index(pod) for pod in (*alive, *done)} | _list_completed(job)
    free = [str(i) for i in range(completions or 0) if str(i) not in taken][:missing]
    return Made(
        [
            mold.make_pod(
                scene.names.make_name(job.key.namespace, f"{job.key.name}-{i}"),
                labels={**labels, JOB_INDEX: i},
                annotations={JOB_INDEX: i},
            )
            for i in free
        ]
    )


def make_run(cron: Workload, scene: Scene) -> Made:
    """Make one run of a CronJob; nothing when it is suspended or a run is under way."""
    if _is_suspended(cron):
        return Made(idle=Idle.SUSPENDED)
    if cron.key in scene.running:
        return NOTHING
    job = workloads.make_job(cron)
    with prefix_errors("spec.jobTemplate"):
        made = make_job_pods(job, scene)
    # The annotations of the template may make the Job a group.
    body = {
        "apiVersion": "batch/v1",
        "kind": job.key.kind,
        "metadata": {
            "name": job.key.name,
            "namespace": job.key.namespace,
            "annotations": job.meta.annotations or {},
        },
        "spec": job.spec,
    }
    return replace(made, grouping=[objects.read_grouping(body, job.key.kind)])


def _is_suspended(workload: Workload) -> bool:
    """Whether a Job or a CronJob makes nothing for now."""
    return workload.spec.get("suspend") is True


def is_over(job: Workload) -> bool:
    """Whether a Job has done its work, or has given up."""
    conditions = values.read_items(job.status.get("conditions"), "status.conditions", dict)
    return any(one.get("type") in _OVER and one.get("status") == "True" for one in conditions)


def _count_succeeded(job: Workload) -> int:
    return values.read_integer(job.status.get("succeeded") or 0, "status.succeeded", 0, 2**31 - 1)


def _list_completed(job: Workload) -> set[str]:
    """List the indexes that are done: ``status.completedIndexes`` is like ``0-2,5``."""
    text = str(job.status.get("completedIndexes") or "")
    done: set[str] = set()
    after = -1
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        start, end = _parse_number(first), _parse_number(last or first)
        # Numbers must rise, so that a short text cannot name the same million indexes again and again.
        if start is None or end is None or not after < start <= end:
            said = selectors.quote(text)
            raise BadInput("status.completedIndexes", f"{said} is not like 0-2,5, in rising order")
        after = end
        done.update(map(str, range(start, min(end, PODS_MAX) + 1)))
    return done


def _parse_number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= _DIGITS_MAX else None


def _read_index(pod: wire.Pod) -> str:
    return (pod.metadata.annotations or {}).get(JOB_INDEX, "")
