"""The readers of groups, as one table."""

from __future__ import annotations

from collections.abc import Container

from scheduler.api import wire
from scheduler.api.groups.definitions import (
    Constraint,
    Definition,
    Disruption,
    GroupKey,
    Match,
    Membership,
    Part,
    Rule,
    Topology,
)
from scheduler.api.groups.objects import GroupObject, KubePodGroup, SigsPodGroup

_NATIVE = "PodGroup.scheduling.k8s.io"
_SIGS = "PodGroup.scheduling.sigs.k8s.io"


def read_membership(pod: wire.Pod, switched_on: Container[str] = ()) -> Membership | None:
    """Read what a pod says of the group that it is in; None for a pod in no group."""
    meta = pod.metadata
    if pod.spec.scheduling_group:
        name = pod.spec.scheduling_group.get("podGroupName", "")
        return Membership(GroupKey(_NATIVE, meta.namespace, name))
    name = (meta.labels or {}).get("pod-group.scheduling.sigs.k8s.io", "")
    if name:
        return Membership(GroupKey(_SIGS, meta.namespace, name))
    return None


def list_definitions(found: GroupObject) -> tuple[Definition, ...]:
    """List what an object says of its groups."""
    return (read_definition(found),) if isinstance(found, KubePodGroup | SigsPodGroup) else ()


def read_topology(found: object) -> Topology:
    """Read the levels of a topology."""
    raise NotImplementedError


def read_definition(found: GroupObject) -> Definition:
    """Read what an object says of a group."""
    meta = found.metadata
    if isinstance(found, KubePodGroup):
        policy = found.spec.get("schedulingPolicy", {})
        gang = policy.get("gang")
        topology = found.spec.get("schedulingConstraints", {}).get("topology", [])
        where = Constraint(Rule.KUBERNETES, required=topology[0]["key"]) if topology else None
        return Definition(
            GroupKey(_NATIVE, meta.namespace, meta.name),
            Part("", gang["minCount"] if gang else 1, constraint=where),
            is_gang=bool(gang),
            match=Match.WAITING_AND_RUNNING,
            disruption=Disruption.SINGLE,
        )
    assert isinstance(found, SigsPodGroup)
    return Definition(
        GroupKey(_SIGS, meta.namespace, meta.name), Part("", found.spec.get("minMember", 1))
    )
