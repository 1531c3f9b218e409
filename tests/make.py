"""Builders of nodes and pods as the API server sends them, by keyword, decoded like the real ones.

A test names only what it is about; the rest is a small ordinary object.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from scheduler.api import names, steering, wire
from scheduler.api.cards import Grant, Grants, Slots, find_slots
from scheduler.api.groups import objects
from scheduler.api.groups.definitions import GroupKey
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.devices.hami import HamiCards
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster
from scheduler.state.entities import Entity, Team, make_entity
from scheduler.state.pods import Life, PodRecord

Json = dict[str, Any]
T4_MIB = 15360
T4 = "NVIDIA-Tesla T4"


def container(
    *,
    name: str = "main",
    cpu: str | int | None = None,
    memory: str | int | None = None,
    gpu: int | None = None,
    gpumem: int | str | None = None,
    gpumem_percent: int | str | None = None,
    gpucores: int | str | None = None,
    requests: Mapping[str, str | int] | None = None,
    limits: Mapping[str, str | int] | None = None,
    sidecar: bool = False,
    host_ports: Iterable[int] = (),
    image: str = "",
) -> Json:
    """A container's JSON. GPU figures are limits, as HAMi's users write them, and requests too."""
    shared = {
        names.GPU: gpu,
        names.GPU_MEMORY: gpumem,
        names.GPU_MEMORY_PERCENT: gpumem_percent,
        names.GPU_CORES: gpucores,
    }
    asked = _given({names.CPU: cpu, names.MEMORY: memory} | shared) | dict(requests or {})
    built: Json = {
        "name": name,
        "resources": {"requests": asked, "limits": _given(shared) | dict(limits or {})},
    }
    if image:
        built["image"] = image
    if sidecar:
        built["restartPolicy"] = "Always"
    if ports := [{"hostPort": port, "protocol": "TCP"} for port in host_ports]:
        built["ports"] = ports
    return built


def pod(
    *,
    name: str = "pod",
    namespace: str = "default",
    uid: str = "",
    node: str = "",
    scheduler_name: str = names.SCHEDULER,
    priority: int = 0,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    phase: str = "",
    containers: Sequence[Json] | None = None,
    init_containers: Sequence[Json] = (),
    node_selector: Mapping[str, str] | None = None,
    preferred: Sequence[tuple[int, str, str]] = (),
    tolerations: Sequence[Json] = (),
    spec: Mapping[str, Any] | None = None,
    **figures: Any,
) -> wire.Pod:
    """A pod of ours, pending unless ``node`` is given.

    Args:
        containers: JSON of app containers; without it, one container of ``figures`` (see ``container``).
        preferred: (weight, label, value) terms of preferred node affinity.
        spec: goes over the built spec.
    """
    if containers is not None and figures:
        raise TypeError(f"{sorted(figures)} describe a container, and containers are given")
    body: Json = {
        "metadata": _meta(name, labels, annotations) | {"namespace": namespace},
        "spec": {
            "schedulerName": scheduler_name,
            "priority": priority,
            "containers": [container(**figures)] if containers is None else list(containers),
        },
        "status": {"phase": phase or ("Running" if node else "Pending")},
    }
    body["metadata"]["uid"] = uid or f"{namespace}/{name}"
    more: Json = {
        "nodeName": node,
        "initContainers": list(init_containers),
        "nodeSelector": dict(node_selector or {}),
        "tolerations": list(tolerations),
    }
    body["spec"] |= {key: value for key, value in more.items() if value}
    if preferred:
        terms = [
            {
                "weight": weight,
                "preference": {
                    "matchExpressions": [{"key": label, "operator": "In", "values": [value]}]
                },
            }
            for weight, label, value in preferred
        ]
        body["spec"]["affinity"] = {
            "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}
        }
    body["spec"] |= dict(spec or {})
    return msgspec.convert(body, wire.Pod)


def node(
    *,
    name: str = "node",
    uid: str = "",
    cpu: str | int = "8",
    memory: str | int = "32Gi",
    pods: int = 110,
    gpus: int = 0,
    allocatable: Mapping[str, str | int] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Sequence[tuple[str, str, str]] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
) -> wire.Node:
    """A node; ``gpus`` are whole GPUs without HAMi, ``taints`` are (key, value, effect), ``images`` MiB by name."""
    figures: dict[str, str | int] = {
        names.CPU: cpu,
        names.MEMORY: memory,
        names.PODS: pods,
        **({names.GPU: gpus} if gpus else {}),
        **(allocatable or {}),
    }
    meta = _meta(name, {"kubernetes.io/hostname": name, **(labels or {})}, annotations)
    body: Json = {
        "metadata": meta | {"uid": uid or f"uid-{name}"},
        "spec": {
            "unschedulable": unschedulable,
            "taints": [
                dict(zip(("key", "value", "effect"), taint, strict=True)) for taint in taints
            ],
        },
        "status": {"allocatable": figures}
        | (
            {
                "images": [
                    {"names": [image], "sizeBytes": mib << 20} for image, mib in images.items()
                ]
            }
            if images
            else {}
        ),
    }
    return msgspec.convert(body, wire.Node)


def card(
    *,
    uuid: str = "GPU-0",
    index: int = 0,
    sharers: int = 10,
    mib: int = T4_MIB,
    cores: int = 100,
    model: str = T4,
    numa: int = 0,
    mode: str = "hami-core",
    healthy: bool = True,
) -> Json:
    """A card as HAMi's device plugin registers it: Go leaves zero values out."""
    figures: Json = {
        "id": uuid,
        "index": index,
        "count": sharers,
        "devmem": mib,
        "devcore": cores,
        "type": model,
        "numa": numa,
        "mode": mode,
        "health": healthy,
    }
    return {key: value for key, value in figures.items() if value}


def cards(*, count: int, prefix: str = "GPU", **figures: Any) -> list[Json]:
    """Like cards, numbered: ``GPU-0``, ``GPU-1``…"""
    return [card(uuid=f"{prefix}-{i}", index=i, **figures) for i in range(count)]


def hami_node(
    *,
    name: str = "node",
    cards: Sequence[Json] | int = 1,
    cordoned: Iterable[str] = (),
    annotations: Mapping[str, str] | None = None,
    **figures: Any,
) -> wire.Node:
    """A node with HAMi's device plugin; ``cards`` is JSON of cards, or how many T4s named after it."""
    if isinstance(cards, int):
        cards = [card(uuid=f"{name}-GPU-{i}", index=i) for i in range(cards)]
    slots, notes = hami_register(cards, cordoned)
    return node(name=name, gpus=slots, annotations=notes | dict(annotations or {}), **figures)


def hami_register(
    cards: Sequence[Json], cordoned: Iterable[str] = ()
) -> tuple[int, dict[str, str]]:
    """What HAMi's device plugin makes of its cards: how many may share them, and the node's annotations."""
    notes = {names.HAMI_REGISTER: msgspec.json.encode(list(cards)).decode()}
    if closed := ",".join(cordoned):
        notes[names.HAMI_CORDON] = closed
    return sum(one.get("count", 0) for one in cards if one.get("health")), notes


def grant(slots: Slots) -> Grants:
    """These cards of HAMi's, as a decision gives them; nothing for no cards."""
    return (Grant(HamiCards.name, slots),) if any(slots) else ()


def read_slots(devices: Grants) -> Slots:
    """The cards of HAMi's that a decision gives, a slot for each container."""
    return find_slots(devices, HamiCards.name)


def raw(thing: wire.Node | wire.Pod) -> Json:
    """The JSON of a built object."""
    body: Json = msgspec.to_builtins(thing)
    return body


def namespace(name: str, labels: dict[str, str] | None = None) -> steering.Namespace:
    """A namespace."""
    return steering.Namespace(wire.Meta(name=name, labels=labels))


def policy(body: Json) -> steering.BalancePolicy:
    """A policy of what a manifest says."""
    return msgspec.convert(body, steering.BalancePolicy)


def budget(
    name: str,
    selector: wire.LabelSelector | None,
    allowed: int = 0,
    *,
    namespace: str = "default",
    disrupted: Iterable[str] = (),
) -> steering.PodDisruptionBudget:
    """A budget that allows so many more pods to go."""
    status = steering.BudgetStatus(allowed, dict.fromkeys(disrupted, ""))
    return steering.PodDisruptionBudget(
        wire.Meta(name=name, namespace=namespace), steering.SetSpec(selector), status
    )


def cluster(*, nodes: Iterable[wire.Node] = (), pods: Iterable[wire.Pod] = ()) -> Cluster:
    """A cluster that has seen these nodes, then these pods."""
    built = Cluster()
    for one in nodes:
        built.see_node(one)
    for one_pod in pods:
        built.see_pod(one_pod)
    return built


def cycle(*, cluster: Cluster, config: Config | None = None) -> Cycle:
    """A cycle over a cluster, without policies."""
    config = config or Config()
    return Cycle(cluster, PolicyBook(config))


def _meta(
    name: str, labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None
) -> Json:
    built: Json = {"name": name}
    if labels:
        built["labels"] = dict(labels)
    if annotations:
        built["annotations"] = dict(annotations)
    return built


def _given(figures: Mapping[str, Any]) -> Json:
    return {key: value for key, value in figures.items() if value is not None}


def relist_pods(
    cluster: Cluster, pods: Sequence[wire.Pod], *, scheduler: str, is_first: bool = False
) -> None:
    """A list of one stream's pods, applied as the loop does."""
    for one in pods:
        cluster.see_pod(one, listed=is_first)
    for uid in cluster.list_missing({one.metadata.uid for one in pods}, scheduler):
        cluster.drop_pod(uid)


def relist_nodes(cluster: Cluster, nodes: Sequence[wire.Node]) -> None:
    """A list of all nodes, applied as the loop does."""
    present = {cluster.see_node(one).name for one in nodes}
    for name in [name for name in cluster.nodes.rows if name not in present]:
        cluster.drop_node(name)


def is_waiting(pod: PodRecord) -> bool:
    """Whether a pod is ours to place now."""
    return pod.ours and pod.life == Life.PENDING and not pod.gated and not pod.deleting


def pod_group(
    name: str = "gang", minimum: int = 0, *, topology: str = "", **more: Any
) -> objects.KubePodGroup:
    """A PodGroup of Kubernetes; a minimum of 0: a basic one."""
    policy = {"gang": {"minCount": minimum}} if minimum else {"basic": {}}
    spec: dict[str, Any] = {"schedulingPolicy": policy, **more}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    meta = wire.Meta(name=name, namespace="default", uid=f"uid of {name}")
    return objects.KubePodGroup(meta, spec)


def member(pod: wire.Pod, group: str = "gang") -> wire.Pod:
    """The same pod as a member of a PodGroup of Kubernetes."""
    pod.spec.scheduling_group = {"podGroupName": group}
    return pod


def entity(name: str, pods: Iterable[PodRecord], minimum: int) -> Entity:
    """A group whose pods may go anywhere."""
    return make_entity(GroupKey("Test", "default", name), Team("", minimum, tuple(pods)))


def claims(*claim_names: str) -> list[wire.PodClaim]:
    """The claims of a pod by name, for its ``spec.resource_claims``."""
    return [wire.PodClaim(f"entry-{name}", name) for name in claim_names]
