"""The Workload of a job: its name, what it says, and whether it still fits the job.

Source: Kueue (2026-08), ``pkg/controller/jobframework``: ``workload_names.go``, ``utils.go`` (``NewWorkload``) and
``reconciler.go`` (``ConstructWorkload``, ``EquivalentToWorkload``, ``getPodSetsInfoFromStatus``).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from scheduler.api import names, values
from scheduler.api.jobs import gates, pod_sets, templates
from scheduler.api.jobs.parts import JobPart, Json, get_in, read_count, read_list, read_object
from scheduler.api.jobs.templates import Addition, CannotStart
from scheduler.api.kind import Kind
from scheduler.api.kinds import PRIORITY_CLASSES, WORKLOAD_CLASSES, WORKLOADS
from scheduler.errors import BadInput

_NAME_MAX, _HASH_LENGTH, _LABEL_MAX = 63, 5, 63
_PREBUILT = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_PREBUILT_MAX = 253


class Importance(NamedTuple):
    """How important a job is.

    Attributes:
        value: the priority.
        name: of its class; empty for none.
        is_of_workloads: whether its class is one of workloads, and not one of pods.
    """

    value: int = 0
    name: str = ""
    is_of_workloads: bool = False


def make_name(kind: Kind, name: str, uid: str, extra: str = "") -> str:
    """Make the name of the workload of a job; ``extra``: what else tells it from others of the same job."""
    parts = [kind.kind, kind.group, name, uid, *([extra] if extra else ())]
    digest = hashlib.sha1("\n".join(parts).encode(), usedforsecurity=False).hexdigest()
    prefix = f"{kind.kind.lower()}-{name}"[: _NAME_MAX - 1 - _HASH_LENGTH]
    return f"{prefix}-{digest[:_HASH_LENGTH]}"


def make_workload(
    kind: Kind, job: Json, parts: Sequence[JobPart], version: Kind = WORKLOADS
) -> Json:
    """Make the workload of a job, without its priority.

    Args:
        kind: of the job.
        job: the job.
        parts: its parts.
        version: the kind of workloads, in the version that the API server serves.

    Raises:
        BadInput: the job says something that cannot be.
    """
    meta = read_object(job, "metadata")
    name, uid = str(meta.get("name", "")), str(meta.get("uid", ""))
    made: Json = {
        "name": make_name(kind, name, uid),
        "namespace": meta.get("namespace", ""),
        "finalizers": [names.KUEUE_IN_USE],
        "annotations": _list_annotations(meta),
        **write_ownership(kind, job, ()),
    }
    return {
        "apiVersion": version.api_version,
        "kind": version.kind,
        "metadata": made,
        "spec": make_spec(job, parts),
    }


def write_ownership(kind: Kind, job: Json, others: Sequence[Json]) -> Json:
    """Write the metadata of a workload by which a job controls it; ``others``: its owners beside the job."""
    meta = read_object(job, "metadata")
    name, uid = str(meta.get("name", "")), str(meta.get("uid", ""))
    owner = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": name,
        "uid": uid,
        "controller": True,
    }
    made: Json = {"ownerReferences": [*others, owner]}
    if 0 < len(uid) <= _LABEL_MAX:
        made["labels"] = {names.KUEUE_JOB_UID: uid}
    return made


def find_controller(workload: Json) -> Json | None:
    """Find the reference to the object that controls a workload; None if none does."""
    owners = read_list(workload, "metadata", "ownerReferences")
    return next((one for one in owners if one.get("controller")), None)


def _list_annotations(meta: Mapping[str, object]) -> Json:
    texts = read_object(meta, "annotations")
    kept = {key: one for key, one in texts.items() if key.startswith(names.KUEUE_PROVISIONING)}
    if texts.get(names.KUEUE_ELASTIC) == "true":
        kept[names.KUEUE_ELASTIC] = "true"
    if gated := gates.find_gates({"metadata": meta}):
        kept[names.KUEUE_GATED] = gated
    generation = meta.get("generation")
    return kept | ({names.FITS_GENERATION: str(generation)} if generation else {})


def make_spec(job: Json, parts: Sequence[JobPart], *, is_new: bool = True) -> Json:
    """Make the spec of the workload of a job, without its priority.

    Args:
        job: the job.
        parts: its pods.
        is_new: whether a workload is to be made of it, and not compared with it.

    Raises:
        BadInput: the job says something that cannot be.
    """
    made: Json = {
        "queueName": find_queue(job),
        "podSets": pod_sets.write_pod_sets(parts, is_new=is_new),
    }
    if (seconds := _read_seconds(job)) is not None:
        made["maximumExecutionTimeSeconds"] = seconds
    return made


def write_importance(importance: Importance, version: Kind = WORKLOADS) -> Json:
    """Write the fields of a workload that say how important it is."""
    made: Json = {"priority": importance.value}
    name = importance.name
    kind = WORKLOAD_CLASSES if importance.is_of_workloads else PRIORITY_CLASSES
    if version.version != WORKLOADS.version:
        source = f"{kind.group}/{kind.kind.lower()}" if name else None
        return made | {"priorityClassName": name or None, "priorityClassSource": source}
    reference = {"group": kind.group, "kind": kind.kind, "name": name}
    return made | {"priorityClassRef": reference if name else None}


def find_queue(job: Json) -> str:
    """Find the queue that a job names; empty for none."""
    return str(read_object(job, "metadata", "labels").get(names.KUEUE_QUEUE, ""))


def name_prebuilt(job: Json) -> str:
    """Return what a job names as its workload that was made before it, whether or not it is a name; empty for nothing."""
    return _read_prebuilt(job)[1]


def find_prebuilt(job: Json) -> str:
    """Find the workload, made before it, that a job names; empty for none.

    Raises:
        BadInput: what it names is no name of a workload: it may become a part of a path.
    """
    key, name = _read_prebuilt(job)
    if name and (len(name) > _PREBUILT_MAX or not _PREBUILT.fullmatch(name)):
        raise BadInput(
            f"metadata.{key}[{names.KUEUE_PREBUILT}]",
            f"{values.quote(name)} is not the name of a Workload: at most {_PREBUILT_MAX} lower-case letters, digits,"
            " '-' and '.', with a letter or a digit at both ends of each part",
        )
    return name


def _read_prebuilt(job: Json) -> tuple[str, str]:
    """Return where a job names a workload, and what it names; the annotation counts before the label."""
    for key in ("annotations", "labels"):
        if name := str(read_object(job, "metadata", key).get(names.KUEUE_PREBUILT, "")):
            return key, name
    return "", ""


def is_elastic(found: Json) -> bool:
    """Whether a job or a workload says that it changes its size while it runs."""
    return read_object(found, "metadata", "annotations").get(names.KUEUE_ELASTIC) == "true"


def find_first_slice(workload: Json) -> str:
    """Find the name of the first one of the slices to which a workload belongs."""
    meta = read_object(workload, "metadata")
    return str(read_object(meta, "annotations").get(names.KUEUE_CHAIN) or meta.get("name", ""))


def find_replaced(workload: Json) -> str:
    """Find the namespace and the name of the slice that a workload replaces; empty for none."""
    return str(read_object(workload, "metadata", "annotations").get(names.KUEUE_REPLACES, ""))


def find_class(job: Json) -> str:
    """Find the class of workloads that a job names; empty for none."""
    return str(read_object(job, "metadata", "labels").get(names.KUEUE_CLASS, ""))


def find_pod_class(parts: Sequence[JobPart]) -> str:
    """Find the class of the first pods of a job that have one; empty for none."""
    found = (str(get_in(one.template, ("spec", "priorityClassName")) or "") for one in parts)
    return next(filter(None, found), "")


def _read_seconds(job: Json) -> int | None:
    text = str(read_object(job, "metadata", "labels").get(names.KUEUE_RUN_TIME, ""))
    seconds = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
    return seconds or None


def list_additions(workload: Json, flavors: Mapping[str, Json]) -> list[Addition]:
    """List what is added to the templates of a job whose workload has quota, in the order of its pod sets.

    Args:
        workload: the workload.
        flavors: the specs of flavors, by name.

    Raises:
        CannotStart: what admission checks add contradicts something else.
        KeyError: a flavor is not known.
    """
    queue = str(get_in(workload, ("status", "admission", "clusterQueue")) or "")
    counts = {
        str(one.get("name", "")): one.get("count", 0)
        for one in read_list(workload, "spec", "podSets")
    }
    return [
        _make_addition(workload, one, counts.get(str(one.get("name", "")), 0), queue, flavors)
        for one in read_list(workload, "status", "admission", "podSetAssignments")
    ]


def _make_addition(
    workload: Json, assigned: Json, whole: int, queue: str, flavors: Mapping[str, Json]
) -> Addition:
    name = str(assigned.get("name", ""))
    selector: dict[str, str] = {}
    tolerations: list[Json] = []
    for flavor in dict.fromkeys(read_object(assigned, "flavors").values()):
        selector |= read_object(flavors[flavor], "nodeLabels")
        tolerations += read_list(flavors[flavor], "tolerations")
    labels = {
        names.KUEUE_POD_SET: name,
        names.KUEUE_LOCAL_QUEUE: str(get_in(workload, ("spec", "queueName")) or ""),
    }
    if len(queue) <= _LABEL_MAX and "." not in queue:
        labels[names.KUEUE_CLUSTER_QUEUE] = queue
    annotations = {names.KUEUE_WORKLOAD: str(get_in(workload, ("metadata", "name")) or "")}
    held_by: tuple[str, ...] = ()
    if is_elastic(workload):
        annotations[names.KUEUE_CHAIN] = find_first_slice(workload)
        held_by = (names.KUEUE_ELASTIC,)
    count = read_count(assigned, "count")
    n_pods = whole if count is None else count
    found = Addition(name, n_pods, labels, annotations, selector, tolerations, held_by)
    checks = read_list(workload, "status", "admissionChecks")
    return add_updates(
        found, ((str(one.get("name", "")), read_list(one, "podSetUpdates")) for one in checks)
    )


def add_updates(found: Addition, checks: Iterable[tuple[str, Iterable[Json]]]) -> Addition:
    """Add what admission checks add to a pod set; ``checks``: the name and the ``podSetUpdates`` of each.

    Raises:
        CannotStart: what they add contradicts something else.
    """
    for check, updates in checks:
        for update in updates:
            if update.get("name") == found.name:
                found = _add_update(found, update, check)
    return found


def _add_update(found: Addition, update: Json, check: str) -> Addition:
    """Add what an admission check adds to a pod set."""
    merged = []
    for key, have in zip(("labels", "annotations", "nodeSelector"), found.maps, strict=True):
        added = read_object(update, key)
        for name in added.keys() & have.keys():
            if added[name] != have[name]:
                raise CannotStart(f"admission check {check}: {key}[{name}] is given twice")
        merged.append({**have, **added})
    more = [one for one in read_list(update, "tolerations") if one not in found.tolerations]
    return found._replace(
        labels=merged[0],
        annotations=merged[1],
        selector=merged[2],
        tolerations=[*found.tolerations, *more],
    )


def fits_job(
    workload: Json,
    job: Json,
    parts: Sequence[JobPart],
    flavors: Mapping[str, Json],
    *,
    is_suspended: bool,
) -> bool:
    """Whether a workload stands for a job as it is: as it waits, or as it runs with what it was given.

    Raises:
        BadInput: the job says something that cannot be.
    """
    owner = find_controller(workload)
    if owner is None or owner.get("uid") != get_in(job, ("metadata", "uid")):
        return False
    wanted = make_spec(job, parts, is_new=False)
    key = "maximumExecutionTimeSeconds"
    if wanted.get(key) != get_in(workload, ("spec", key)):
        return False
    is_admitted = any(
        one.get("type") == "Admitted" and one.get("status") == "True"
        for one in read_list(workload, "status", "conditions")
    )
    # What checks add to a slice that replaces another one never comes to the templates of the job, which runs already.
    is_later = not is_suspended and bool(find_replaced(workload))
    with_tolerations = not (is_admitted or is_later)
    ours, theirs = wanted["podSets"], read_list(workload, "spec", "podSets")
    running = _list_running(workload, flavors)
    if running is not None:
        if pod_sets.are_equal(ours, running, with_tolerations=with_tolerations):
            return True
        if not is_suspended:
            return False
    return pod_sets.are_equal(ours, theirs, with_tolerations=with_tolerations)


def _list_running(workload: Json, flavors: Mapping[str, Json]) -> list[Json] | None:
    """List the pod sets as they are while the job runs; None for a workload without quota, or one that cannot run."""
    if not get_in(workload, ("status", "admission")):
        return None
    try:
        additions = {one.name: one for one in list_additions(workload, flavors)}
        found = []
        for one in read_list(workload, "spec", "podSets"):
            addition = additions[str(one.get("name", ""))]
            fields = templates.merge(one.get("template") or {}, addition)
            spec = {
                **read_object(one, "template", "spec"),
                "tolerations": fields["spec.tolerations"],
            }
            count = one.get("count", 0) if one.get("minCount") is None else addition.n_pods
            found.append(one | {"count": count, "template": {"spec": spec}})
    except (CannotStart, KeyError, BadInput):
        return None
    return found
