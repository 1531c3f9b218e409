"""Decides which of the bound pods are placed again, and why the others stay on their nodes.

The audit shows where other modes would have placed the present pods. A pod stays on its node only if this
question has no answer: no scheduler chose the node, the pod is being deleted, the node would refuse the pod now,
or the pod requests something that Evenkeel does not place. A pod without a controller is placed again like any
other, because nothing is deleted; such pods are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass

from msgspec import structs

from scheduler.api import names, wire
from scheduler.api.claims.extended import make_key
from scheduler.engine.engine import Engine
from scheduler.engine.questions.auditing import ReturnOf
from scheduler.engine.questions.claims import KnownResourceClaim
from scheduler.engine.questions.nodes import KnownNodes
from scheduler.engine.questions.pods import KnownPod
from scheduler.state.pods import PodRecord

OF_A_DAEMON_SET = "of a DaemonSet"
OF_A_FILE = "run by the kubelet from a file"
LEAVING = "being deleted"
# Volumes do not move, and where they can be used is not read.
CLAIMED = "with a PersistentVolumeClaim"
NO_NODE = "on a node that does not exist"
UNREADABLE = "with a mistake in the requests"
UNCLAIMED = "with a mistake in the record of their cards"
MISSTEERED = "with a mistake in their placement settings"
OF_DEVICES = "with a ResourceClaim"
NOT_BACK = "on a node that would refuse such a pod now (cordon, taints or labels)"
# Pods that stay for these reasons count for the demand: they only cannot leave their node or their volumes.
_COME_AGAIN = frozenset({LEAVING, CLAIMED, NO_NODE, NOT_BACK})
_OWNERS = {"DaemonSet": OF_A_DAEMON_SET, "Node": OF_A_FILE}


@dataclass(frozen=True, slots=True)
class Parted:
    """The bound pods, parted into those that move and those that stay.

    Attributes:
        moving: pods that are placed again, the oldest first.
        staying: the other pods, as they are.
        demand: pods of which more may come, the oldest first, without their volumes.
        reasons: (why pods stay, how many), the most first; every reason is a text that follows "pods".
        own: uids of the pods that belong to their node; a node with only such pods counts as empty.
        without_controller: how many of ``moving`` have no controller that would create them anew.
    """

    moving: tuple[wire.Pod, ...]
    staying: tuple[wire.Pod, ...]
    demand: tuple[wire.Pod, ...]
    reasons: tuple[tuple[str, int], ...]
    own: frozenset[str]
    without_controller: int


def find_node_reason(pod: wire.Pod) -> str:
    """Find why no scheduler chose the pod's node; empty when one did."""
    meta = pod.metadata
    if names.MIRROR in (meta.annotations or {}):
        return OF_A_FILE
    owners = (_OWNERS[owner.kind] for owner in meta.owner_references or () if owner.kind in _OWNERS)
    return next(owners, "")


def part_pods(pods: Sequence[wire.Pod], engine: Engine) -> Parted:
    """Part the pods of an engine that has seen them."""
    nodes = engine.ask(KnownNodes())
    moving, staying, demand = [], [], []
    reasons: Counter[str] = Counter()
    own: set[str] = set()
    for pod in pods:
        uid = pod.metadata.uid
        record = engine.ask(KnownPod(uid))
        if record is None or not record.node:
            continue
        of_node = find_node_reason(pod)
        if of_node:
            own.add(uid)
        reason = of_node or _find_reason(record, engine, nodes)
        if reason:
            reasons[reason] += 1
            staying.append(pod)
        else:
            moving.append((record.created, record.order, pod))
        if not reason or reason in _COME_AGAIN:
            demand.append((record.created, record.order, _drop_volumes(pod)))
    ordered = _sort_pods(moving)
    return Parted(
        moving=ordered,
        staying=tuple(staying),
        demand=_sort_pods(demand),
        reasons=tuple(sorted(reasons.items(), key=lambda one: (-one[1], one[0]))),
        own=frozenset(own),
        without_controller=sum(not pod.metadata.owner_references for pod in ordered),
    )


def _sort_pods(pods: Sequence[tuple[str, int, wire.Pod]]) -> tuple[wire.Pod, ...]:
    return tuple(pod for _, _, pod in sorted(pods, key=lambda one: one[:2]))


def _drop_volumes(pod: wire.Pod) -> wire.Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, volumes=None))


def _find_reason(pod: PodRecord, engine: Engine, nodes: Container[str]) -> str:
    """Find why a pod that a scheduler placed is not placed again; empty when it is."""
    template = pod.template
    if pod.node not in nodes:
        return NO_NODE
    if pod.deleting:
        return LEAVING
    if pod.volumes is not None and pod.volumes.claims:
        return CLAIMED
    extended = KnownResourceClaim(make_key(pod.namespace, pod.uid))
    if pod.claims or engine.ask(extended) is not None:
        return OF_DEVICES
    back = engine.ask(ReturnOf(pod.uid))
    wrong = (
        (UNREADABLE, template.problem is not None),
        (UNCLAIMED, back.has_told_wrong),
        (MISSTEERED, back.is_missteered),
        (NOT_BACK, bool(back.objection)),
    )
    return next((reason for reason, holds in wrong if holds), "")
