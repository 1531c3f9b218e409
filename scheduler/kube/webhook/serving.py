"""Deployments, StatefulSets and LeaderWorkerSets with a queue: what their pod templates get, and what may not change.

Source: Kueue (2026-08), the webhooks of these kinds in ``pkg/controller/jobs``.
"""

from __future__ import annotations

from scheduler.api import kinds, names, values
from scheduler.api.groups.readers import kueue as kueue_words
from scheduler.api.groups.readers import reading
from scheduler.api.jobs import plain_pods, services, workloads
from scheduler.api.jobs.parts import Json, Place, get_in, read_count, read_object, write_place
from scheduler.api.jobs.templates import write_changes
from scheduler.api.kind import Kind
from scheduler.errors import BadInput
from scheduler.kube.webhook.known import Request, read_texts

_POD_TEMPLATE: Place = ("spec", "template")
_LEADER: Place = ("spec", "leaderWorkerTemplate", "leaderTemplate")
_WORKERS: Place = ("spec", "leaderWorkerTemplate", "workerTemplate")
_SIZE: Place = ("spec", "leaderWorkerTemplate", "size")
_REPLICAS: Place = ("spec", "replicas")
_LATE = "LeaderReady"


def list_templates(kind: Kind, found: Json) -> list[Place]:
    """List where an object has pod templates."""
    if kind != kinds.LEADER_WORKER_SETS:
        return [_POD_TEMPLATE]
    return [one for one in (_LEADER, _WORKERS) if get_in(found, one) is not None]


def default_templates(request: Request) -> list[Json]:
    """Write the queue of an object, and its class, on its pod templates, and which of its pods wait as one.

    Raises:
        BadInput: a field that is read is not as the API server has it.
    """
    kind, found = request.kind, request.found
    added = services.list_texts(kind, found)
    if added is None:
        return []
    made = []
    for place in list_templates(kind, found):
        fields: Json = {}
        for key, more in zip(("labels", "annotations"), added, strict=True):
            fields[f"metadata.{key}"] = {**read_texts(found, *place, "metadata", key), **more}
        made += write_changes(found, place, fields)
    return made


def has_begun(kind: Kind, found: Json) -> bool:
    """Whether an object has pods that would stay as they are if its queue changed.

    A Deployment replaces pods that are not ready at once. The others wait until each is ready, which pods that have no
    quota never are.
    """
    key = "readyReplicas" if kind == kinds.DEPLOYMENTS else "replicas"
    return bool(read_count(found, "status", key))


def check_templates(request: Request) -> None:
    """Check what the templates of an object say of topologies, and what may not change while it has a queue.

    Raises:
        BadInput: it cannot be, or may not change.
    """
    kind, found, before = request.kind, request.found, request.before
    for place in list_templates(kind, found):
        texts = read_texts(found, *place, "metadata", "annotations")
        kueue_words.read_constraint(reading.Notes(texts, write_place((*place, "metadata"))))
    if kind == kinds.LEADER_WORKER_SETS:
        _check_start(found)
    if before is None or kind == kinds.DEPLOYMENTS or not workloads.find_queue(before):
        return
    if list_templates(kind, found) != list_templates(kind, before):
        raise BadInput(write_place(_LEADER), _write_fixed())
    for place in list_templates(kind, found):
        ours, theirs = (read_object(one, *place, "spec") for one in (found, before))
        if plain_pods.make_role(ours) != plain_pods.make_role(theirs):
            raise BadInput(write_place((*place, "spec")), _write_fixed())
    if kind == kinds.LEADER_WORKER_SETS:
        if read_count(found, *_SIZE) != read_count(before, *_SIZE):
            raise BadInput(write_place(_SIZE), _write_fixed())
    else:
        _check_replicas(services.count_replicas(before), services.count_replicas(found))


def _check_start(found: Json) -> None:
    """Check that all pods of a replica come before one of them has a node, as they get quota and nodes at once."""
    at_once = "is not possible with a queue, as the pods of a replica get quota at once, and workers would come after that"
    if get_in(found, ("spec", "startupPolicy")) == _LATE:
        raise BadInput("spec.startupPolicy", f"{_LATE} {at_once}: use LeaderCreated")
    if names.LWS_EXCLUSIVE in read_texts(found, "metadata", "annotations"):
        field = f"metadata.annotations[{names.LWS_EXCLUSIVE}]"
        raise BadInput(field, f"{at_once}: write {names.KUEUE_REQUIRED} on both templates")


def _write_fixed() -> str:
    return (
        "may not change while the object has a queue, as its quota is for pods as they are (requests, ports, node"
        " selector, affinity, tolerations, topology spread, priority): delete the object and create it anew"
    )


def _check_replicas(before: int, now: int) -> None:
    if before != now and before and now:
        raise BadInput(
            write_place(_REPLICAS),
            f"{now} is not possible while there are {before} with a queue, as all have quota as one: scale to 0 first",
        )


def check_place_in_set(request: Request) -> None:
    """Check that a pod of a StatefulSet is one of those for which its group has quota.

    ``kubectl scale`` writes no template, so the group may have fewer pods than the StatefulSet.

    Raises:
        BadInput: it is one more.
    """
    pod = request.found
    texts, labels = (read_texts(pod, "metadata", key) for key in ("annotations", "labels"))
    # Of a StatefulSet that Kueue's own webhook has changed the templates do not say how many there are.
    is_of_set = texts.get(names.KUEUE_PARENT) == services.write_parent(kinds.STATEFUL_SETS)
    if request.before is not None or not is_of_set or names.KUEUE_TOTAL not in texts:
        return
    index = reading.parse_rank(labels.get(names.SET_INDEX))
    start = reading.parse_rank(texts.get(names.KUEUE_INDEX_OFFSET))
    total = plain_pods.read_total(pod)
    if index - max(0, start) >= total:
        field = f"metadata.annotations[{names.KUEUE_TOTAL}]"
        raise BadInput(
            field,
            f"its StatefulSet has quota for {values.quote(total)} pods, and this would be one more: scale it to 0, and then"
            " write spec.replicas with kubectl patch, edit or apply (kubectl scale cannot change for how many it is)",
        )
