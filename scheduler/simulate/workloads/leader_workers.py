"""LeaderWorkerSets: each replica is a leader and its workers, numbered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler.api import names, steering, values, wire
from scheduler.errors import BadInput
from scheduler.simulate.reading import objects
from scheduler.simulate.reading.kinds import ObjectKey
from scheduler.simulate.workloads import exclusive
from scheduler.simulate.workloads.contract import Made, Scene
from scheduler.simulate.workloads.exclusive import Parts
from scheduler.simulate.workloads.molds import Mold
from scheduler.simulate.workloads.workload import PODS_MAX, Workload, take_template

_PAIR = "leaderWorkerTemplate"
_POD_NAME = "statefulset.kubernetes.io/pod-name"
_LEADER = "leaderworkerset.sigs.k8s.io/leader-name"


def make_replica_pods(workload: Workload, scene: Scene) -> Made:
    """Make the pods that are missing; workers that are to start only after their leader are made, too."""
    pair = objects.find_mapping({"spec": workload.spec}, "spec", _PAIR)
    size = values.read_integer(pair.get("size", 1), f"spec.{_PAIR}.size", 1, PODS_MAX)
    replicas = workload.read_count("replicas", 1)
    if replicas * size > PODS_MAX:
        raise BadInput("spec", f"makes {replicas * size} pods: at most {PODS_MAX} are allowed")
    parts = _read_parts(pair, size)
    there = {pod.metadata.name: pod for pod in _list_there(workload, scene, replicas)}
    wanted = {
        f"{workload.key.name}-{i}-{j}" if j else f"{workload.key.name}-{i}": (i, j)
        for i in range(replicas)
        for j in range(size)
    }
    surplus = [there[name] for name in sorted(there.keys() - wanted.keys())]
    missing = {name: place for name, place in wanted.items() if name not in there}
    leader_key = "leaderTemplate" if pair.get("leaderTemplate") is not None else "workerTemplate"
    molds: dict[str, Mold] = {}
    for key in (leader_key, "workerTemplate"):
        n = sum(_choose_key(j, leader_key) == key for _, j in missing.values())
        if n and key not in molds:
            path = f"spec.{_PAIR}.{key}"
            molds[key] = scene.make_mold(take_template(workload, pair.get(key), path), n)
    pods: list[wire.Pod] = []
    templates: dict[str, str] = {}
    for name, (i, j) in missing.items():
        key = _choose_key(j, leader_key)
        pod = _make_pod(workload, molds[key], name, (i, j, size))
        leader, notes = f"{workload.key.name}-{i}", workload.meta.annotations or {}
        pod = exclusive.admit_in_replica(pod, leader, notes, parts)
        pods.append(pod)
        templates[pod.metadata.uid] = f"spec.{_PAIR}.{key}"
    return Made(pods, _make_sets(workload, scene, replicas), surplus, templates=templates)


def _read_parts(pair: Mapping[str, Any], size: int) -> Parts | None:
    """Read how a replica is cut into subgroups; None if it is not."""
    field = f"spec.{_PAIR}.subGroupPolicy"
    policy = values.read_mapping(pair.get("subGroupPolicy"), field)
    if "subGroupSize" not in policy:
        return None
    part_size = values.read_integer(policy["subGroupSize"], f"{field}.subGroupSize", 1, size)
    return Parts(size, part_size, policy.get("subGroupPolicyType") == "LeaderExcluded")


def _make_sets(workload: Workload, scene: Scene, replicas: int) -> list[steering.PeerObject]:
    """Make the StatefulSets of the leaders and of each replica's workers, which say what is spread together."""
    namespace, name = workload.key.namespace, workload.key.name
    selectors = {name: {names.LWS_NAME: name, names.LWS_INDEX: "0"}}
    selectors |= {
        f"{name}-{i}": {names.LWS_NAME: name, names.LWS_GROUP: str(i)} for i in range(replicas)
    }
    return [
        objects.read_peer_object(
            {
                "apiVersion": "apps/v1",
                "kind": "StatefulSet",
                "metadata": {"name": one, "namespace": namespace},
                "spec": {"selector": {"matchLabels": labels}},
            }
        )
        for one, labels in selectors.items()
        if ObjectKey("StatefulSet", namespace, one) not in scene.there
    ]


def _choose_key(j: int, leader_key: str) -> str:
    return "workerTemplate" if j else leader_key


def _make_pod(workload: Workload, mold: Mold, name: str, place: tuple[int, int, int]) -> wire.Pod:
    i, j, size = place
    set_name = workload.key.name
    leader = f"{set_name}-{i}"
    labels = {
        names.LWS_NAME: set_name,
        names.LWS_GROUP: str(i),
        names.LWS_INDEX: str(j),
        _POD_NAME: name,
        names.SET_INDEX: str(j or i),
    }
    annotations = {names.LWS_SIZE: str(size), **({_LEADER: leader} if j else {})}
    owner = wire.Owner("StatefulSet", leader if j else set_name, "apps/v1", controller=True)
    return mold.make_pod(name, labels=labels, annotations=annotations, owner=owner)


def _list_there(workload: Workload, scene: Scene, replicas: int) -> list[wire.Pod]:
    """List the existing pods, even if the StatefulSets between are not among the objects."""
    owned, namespace, name = scene.owned, workload.key.namespace, workload.key.name
    above = (workload.key, ObjectKey("StatefulSet", namespace, name))
    leaders = [pod for key in above for pod in owned.list_alive(key)]
    # A replica that the set is to lose has workers, too.
    replica_names = {f"{name}-{i}" for i in range(replicas)} | {
        one.metadata.name for one in leaders
    }
    sets = [ObjectKey("StatefulSet", namespace, one) for one in sorted(replica_names)]
    workers = [pod for key in sets for pod in owned.list_alive(key)]
    found = {pod.metadata.uid: pod for pod in (*leaders, *workers)}
    return [
        pod for pod in found.values() if (pod.metadata.labels or {}).get(names.LWS_NAME) == name
    ]
