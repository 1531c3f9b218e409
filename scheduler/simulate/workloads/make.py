"""Creates the missing pods of all workloads of an inventory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from scheduler.api import wire
from scheduler.api.storage import PersistentVolumeClaim
from scheduler.devices.table import FAMILIES
from scheduler.simulate.reading.inventory import Inventory
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.workloads import claims, daemons, jobs, replicas, stateful
from scheduler.simulate.workloads import workload as workloads
from scheduler.simulate.workloads.contract import Idle, Made, Room, Scene
from scheduler.simulate.workloads.molds import Names
from scheduler.simulate.workloads.owned import Owned
from scheduler.simulate.workloads.workload import Workload
from scheduler.state.cluster import Cluster

_MAKERS: dict[str, Callable[[Workload, Scene], Made]] = {
    "Deployment": replicas.of_deployment,
    "ReplicaSet": replicas.of_set,
    "ReplicationController": replicas.of_set,
    "StatefulSet": stateful.of_stateful_set,
    "DaemonSet": daemons.of_daemon_set,
    "Job": jobs.of_job,
    "CronJob": jobs.of_cron_job,
}


@dataclass(frozen=True, slots=True)
class Making:
    """The result of all workloads.

    Attributes:
        made: uids of the pods that were made.
        caused: uids of those that would not have been made without a change.
        idle: workloads that have no pods to make, by the reason.
        owners: the kind and name of the topmost owner of each pod that has one, by uid.
        removed: pods that a smaller size removes, in the order in which they are removed, by the workload.
    """

    made: set[str] = field(default_factory=set)
    caused: set[str] = field(default_factory=set)
    idle: dict[Idle, list[ObjectKey]] = field(default_factory=lambda: {why: [] for why in Idle})
    owners: dict[str, ObjectKey] = field(default_factory=dict)
    removed: dict[ObjectKey, list[wire.Pod]] = field(default_factory=dict)


def make(
    inventory: Inventory,
    scaled: AbstractSet[ObjectKey] = frozenset(),
    added: AbstractSet[str] = frozenset(),
) -> Making:
    """Make what is missing.

    A malformed workload is among the mistakes of the inventory.

    Args:
        inventory: gets the pods that are made.
        scaled: workloads whose size a change sets; their surplus pods are removed.
        added: nodes that a change adds.
    """
    found: list[Workload] = []
    for given in inventory.workloads:
        with inventory.about(given):
            found.append(workloads.of(given))
    owned = Owned(inventory.pods, found)
    scene = _scene(inventory, found, owned)
    making = Making()
    wanted: list[PersistentVolumeClaim] = []
    deployments = {one.key for one in found if one.key.kind == "Deployment"}
    for workload in found:
        if _deployment_of(workload) in deployments:
            continue
        with inventory.about(workload.given):
            done = _MAKERS[workload.key.kind](workload, scene)
            for pod in done.pods:
                _add(inventory, making, workload, pod)
            making.caused.update(_caused(workload, done.pods, scaled, added))
            inventory.groups.extend(done.groups)
            wanted += done.claims
            if done.idle is not None:
                making.idle[done.idle].append(workload.key)
            if workload.key in scaled and done.surplus:
                making.removed[workload.key] = list(done.surplus)
    if making.removed:
        gone = {pod.metadata.uid for pods in making.removed.values() for pod in pods}
        inventory.pods[:] = [pod for pod in inventory.pods if pod.metadata.uid not in gone]
    claims.make(inventory, wanted)
    for pod in inventory.pods:
        if pod.metadata.uid not in making.owners and (top := owned.top(pod)):
            making.owners[pod.metadata.uid] = top
    return making


def _scene(inventory: Inventory, found: Iterable[Workload], owned: Owned) -> Scene:
    sets: dict[ObjectKey, list[Workload]] = defaultdict(list)
    running: set[ObjectKey] = set()
    for one in found:
        if deployment := _deployment_of(one):
            sets[deployment].append(one)
        owner = one.controller
        if one.key.kind == "Job" and owner and owner.kind == "CronJob" and not jobs.is_over(one):
            running.add(ObjectKey("CronJob", one.key.namespace, owner.name))
    nodes = Cluster(families=FAMILIES)
    for node in inventory.nodes:
        nodes.see_node(node)
    return Scene(
        owned=owned,
        names=Names(inventory.pods),
        priorities=inventory.priorities,
        replica_sets=dict(sets),
        running=running,
        nodes=nodes,
        room=Room(),
    )


def _deployment_of(workload: Workload) -> ObjectKey | None:
    """The Deployment of a ReplicaSet."""
    owner = workload.controller
    if workload.key.kind != "ReplicaSet" or owner is None or owner.kind != "Deployment":
        return None
    return ObjectKey("Deployment", workload.key.namespace, owner.name)


def _caused(
    workload: Workload,
    pods: Iterable[wire.Pod],
    scaled: AbstractSet[ObjectKey],
    added: AbstractSet[str],
) -> Iterator[str]:
    is_scaled, is_daemon = workload.key in scaled, workload.key.kind == "DaemonSet"
    for pod in pods:
        if is_scaled or (is_daemon and daemons.node_of(pod) in added):
            yield pod.metadata.uid


def _add(inventory: Inventory, making: Making, workload: Workload, pod: wire.Pod) -> None:
    meta = pod.metadata
    # A pod of the same name may be on its way out.
    while meta.uid in inventory.positions:
        meta.uid += "+"
    path = workload.template if workload.key.kind != "CronJob" else workloads.JOB_TEMPLATE
    inventory.positions[meta.uid] = workload.given.position
    inventory.templates[meta.uid] = f"{path}."
    inventory.pods.append(pod)
    making.made.add(meta.uid)
    making.owners[meta.uid] = workload.key
