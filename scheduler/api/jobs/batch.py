"""Jobs of Kubernetes.

Source: Kueue (2026-08), ``pkg/controller/jobs/job/job_controller.go``.
"""

from __future__ import annotations

from scheduler.api import names
from scheduler.api.jobs.parts import (
    MAIN,
    JobPart,
    JobState,
    Json,
    find_end,
    get_in,
    read_count,
    read_object,
)

_TEMPLATE = "spec", "template"
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
# Labels of a template that the Job's own controller writes.
_WRITTEN = ("job-name", "controller-uid", "batch.kubernetes.io/controller-uid")
KEPT = (*_WRITTEN, "batch.kubernetes.io/job-name")


def list_parts(job: Json) -> list[JobPart]:
    """List the parts of a Job: one."""
    template = dict(read_object(job, *_TEMPLATE))
    meta = dict(read_object(template, "metadata"))
    labels = read_object(meta, "labels")
    if labels:
        kept = {key: value for key, value in labels.items() if key not in _WRITTEN}
        template["metadata"] = meta | {"labels": kept}
    least = read_least(job)
    return [JobPart(MAIN, count_pods(job, "spec"), template, _TEMPLATE, least, names.JOB_INDEX)]


def count_pods(found: Json, *place: str | int) -> int:
    """Count the pods that a Job runs at once; ``place``: of its spec."""
    parallelism = read_count(found, *place, "parallelism")
    completions = read_count(found, *place, "completions")
    at_once = 1 if parallelism is None else parallelism
    return at_once if completions is None else min(at_once, completions)


def read_least(job: Json) -> int | None:
    """Read how many pods of a Job may be enough; None: all of them are needed."""
    text = str(read_object(job, "metadata", "annotations").get(names.KUEUE_LEAST, ""))
    return int(text) if text.isascii() and text.isdecimal() else None


def follows_parallelism(job: Json) -> bool:
    """Whether a Job that is admitted with fewer pods has fewer completions, too."""
    return read_object(job, "metadata", "annotations").get(names.KUEUE_EQUAL_COMPLETIONS) in _TRUE


def read_state(job: Json) -> JobState:
    """Read how far a Job is."""
    status = read_object(job, "status")
    succeeded = read_count(job, "status", "succeeded") or 0
    ready = read_count(job, "status", "ready") or 0
    uncounted = get_in(status, ("uncountedTerminatedPods", "succeeded")) or ()
    n_ended = _count_ended(job)
    return JobState(
        is_active=bool(read_count(job, "status", "active")),
        is_ready=succeeded + ready + len(uncounted) >= count_pods(job, "spec"),
        end=find_end(job, succeeded="Complete", failed="Failed"),
        ended=((MAIN, n_ended),) if n_ended else (),
    )


def _count_ended(job: Json) -> int:
    """Count the pods in whose place no other one will be started."""
    parallelism = read_count(job, "spec", "parallelism")
    parallelism = 1 if parallelism is None else parallelism
    completions = read_count(job, "spec", "completions")
    completions = parallelism if completions is None else completions
    done = read_count(job, "status", "succeeded") or 0
    if get_in(job, ("spec", "completionMode")) == "Indexed":
        fields = ("completedIndexes", "failedIndexes")
        texts = [str(get_in(job, ("status", key)) or "") for key in fields]
        done = count_indexes(texts, completions)
    if parallelism <= 1 or not done:
        return 0
    return max(0, parallelism - max(0, completions - done))


def count_indexes(texts: list[str], most: int) -> int:
    """Count the different indexes below ``most`` in texts such as ``1,3-5``; what is none is left out."""
    spans = sorted(span for text in texts for one in text.split(",") if (span := _read_span(one)))
    n, end = 0, -1
    for span in spans:
        first, last = max(span[0], end + 1), min(span[1], most - 1)
        if first <= last:
            n, end = n + last - first + 1, last
    return n


def _read_span(text: str) -> tuple[int, int] | None:
    first, dash, last = text.partition("-")
    if not (first.isascii() and first.isdecimal()):
        return None
    if not dash:
        return int(first), int(first)
    if not (last.isascii() and last.isdecimal()) or int(last) < int(first):
        return None
    return int(first), int(last)
