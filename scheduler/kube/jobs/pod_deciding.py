"""What is to be done next for pods that wait in a queue by themselves or as a group, and their workload.

Source: Kueue (2026-08), ``pkg/controller/jobs/pod/pod_controller.go`` and
``pkg/controller/jobframework/reconciler.go``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scheduler.api import names
from scheduler.api.jobs import plain_pods, pod_sets, templates, workloads
from scheduler.api.jobs.parts import Json, get_in, has_condition, read_list
from scheduler.api.jobs.templates import CannotStart, write_changes, write_operation
from scheduler.api.jobs.units import IS_GROUP, make_owner
from scheduler.api.queues.words import ADMITTED, EVICTED, FINISHED
from scheduler.kube.jobs import statuses
from scheduler.kube.jobs.deeds import (
    ChangePods,
    DropWorkload,
    MakeWorkload,
    PodDeed,
    StopPods,
    Words,
    WriteWorkload,
)
from scheduler.kube.jobs.pod_scene import PodScene
from scheduler.kube.queues import conditions

_RETRIES = "kueue.x-k8s.io/retriable-in-group"
_FINALIZER = names.KUEUE_MANAGED
_TOO_MANY = "The group has more pods than it says"
_GATES = {names.KUEUE_GATE, names.KUEUE_TOPOLOGY_GATE}


def find_deed(scene: PodScene) -> PodDeed | None:
    """Find what is to be done next; None for nothing.

    Raises:
        BadInput: a pod says something that cannot be.
    """
    for one in scene.workloads:
        if scene.group and get_in(one, ("metadata", "annotations", IS_GROUP)) != "true":
            # It stands for something else, and only has the name of the group.
            return None
    if not scene.pods:
        return _let_go(scene)
    freed = _free_pods(list(filter(_is_lost, scene.pods)))
    if freed is not None:
        return freed
    workload = scene.workloads[0] if scene.workloads else None
    if workload is None:
        return _begin(scene)
    for step in _list_steps(workload):
        found = step(scene, workload)
        if found is not None:
            return found
    return None


def _is_lost(pod: Json) -> bool:
    """Whether a pod counts no longer: it has failed, or goes before it has succeeded."""
    return not plain_pods.has_succeeded(pod) and (plain_pods.is_over(pod) or plain_pods.is_going(pod))  # fmt: skip


def _let_go(scene: PodScene) -> PodDeed | None:
    """Let go of the workload of pods that are gone; that of a group may wait for pods that come in their place."""
    for one in scene.workloads:
        if scene.group and not statuses.is_going(one) and not has_condition(one, FINISHED):
            continue
        if not statuses.is_going(one) and not has_condition(one, FINISHED):
            why = "OwnerNotFound", statuses.NO_OWNER
            return statuses.write_status(one, scene.now, statuses.finish, *why)
        if (dropped := _drop(one)) is not None:
            return dropped
    return None


def _begin(scene: PodScene) -> PodDeed | None:
    """Make a workload once all pods are there that it takes."""
    if not scene.is_known:
        return None
    extra = [one for one in scene.coming[scene.total :] if not plain_pods.is_going(one)]
    if extra:
        return StopPods(extra, "ExcessPod", _TOO_MANY)
    return MakeWorkload(scene.make_workload(), scene.ranked)


def _free_pods(pods: Sequence[Json]) -> ChangePods | None:
    """Take the finalizer from pods that are counted no longer; None if no pod has it."""
    changes = []
    for one in pods:
        found = get_in(one, ("metadata", "finalizers")) or []
        if _FINALIZER in found:
            kept = [name for name in found if name != _FINALIZER]
            changes.append((one, [write_operation("add", ("metadata", "finalizers"), kept)]))
    return ChangePods(changes) if changes else None


# Steps.


def _end_finished(scene: PodScene, workload: Json) -> PodDeed | None:
    """Let go of a workload that is finished, and of its pods."""
    return _free_pods(scene.pods) or _drop(workload)


def _drop(workload: Json) -> DropWorkload | None:
    """Let go of a workload; None if that has been done."""
    return DropWorkload(workload, may_stay=True) if statuses.is_held(workload) else None


def _stop_deleted(scene: PodScene, workload: Json) -> PodDeed | None:
    """Delete the pods of a workload that somebody deletes."""
    staying = [one for one in scene.pods if not plain_pods.is_going(one)]
    if staying:
        return StopPods(staying, "WorkloadDeleted", "Workload is deleted")
    return _free_pods(scene.pods) or _drop(workload)


def _finish(scene: PodScene, workload: Json) -> PodDeed | None:
    """Finish a workload whose pods have ended."""
    if scene.serves:
        return None
    if not scene.group:
        (pod,) = scene.pods
        if not plain_pods.is_over(pod):
            return None
        reason = "Succeeded" if plain_pods.has_succeeded(pod) else "Failed"
        message = str(get_in(pod, ("status", "message")) or "")
        return statuses.write_status(workload, scene.now, statuses.finish, reason, message)
    n_done = sum(_count_done(scene, workload).values())
    retries = not any(plain_pods.says(one, _RETRIES, "false") for one in scene.pods)
    if n_done < scene.total and (retries or not all(map(plain_pods.is_over, scene.pods))):
        return None
    message = f"Pods succeeded: {n_done}/{scene.total}."
    return statuses.write_status(workload, scene.now, statuses.finish, "Succeeded", message)


def _count_done(scene: PodScene, workload: Json) -> dict[str, int]:
    """Count the pods that have succeeded, by role; what was noted once stays so, though the pods may be gone."""
    done: dict[str, int] = {
        str(one.get("name", "")): int(one.get("count", 0))
        for one in read_list(workload, "status", "reclaimablePods")
    }
    there: dict[str, int] = {}
    for one in filter(plain_pods.has_succeeded, scene.pods):
        role = plain_pods.find_role(one)
        there[role] = there.get(role, 0) + 1
    return {role: max(done.get(role, 0), there.get(role, 0)) for role in done.keys() | there.keys()}


def _note_ended(scene: PodScene, workload: Json) -> PodDeed | None:
    """Give back what pods need no longer that have succeeded."""
    if not scene.group or scene.serves:
        return None
    known = read_list(workload, "status", "reclaimablePods")
    counts = {one["name"]: one.get("count", 0) for one in read_list(workload, "spec", "podSets")}
    items = [
        {"name": role, "count": min(n, counts[role])}
        for role, n in sorted(_count_done(scene, workload).items())
        if n and role in counts
    ]
    if items == known:
        return None
    return WriteWorkload(workload, {"status": {"reclaimablePods": items or None}}, is_status=True)


def _note_readiness(scene: PodScene, workload: Json) -> PodDeed | None:
    """Write on a workload whether its pods are ready."""
    if not scene.watches_pods:
        return None
    is_ready = len(scene.pods) >= scene.total and all(
        plain_pods.is_ready(one) or plain_pods.has_succeeded(one) for one in scene.pods
    )
    changing = statuses.read_conditions(workload, scene.now)
    if not conditions.note_readiness(changing, is_ready=is_ready):
        return None
    return WriteWorkload(workload, {"status": {"conditions": changing.write()}}, is_status=True)


def _follow_eviction(scene: PodScene, workload: Json) -> PodDeed | None:
    """Delete the pods of a workload that is evicted, and then give its quota back."""
    if not has_condition(workload, EVICTED):
        return None
    message = statuses.get_message(workload, EVICTED)
    running = _list_running(scene)
    if running:
        return StopPods(running, "WorkloadEvicted", message)
    if not statuses.has_quota(workload) or scene.is_active:
        return None
    return statuses.write_status(workload, scene.now, statuses.requeue, "", message)


def _list_running(scene: PodScene) -> list[Json]:
    return [
        one for one in scene.pods if not plain_pods.is_going(one) and not scene.is_suspended(one)
    ]


def _start(scene: PodScene, workload: Json) -> PodDeed | None:
    """Take the gates from pods whose workload is admitted."""
    if has_condition(workload, EVICTED) or not has_condition(workload, ADMITTED):
        return None
    waiting = [one for one in scene.coming if plain_pods.is_gated(one) and not plain_pods.is_going(one)]  # fmt: skip
    if not waiting:
        return None
    try:
        found = workloads.list_additions(workload, scene.flavors)
        additions = {one.name: one for one in found}
        changes = []
        for pod in waiting:
            role = plain_pods.find_role(pod) if scene.group else found[0].name
            # A pod of another role has no quota, and keeps its gate.
            if role in additions:
                fields = templates.merge(pod, additions[role])
                gates = read_list(pod, "spec", "schedulingGates")
                left = [one for one in gates if one.get("name") not in _GATES]
                fields["spec.schedulingGates"] = left
                if scene.group:
                    # What it gets would make another role of it.
                    fields["metadata.annotations"][names.KUEUE_ROLE] = role
                changes.append((pod, write_changes(pod, (), fields)))
    except CannotStart as error:
        return statuses.write_status(
            workload, scene.now, statuses.finish, "FailedToStart", str(error)
        )
    except KeyError:
        # A flavor is gone, or has not been seen yet.
        return None
    queue = get_in(workload, ("status", "admission", "clusterQueue"))
    words: Words = ("Normal", "Started", f"Admitted by clusterQueue {queue}")
    return ChangePods(changes, words) if changes else None


def _stop_unadmitted(scene: PodScene, workload: Json) -> PodDeed | None:
    """Delete pods that run though their workload is not admitted."""
    if has_condition(workload, EVICTED) or has_condition(workload, ADMITTED):
        return None
    running = _list_running(scene)
    return StopPods(running, "NotAdmitted", "Not admitted by cluster queue") if running else None


def _follow_pods(scene: PodScene, workload: Json) -> PodDeed | None:
    """Bring a workload without quota up to date with its pods: their roles, their queue."""
    if statuses.has_quota(workload) or not scene.coming:
        return None
    queue = workloads.find_queue(scene.coming[0])
    if not scene.serves and get_in(workload, ("spec", "queueName")) != queue:
        return WriteWorkload(workload, {"spec": {"queueName": queue}})
    if not scene.group or len(scene.coming) < (1 if scene.is_fast else scene.total):
        return None
    ours = [pod_sets.write_pod_set(one) for one in scene.list_parts()]
    if _list_roles(ours) == _list_roles(read_list(workload, "spec", "podSets")):
        return None
    return WriteWorkload(workload, {"spec": {"podSets": ours}})


def _list_roles(found: Sequence[Json]) -> list[tuple[str, int]]:
    return [(str(one.get("name", "")), int(one.get("count", 0))) for one in found]


def _trim(scene: PodScene, workload: Json) -> PodDeed | None:
    """Delete pods beyond those that have quota, and let go of pods that others have replaced."""
    if not scene.group:
        return None
    left, extra = dict(_list_roles(read_list(workload, "spec", "podSets"))), []
    for pod in scene.coming:
        role = plain_pods.find_role(pod)
        if role in left:
            left[role] -= 1
            if left[role] < 0 and not plain_pods.is_going(pod):
                extra.append(pod)
    return StopPods(extra, "ExcessPod", _TOO_MANY) if extra else None


def _keep_count(scene: PodScene, workload: Json) -> PodDeed | None:
    """Keep the pods of a group until it has ended: those that have succeeded are counted."""
    del workload
    if not scene.group or scene.serves:
        return None
    changes = []
    for pod in scene.coming:
        found = get_in(pod, ("metadata", "finalizers")) or []
        if _FINALIZER not in found and not plain_pods.is_going(pod):
            kept = [*found, _FINALIZER]
            changes.append((pod, [write_operation("add", ("metadata", "finalizers"), kept)]))
    return ChangePods(changes) if changes else None


def _join_owners(scene: PodScene, workload: Json) -> PodDeed | None:
    """Have all pods of a group own its workload: it would go with those that were there when it was made."""
    if not scene.group:
        return None
    found = read_list(workload, "metadata", "ownerReferences")
    known = {one.get("uid") for one in found}
    added = [
        make_owner(pod)
        for pod in scene.coming
        if get_in(pod, ("metadata", "uid")) not in known and not plain_pods.is_going(pod)
    ]
    return WriteWorkload(workload, {"metadata": {"ownerReferences": [*found, *added]}}) if added else None  # fmt: skip


_Step = Callable[[PodScene, Json], PodDeed | None]
_STEPS: tuple[_Step, ...] = (
    _finish,
    _note_ended,
    _note_readiness,
    _follow_eviction,
    _trim,
    _keep_count,
    _join_owners,
    _start,
    _follow_pods,
    _stop_unadmitted,
)


def _list_steps(workload: Json) -> tuple[_Step, ...]:
    if has_condition(workload, FINISHED):
        return (_end_finished,)
    return (_stop_deleted,) if statuses.is_going(workload) else _STEPS
