"""Creates the missing pods of all workloads of an inventory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from scheduler import printing
from scheduler.api import wire
from scheduler.api.door import events
from scheduler.api.storage import PersistentVolumeClaim
from scheduler.config import Config
from scheduler.engine.engine import Engine
from scheduler.simulate.reading.inventory import Inventory
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.workloads import (
    claims,
    daemons,
    job_sets,
    jobs,
    leader_workers,
    ray,
    replicas,
    rollout,
    stateful,
    training,
)
from scheduler.simulate.workloads import workload as workloads
from scheduler.simulate.workloads.contract import Idle, Made, Room, Scene
from scheduler.simulate.workloads.device_claims import add_resource_claims
from scheduler.simulate.workloads.molds import Names
from scheduler.simulate.workloads.owned import Owned
from scheduler.simulate.workloads.rollout import Earlier, WorkloadChange
from scheduler.simulate.workloads.workload import Workload

_MAKERS: dict[str, Callable[[Workload, Scene], Made]] = {
    "Deployment": replicas.make_deployment_pods,
    "ReplicaSet": replicas.make_set_pods,
    "ReplicationController": replicas.make_set_pods,
    "StatefulSet": stateful.make_stateful_pods,
    "DaemonSet": daemons.make_daemons,
    "Job": jobs.make_job_pods,
    "CronJob": jobs.make_run,
    "JobSet": job_sets.make_job_set_pods,
    "TrainJob": job_sets.make_train_job_pods,
    "LeaderWorkerSet": leader_workers.make_replica_pods,
    "MPIJob": training.make_mpi_pods,
    "PyTorchJob": training.make_maker("pytorchReplicaSpecs", "pytorchjob-controller"),
    "TFJob": training.make_maker("tfReplicaSpecs", "tfjob-controller"),
    "XGBoostJob": training.make_maker("xgbReplicaSpecs", "xgboostjob-controller"),
    "PaddleJob": training.make_maker("paddleReplicaSpecs", "paddlejob-controller"),
    "JAXJob": training.make_maker("jaxReplicaSpecs", "jaxjob-controller"),
    "RayCluster": ray.make_cluster_pods,
    "RayJob": ray.make_ray_job_pods,
    "RayService": ray.make_ray_service_pods,
}
# Kinds with several templates. Their pods in the baseline stay, whatever has changed.
_WITH_SEVERAL = frozenset(
    {
        "JobSet",
        "LeaderWorkerSet",
        "MPIJob",
        "PyTorchJob",
        "TFJob",
        "XGBoostJob",
        "PaddleJob",
        "JAXJob",
        "RayCluster",
        "RayJob",
        "RayService",
        "TrainJob",
    }
)
# Kinds of workloads, and of the workloads above them that make their pods.
_IN_ITS_STEAD = frozenset({("ReplicaSet", "Deployment"), ("StatefulSet", "LeaderWorkerSet")})
_NOTHING: Earlier = {}


@dataclass(frozen=True, slots=True)
class Making:
    """The result of all workloads.

    Attributes:
        made: uids of the pods that were made.
        caused: uids of the pods that would not have been made without a change.
        idle: workloads that have no pods to make, by the reason.
        owners: the kind and name of the topmost owner of each pod that has one, by uid.
        removed: pods that a smaller size or a changed template removes, in the order in which they are removed, by
            the workload.
        remarks: which workloads of one's own files are in the baseline, and what happens to their pods there.
    """

    made: set[str] = field(default_factory=set)
    caused: set[str] = field(default_factory=set)
    idle: dict[Idle, list[ObjectKey]] = field(default_factory=lambda: {why: [] for why in Idle})
    owners: dict[str, ObjectKey] = field(default_factory=dict)
    removed: dict[ObjectKey, list[wire.Pod]] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def make_pods(
    inventory: Inventory,
    scaled: AbstractSet[ObjectKey] = frozenset(),
    added: AbstractSet[str] = frozenset(),
    earlier: Earlier = _NOTHING,
) -> Making:
    """Make the missing pods.

    A malformed workload is added to the mistakes of the inventory.

    Args:
        inventory: the pods that are made are added to it.
        scaled: workloads whose size a change sets; their surplus pods are removed.
        added: nodes that a change adds.
        earlier: workloads of one's own files. Pods of the baseline that were made from another template are removed,
            and so are surplus pods.
    """
    making = Making()
    found = _find_workloads(inventory, earlier)
    changes = _find_changes(inventory, found, earlier, making)
    # A run of a CronJob is removed with its pods, and the next run is made in its place.
    found = [one for one in found if _find_cron_job(one) not in changes]
    owned = Owned(inventory.pods, found)
    scene = _make_scene(inventory, found, owned)
    # If the baseline lacks the object, an autoscaler may have set the size that the file leaves out.
    sized = scaled | {key for key, before in earlier.items() if before is not None}
    wanted: list[PersistentVolumeClaim] = []
    for workload in found:
        if _find_maker(workload) in scene.there:
            continue
        with inventory.collect_mistakes(workload.given):
            done = _MAKERS[workload.key.kind](workload, scene)
            for pod in done.pods:
                _add_pod(inventory, making, workload, pod, done.templates)
            making.caused.update(_list_caused(workload, done.pods, scaled, added))
            inventory.peers.extend(done.groups)
            inventory.grouping.extend(done.grouping)
            wanted += done.claims
            if done.remark:
                making.remarks.append(done.remark)
            if done.idle is not None:
                making.idle[done.idle].append(workload.key)
            if workload.key in changes:
                change = changes[workload.key]
                making.remarks.append(_describe_replaced(workload.key, change, len(done.pods)))
            if done.surplus and workload.key in sized:
                making.removed.setdefault(workload.key, []).extend(done.surplus)
    _remove_pods(inventory, making)
    claims.add_claims(inventory, wanted)
    add_resource_claims(inventory)
    for pod in inventory.pods:
        if pod.metadata.uid not in making.owners and (top := owned.find_top(pod)):
            making.owners[pod.metadata.uid] = top
    return making


def _find_workloads(inventory: Inventory, earlier: Earlier) -> list[Workload]:
    """Find all workloads that can be read."""
    found: list[Workload] = []
    for given in inventory.workloads:
        with inventory.collect_mistakes(given):
            one = workloads.read_workload(given)
            found.append(rollout.keep_size(one, earlier.get(one.key)))
    return found


def _find_changes(
    inventory: Inventory, found: Sequence[Workload], earlier: Earlier, making: Making
) -> dict[ObjectKey, WorkloadChange]:
    """Find the workloads of one's own files that replace pods of the baseline; these pods are removed."""
    owned = Owned(inventory.pods, found)
    by_key = {one.key: one for one in found}
    changes: dict[ObjectKey, WorkloadChange] = {}
    unchanged: list[ObjectKey] = []
    for key, before in earlier.items():
        if key not in by_key:
            continue
        with inventory.collect_mistakes(by_key[key].given):
            if key.kind in _WITH_SEVERAL:
                if owned.list_alive(key):
                    making.remarks.append(
                        f"{key.kind} {key.namespace}/{key.name} of your files is in the baseline: its templates are not compared, "
                        "its pods stay, and only missing pods are placed"
                    )
                continue
            change = rollout.find_change(by_key[key], before, owned, by_key, inventory.priorities)
            if change.pods:
                changes[key] = change
                making.removed[key] = change.pods
            elif before is not None or owned.list_alive(key):
                unchanged.append(key)
    making.remarks.extend(_report_unchanged(unchanged))
    _remove_pods(inventory, making)
    return changes


def _remove_pods(inventory: Inventory, making: Making) -> None:
    gone = {pod.metadata.uid for pods in making.removed.values() for pod in pods}
    if gone:
        kept = [
            pod
            for pod in inventory.pods
            if pod.metadata.uid not in gone or pod.metadata.uid in making.made
        ]
        inventory.pods[:] = kept


def _describe_replaced(key: ObjectKey, change: WorkloadChange, n_new: int) -> str:
    n_old, are = len(change.pods), "is" if len(change.pods) == 1 else "are"
    return (
        f"{key.kind} {key.namespace}/{key.name} is in the baseline with another pod template "
        f"({', '.join(change.fields)}): {printing.count_nouns(n_old, 'pod')} of the baseline {are} removed in a trial, and "
        f"{printing.count_nouns(n_new, 'new pod')} {'is' if n_new == 1 else 'are'} placed"
    )


def _report_unchanged(unchanged: Sequence[ObjectKey]) -> Iterator[str]:
    """Report all unchanged workloads in one sentence, because a chart may have many."""
    if unchanged:
        names = [f"{one.kind} {one.namespace}/{one.name}" for one in unchanged]
        n = len(names)
        are, their = ("is", "its") if n == 1 else ("are", "their")
        yield (
            f"{printing.count_nouns(n, 'workload')} of your files {are} in the baseline with the same pod template, as far as "
            f"placement reads it: {their} pods stay, and only missing pods are placed ({printing.list_some(names)})"
        )


def _make_scene(inventory: Inventory, found: Iterable[Workload], owned: Owned) -> Scene:
    sets: dict[ObjectKey, list[Workload]] = defaultdict(list)
    running: set[ObjectKey] = set()
    for one in found:
        if (maker := _find_maker(one)) is not None:
            sets[maker].append(one)
        if (cron := _find_cron_job(one)) and not jobs.is_over(one):
            running.add(cron)
    nodes = Engine(Config(), is_shared=False)
    for node in inventory.nodes:
        nodes.handle(events.Seen(node), 0.0)
    return Scene(
        owned=owned,
        names=Names(inventory.pods),
        priorities=inventory.priorities,
        replica_sets=dict(sets),
        running=running,
        there=frozenset(one.key for one in found),
        nodes=nodes,
        room=Room(),
    )


def _find_maker(workload: Workload) -> ObjectKey | None:
    """Find the workload that makes the pods of a workload in its stead: a Deployment, or a LeaderWorkerSet."""
    owner = workload.controller
    if owner is None or (workload.key.kind, owner.kind) not in _IN_ITS_STEAD:
        return None
    return ObjectKey(owner.kind, workload.key.namespace, owner.name)


def _find_cron_job(workload: Workload) -> ObjectKey | None:
    """Find the CronJob of a Job."""
    owner = workload.controller
    if workload.key.kind != "Job" or owner is None or owner.kind != "CronJob":
        return None
    return ObjectKey("CronJob", workload.key.namespace, owner.name)


def _list_caused(
    workload: Workload,
    pods: Iterable[wire.Pod],
    scaled: AbstractSet[ObjectKey],
    added: AbstractSet[str],
) -> Iterator[str]:
    is_scaled, is_daemon = workload.key in scaled, workload.key.kind == "DaemonSet"
    for pod in pods:
        if is_scaled or (is_daemon and daemons.find_node(pod) in added):
            yield pod.metadata.uid


def _add_pod(
    inventory: Inventory,
    making: Making,
    workload: Workload,
    pod: wire.Pod,
    templates: Mapping[str, str],
) -> None:
    meta = pod.metadata
    usual = workload.template if workload.key.kind != "CronJob" else workloads.JOB_TEMPLATE
    path = templates.get(meta.uid, usual)
    # A pod of the same name may be terminating.
    while meta.uid in inventory.positions:
        meta.uid += "+"
    inventory.positions[meta.uid] = workload.given.position
    inventory.templates[meta.uid] = f"{path}."
    inventory.pods.append(pod)
    making.made.add(meta.uid)
    making.owners[meta.uid] = workload.key
