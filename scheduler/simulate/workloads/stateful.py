"""StatefulSets: numbered pods, each with the label of its number and its own claims."""

from __future__ import annotations

from msgspec import structs

from scheduler.api import values, wire
from scheduler.simulate.reading import objects
from scheduler.simulate.workloads import claims
from scheduler.simulate.workloads.claims import Templates
from scheduler.simulate.workloads.contract import Made, Scene
from scheduler.simulate.workloads.workload import Workload

_POD_NAME, _INDEX = "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"
_ORDINAL_MAX = 2**31 - 1


def of_stateful_set(workload: Workload, scene: Scene) -> Made:
    """Each number that has no pod."""
    name = workload.key.name
    ordinals = objects.mapping({"spec": workload.spec}, "spec", "ordinals")
    start = values.read_integer(ordinals.get("start", 0), "spec.ordinals.start", 0, _ORDINAL_MAX)
    numbers = range(start, start + workload.count("replicas", 1))
    there = {pod.metadata.name: pod for pod in scene.owned.alive(workload.key)}
    wanted = {f"{name}-{i}": i for i in numbers}
    missing = [(pod_name, i) for pod_name, i in wanted.items() if pod_name not in there]
    surplus = [pod for pod_name, pod in there.items() if pod_name not in wanted]
    if not missing:
        return Made(surplus=sorted(surplus, key=_number, reverse=True))
    mold = scene.mold(workload, len(missing))
    field = "spec.volumeClaimTemplates"
    given = values.read_items(workload.spec.get("volumeClaimTemplates"), field, dict)
    templates = claims.templates(given, field)
    pods = [
        mold.make(
            pod_name,
            labels={_POD_NAME: pod_name, _INDEX: str(i)},
            spec=_with_claims(mold.pod.spec, templates, pod_name) if templates else None,
        )
        for pod_name, i in missing
    ]
    return Made(
        pods,
        surplus=sorted(surplus, key=_number, reverse=True),
        claims=[one for pod in pods for one in claims.of_set(templates, pod)],
    )


def _number(pod: wire.Pod) -> int:
    text = pod.metadata.name.rpartition("-")[2]
    return int(text) if text.isdecimal() else -1


def _with_claims(spec: wire.PodSpec, templates: Templates, pod_name: str) -> wire.PodSpec:
    """Only the properties of volumes that tie a pod to nodes are read, so volumes of the template may stay beside them."""
    made = [
        wire.Volume(persistent_volume_claim=wire.ClaimSource(f"{claim}-{pod_name}"))
        for claim, _ in templates
    ]
    return structs.replace(spec, volumes=[*(spec.volumes or ()), *made])
