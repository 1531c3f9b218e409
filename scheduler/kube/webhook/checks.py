"""What the webhook refuses: jobs and pods that say of their queue what cannot be, or change it when they may not.

Source: Kueue (2026-08), ``pkg/controller/jobframework/validation.go``, ``pkg/controller/jobs/job/job_webhook.go`` and
``pkg/controller/jobs/pod/pod_webhook.go``.
"""

from __future__ import annotations

import re

from scheduler.api import kinds, names, values
from scheduler.api.groups.readers import kueue as kueue_words
from scheduler.api.groups.readers import reading
from scheduler.api.jobs import batch, gates, plain_pods, pod_sets, table, units, workloads
from scheduler.api.jobs.parts import Json, get_in, read_count
from scheduler.errors import BadInput
from scheduler.kube.webhook import serving, sizes
from scheduler.kube.webhook.known import Request, read_texts

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_MAX = 63
# As many pod sets a workload may have.
_PARTS_MAX = 18
_LABELS = "metadata", "labels"
_TEXTS = "metadata", "annotations"


def check_job(request: Request) -> None:
    """Check a job, and what of it changes.

    Raises:
        BadInput: it cannot be, or may not change.
    """
    row, job, before = table.BY_NAME[request.kind.name], request.found, request.before
    if get_in(job, ("metadata", "deletionTimestamp")):
        # It gets no quota any more, and has to lose its finalizers.
        return
    is_waiting = get_in(job, row.suspend) is True
    waited = before is None or get_in(before, row.suspend) is True
    _check_labels(request, is_waiting=is_waiting, waited=waited)
    _check_prebuilt(request, is_waiting=is_waiting)
    sizes.check_resizing(request, row, is_waiting=is_waiting and waited)
    if row.kind == kinds.JOBS:
        _check_counts(request, is_waiting=is_waiting, waited=waited)
    # The templates of a job that runs are as its start has left them.
    if row.made is not None or not (is_waiting and waited):
        return
    parts = row.list_parts(job)
    if len(parts) > _PARTS_MAX:
        raise BadInput(
            "spec", f"has {len(parts)} kinds of pods; with a queue {_PARTS_MAX} are allowed"
        )
    if before is None or before.get("spec") != job.get("spec"):
        pod_sets.write_pod_sets(parts)
    for part in parts:
        texts = read_texts(part.template, *_TEXTS)
        _check_topology(texts, f"pod set {part.name}: metadata", part.n_pods)
        sizes.check_topology(request, part.name, texts)


def check_pod(request: Request) -> None:
    """Check a pod, and what of it changes.

    Raises:
        BadInput: it cannot be, or may not change.
    """
    pod, before = request.found, request.before
    labels, texts = read_texts(pod, *_LABELS), read_texts(pod, *_TEXTS)
    waited = before is None or plain_pods.is_gated(before)
    _check_labels(request, is_waiting=plain_pods.is_gated(pod), waited=waited)
    units.refuse_prebuilt(pod)
    if labels.get(names.KUEUE_MANAGED, "true") != "true":
        found = values.quote(labels[names.KUEUE_MANAGED])
        raise BadInput(
            reading.name_label(names.KUEUE_MANAGED), f"{found} is not true, which alone is allowed"
        )
    group = plain_pods.find_group(labels)
    if group:
        _check_name(group, names.KUEUE_GROUP, "a group of pods")
        plain_pods.read_total(pod)
    elif names.KUEUE_TOTAL in texts:
        raise BadInput(
            reading.name_label(names.KUEUE_GROUP),
            f"is missing; the annotation {names.KUEUE_TOTAL} needs it",
        )
    _check_topology(texts, "metadata", None)
    serving.check_place_in_set(request)
    if before is None:
        return
    old = plain_pods.find_group(read_texts(before, *_LABELS))
    if old and old != group:
        raise BadInput(
            reading.name_label(names.KUEUE_GROUP), f"may not change; it is {values.quote(old)}"
        )
    role = read_texts(before, *_TEXTS).get(names.KUEUE_ROLE)
    if role and texts.get(names.KUEUE_ROLE) != role:
        field = f"metadata.annotations[{names.KUEUE_ROLE}]"
        raise BadInput(
            field, f"may not change; it is {values.quote(role)}, by which the pod has quota"
        )


def check_serving(request: Request) -> None:
    """Check a Deployment, a StatefulSet or a LeaderWorkerSet, and what of it changes.

    Raises:
        BadInput: it cannot be, or may not change.
    """
    is_waiting = request.before is None or not serving.has_begun(request.kind, request.before)
    _check_labels(request, is_waiting=is_waiting, waited=is_waiting, may_leave=False)
    serving.check_templates(request)


def _check_labels(
    request: Request, *, is_waiting: bool, waited: bool, may_leave: bool = True
) -> None:
    """Check the queue, the class and the run time of an object.

    Args:
        request: the object.
        is_waiting: whether it would wait.
        waited: whether it has waited so far.
        may_leave: whether it may lose its queue while it waits.
    """
    labels = read_texts(request.found, *_LABELS)
    queue, name = (labels.get(key, "") for key in (names.KUEUE_QUEUE, names.KUEUE_CLASS))
    if names.KUEUE_QUEUE in labels:
        _check_name(queue, names.KUEUE_QUEUE, "a LocalQueue")
    if name:
        _check_name(name, names.KUEUE_CLASS, "a WorkloadPriorityClass")
    seconds = labels.get(names.KUEUE_RUN_TIME)
    if seconds is not None:
        reading.parse_count(seconds, reading.name_label(names.KUEUE_RUN_TIME))
    gates.check_gates(request.found, request.before)
    if request.before is None:
        return
    old = read_texts(request.before, *_LABELS)
    old_queue, old_name = (old.get(key, "") for key in (names.KUEUE_QUEUE, names.KUEUE_CLASS))
    field = reading.name_label(names.KUEUE_QUEUE)
    if queue != old_queue and not is_waiting:
        raise BadInput(field, f"may not change while it runs; it is {values.quote(old_queue)}")
    if old_queue and not queue and not may_leave:
        raise BadInput(field, f"may not be removed; it is {values.quote(old_queue)}")
    field = reading.name_label(names.KUEUE_CLASS)
    if old_name and not name:
        raise BadInput(field, f"may not be removed, only replaced; it is {values.quote(old_name)}")
    if name and not old_name and not is_waiting:
        raise BadInput(field, "may not be added while it runs")
    if seconds != old.get(names.KUEUE_RUN_TIME) and not (is_waiting and waited):
        raise BadInput(reading.name_label(names.KUEUE_RUN_TIME), "may not change while it runs")


def _check_prebuilt(request: Request, *, is_waiting: bool) -> None:
    """Check which workload, made before it, a job names; it may name another one while it waits."""
    name, before = workloads.find_prebuilt(request.found), request.before
    if before is None or is_waiting:
        return
    old = read_texts(before, *_LABELS), read_texts(before, *_TEXTS)
    known = old[1].get(names.KUEUE_PREBUILT) or old[0].get(names.KUEUE_PREBUILT, "")
    if name != known:
        raise BadInput(
            reading.name_label(names.KUEUE_PREBUILT),
            f"may not change while it runs; it is {values.quote(known)}",
        )


def _check_name(text: str, key: str, what: str) -> None:
    if len(text) > _NAME_MAX or not _NAME.fullmatch(text):
        raise BadInput(
            reading.name_label(key),
            f"{values.quote(text)} is not the name of {what}: at most {_NAME_MAX} lower-case letters, digits, '-' and '.',"
            " with a letter or a digit at both ends of each part",
        )


def _check_counts(request: Request, *, is_waiting: bool, waited: bool) -> None:
    """Check with how many pods a Job may start."""
    job, before = request.found, request.before
    texts = read_texts(job, *_TEXTS)
    least, equal = texts.get(names.KUEUE_LEAST), texts.get(names.KUEUE_EQUAL_COMPLETIONS)
    parallelism, n_pods = read_count(job, "spec", "parallelism"), batch.count_pods(job, "spec")
    if is_waiting and waited and least is not None:
        field = f"metadata.annotations[{names.KUEUE_LEAST}]"
        count = reading.parse_count(least, field)
        if count >= n_pods:
            raise BadInput(
                field,
                f"{count} is not within 1..{n_pods - 1}, as the Job has {n_pods} pods at once",
            )
    if equal is not None:
        _check_completions(job, equal)
    if before is None or is_waiting:
        return
    old = read_texts(before, *_TEXTS)
    if (
        names.KUEUE_LEAST in old
        and read_count(before, "spec", "parallelism") != parallelism
        and not waited
    ):
        raise BadInput(
            "spec.parallelism",
            f"may not change while it runs, as it has the annotation {names.KUEUE_LEAST}",
        )
    if not waited and batch.follows_parallelism(before) != batch.follows_parallelism(job):
        field = f"metadata.annotations[{names.KUEUE_EQUAL_COMPLETIONS}]"
        raise BadInput(field, "may not change while it runs")


def _check_completions(job: Json, text: str) -> None:
    field = f"metadata.annotations[{names.KUEUE_EQUAL_COMPLETIONS}]"
    if not reading.parse_truth(text, field):
        return
    if get_in(job, ("spec", "completionMode")) != "Indexed":
        raise BadInput(field, "is only for Jobs with spec.completionMode: Indexed")
    if read_count(job, "spec", "parallelism") != read_count(job, "spec", "completions"):
        raise BadInput(
            "spec.completions",
            f"must be the same as spec.parallelism, as {names.KUEUE_EQUAL_COMPLETIONS} says so",
        )


def _check_topology(texts: dict[str, str], under: str, n_pods: int | None) -> None:
    """Check what annotations say of a topology; a slice may not have more pods than there are."""
    found = kueue_words.read_constraint(reading.Notes(texts, under))
    if found is not None and found.slices and n_pods is not None and found.slices[0].size > n_pods:
        size = found.slices[0].size
        raise BadInput(
            f"{under}.annotations[{names.KUEUE_SLICE_SIZE}]",
            f"{size} is more than the {n_pods} pods that there are",
        )
