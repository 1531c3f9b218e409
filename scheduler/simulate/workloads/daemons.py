"""DaemonSets: one pod for each node that the template's selector and affinity match, bound to that node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import structs

from scheduler.api import wire
from scheduler.engine.questions.nodes import KnownNodes
from scheduler.engine.questions.simulating import SuitedNodes
from scheduler.simulate.workloads.contract import NOTHING, Idle, Made, Scene
from scheduler.simulate.workloads.workload import Workload

_NODE = "node.kubernetes.io/"
# The taints that the controller makes its pods tolerate: an unhealthy node needs its agents most.
_STAND = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_OF_HOST_NETWORK = ("network-unavailable", "NoSchedule")


def of_daemon_set(workload: Workload, scene: Scene) -> Made:
    """Each node that it suits and that has none of its pods."""
    there = {node_of(pod) for pod in scene.owned.alive(workload.key)}
    if not scene.nodes.ask(KnownNodes()):
        return NOTHING
    # How many nodes it suits is known only once its template is read.
    mold = scene.mold(workload, 0)
    spec = _standing(mold.pod.spec, workload)
    suited = scene.nodes.ask(SuitedNodes(structs.replace(mold.pod, spec=spec)))
    if not suited and not there:
        return Made(idle=Idle.UNSUITED)
    missing = [node for node in suited if node not in there]
    scene.room.take(len(missing))
    namespace, name = workload.key.namespace, workload.key.name
    return Made(
        [mold.make(scene.names.new(namespace, name), spec=_tied(spec, node)) for node in missing]
    )


def why_unsuited(spec: Mapping[str, Any], nodes: Iterable[wire.Node]) -> str:
    """Why a DaemonSet with this spec suits none of the nodes: if possible, a label that no node has."""
    pod = (spec.get("template") or {}).get("spec") or {}
    labels = [node.metadata.labels or {} for node in nodes]
    for name, value in sorted((pod.get("nodeSelector") or {}).items()):
        if not any(one.get(name) == value for one in labels):
            return f"no node has the label {name}={value}"
    return "its nodeSelector, its node affinity or taints keep it off every node"


def _standing(spec: wire.PodSpec, workload: Workload) -> wire.PodSpec:
    body = workload.spec.get("template") or {}
    host = (body.get("spec") or {}).get("hostNetwork") is True
    stood = (*_STAND, _OF_HOST_NETWORK) if host else _STAND
    more = [wire.Toleration(_NODE + key, "Exists", "", effect) for key, effect in stood]
    return structs.replace(spec, tolerations=[*(spec.tolerations or ()), *more])


def _tied(spec: wire.PodSpec, node: str) -> wire.PodSpec:
    """The controller has evaluated the required nodes; a pod requires the one node that it is for."""
    affinity = spec.affinity or wire.Affinity()
    named = wire.Expression("metadata.name", "In", [node])
    required = wire.NodeTerms([wire.NodeTerm(match_fields=[named])])
    preferred = (
        affinity.node_affinity or wire.NodeAffinity()
    ).preferred_during_scheduling_ignored_during_execution
    return structs.replace(
        spec,
        affinity=structs.replace(affinity, node_affinity=wire.NodeAffinity(required, preferred)),
    )


def node_of(pod: wire.Pod) -> str:
    """The node of a DaemonSet's pod, also of one that waits."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    for term in (required.node_selector_terms or ()) if required else ():
        for one in term.match_fields or ():
            if one.key == "metadata.name" and one.values:
                return one.values[0]
    return ""
