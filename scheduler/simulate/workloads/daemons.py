"""DaemonSets: one pod for each node that the selector and the affinity of the template match, tied to that node."""

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
# The taints that the controller lets its pods tolerate: an unhealthy node needs its agents most.
_STAND = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_OF_HOST_NETWORK = ("network-unavailable", "NoSchedule")


def make_daemons(workload: Workload, scene: Scene) -> Made:
    """Make a pod for each suitable node that has none of the DaemonSet's pods."""
    there = {find_node(pod) for pod in scene.owned.list_alive(workload.key)}
    if not scene.nodes.ask(KnownNodes()):
        return NOTHING
    # The number of suitable nodes is known only when the template is read.
    mold = scene.make_mold(workload, 0)
    spec = _add_tolerations(mold.pod.spec, workload)
    suited = scene.nodes.ask(SuitedNodes(structs.replace(mold.pod, spec=spec)))
    if not suited and not there:
        return Made(idle=Idle.UNSUITED)
    missing = [node for node in suited if node not in there]
    scene.room.take(len(missing))
    namespace, name = workload.key.namespace, workload.key.name
    return Made(
        [
            mold.make_pod(scene.names.make_name(namespace, name), spec=_tie_to_node(spec, node))
            for node in missing
        ]
    )


def explain_unsuited(spec: Mapping[str, Any], nodes: Iterable[wire.Node]) -> str:
    """Explain why no node is suitable for a DaemonSet with this spec: if possible, by a label that no node has."""
    pod = (spec.get("template") or {}).get("spec") or {}
    labels = [node.metadata.labels or {} for node in nodes]
    for name, value in sorted((pod.get("nodeSelector") or {}).items()):
        if not any(one.get(name) == value for one in labels):
            return f"no node has the label {name}={value}"
    return "its nodeSelector, its node affinity or taints keep it off every node"


def _add_tolerations(spec: wire.PodSpec, workload: Workload) -> wire.PodSpec:
    body = workload.spec.get("template") or {}
    host = (body.get("spec") or {}).get("hostNetwork") is True
    stood = (*_STAND, _OF_HOST_NETWORK) if host else _STAND
    more = [wire.Toleration(_NODE + key, "Exists", "", effect) for key, effect in stood]
    return structs.replace(spec, tolerations=[*(spec.tolerations or ()), *more])


def _tie_to_node(spec: wire.PodSpec, node: str) -> wire.PodSpec:
    """Replace the required affinity of a pod by its node: the controller has evaluated the affinity already."""
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


def find_node(pod: wire.Pod) -> str:
    """Find the node of a DaemonSet's pod, even of a pod that waits."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity and affinity.required_during_scheduling_ignored_during_execution
    for term in (required.node_selector_terms or ()) if required else ():
        for one in term.match_fields or ():
            if one.key == "metadata.name" and one.values:
                return one.values[0]
    return ""
