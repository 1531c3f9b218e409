"""StatefulSets: numbered pods, each with the label of its number and its own claims."""

from __future__ import annotations

from msgspec import structs

from scheduler.api import values, wire
from scheduler.api.names import SET_INDEX
from scheduler.simulate.reading import objects
from scheduler.simulate.workloads import claims
from scheduler.simulate.workloads.claims import Templates
from scheduler.simulate.workloads.contract import Made, Scene
from scheduler.simulate.workloads.workload import Workload

_POD_NAME = "statefulset.kubernetes.io/pod-name"
_ORDINAL_MAX = 2**31 - 1


def make_stateful_pods(workload: Workload, scene: Scene) -> Made:
    """Make a pod for each number that has none."""
    name = workload.key.name
    ordinals = objects.find_mapping({"spec": workload.spec}, "spec", "ordinals")
    start = values.read_integer(ordinals.get("start", 0), "spec.ordinals.start", 0, _ORDINAL_MAX)
    numbers = range(start, start + workload.read_count("replicas", 1))
    there = {pod.metadata.name: pod for pod in scene.owned.list_alive(workload.key)}
    wanted = {f"{name}-{i}": i for i in numbers}
    missing = [(pod_name, i) for pod_name, i in wanted.items() if pod_name not in there]
    surplus = [pod for pod_name, pod in there.items() if pod_name not in wanted]
    if not missing:
        return Made(surplus=sorted(surplus, key=_read_number, reverse=True))
    mold = scene.make_mold(workload, len(missing))
    field = "spec.volumeClaimTemplates"
    given = values.read_items(workload.spec.get("volumeClaimTemplates"), field, dict)
    templates = claims.read_templates(given, field)
    pods = [
        mold.make_pod(
            pod_name,
            labels={_POD_NAME: pod_name, SET_INDEX: str(i)},
            spec=_add_claims(mold.pod.spec, templates, pod_name) if templates else None,
        )
        for pod_name, i in missing
    ]
    return Made(
        pods,
        surplus=sorted(surplus, key=_read_number, reverse=True),
        claims=[one for pod in pods for one in claims.make_claims(templates, pod)],
    )


def _read_number(pod: wire.Pod) -> int:
    text = pod.metadata.name.rpartition("-")[2]
    return int(text) if text.isdecimal() else -1


def _add_claims(spec: wire.PodSpec, templates: Templates, pod_name: str) -> wire.PodSpec:
    """Add claims as volumes. The template's own volumes may stay: only what ties a pod to nodes is read of volumes."""
    made = [
        wire.Volume(persistent_volume_claim=wire.ClaimSource(f"{claim}-{pod_name}"))
        for claim, _ in templates
    ]
    return structs.replace(spec, volumes=[*(spec.volumes or ()), *made])
