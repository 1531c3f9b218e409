"""Whether a workload allows one pod more for a while, so that the successor of a pod comes before the pod goes: a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from scheduler.api import kinds, names
from scheduler.kube.evict.surge.workload import Workload

Json = Mapping[str, Any]
# Of a claim that several pods on several nodes may have.
_SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})
_NONE_MORE = frozenset({0, "0", "0%"})


class Facts(NamedTuple):
    """What decides.

    Attributes:
        body: the Deployment.
        workload: the Deployment with its ReplicaSets and pods.
        autoscalers: those of its namespace.
        claims: those of its namespace.
    """

    body: Json
    workload: Workload
    autoscalers: list[Json]
    claims: list[Json]


def find_objection(workload: Workload, autoscalers: list[Json], claims: list[Json]) -> str:
    """Find why a Deployment must not have one pod more for a while; empty if it may.

    Args:
        workload: the Deployment with its ReplicaSets and pods.
        autoscalers: those of its namespace.
        claims: those of its namespace.
    """
    if workload.deployment is None:
        return "its Deployment is gone"
    facts = Facts(workload.deployment, workload, autoscalers, claims)
    why = next(filter(None, (find(facts) for find in _TABLE)), "")
    return why and f"Deployment {facts.body['metadata']['name']} {why}"


def _find_end(facts: Facts) -> str:
    return "is being deleted" if "deletionTimestamp" in facts.body["metadata"] else ""


def _find_unmanaged(facts: Facts) -> str:
    """Without field managers it is not known later who has set the replicas."""
    is_known = facts.body["metadata"].get("managedFields")
    return "" if is_known else "does not say who has set its replicas"


def _find_strategy(facts: Facts) -> str:
    """What says that there are never more pods than replicas, holds here too."""
    spec = facts.body["spec"]
    if spec.get("paused"):
        return "is paused"
    strategy = spec.get("strategy") or {}
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return f"has the strategy {strategy['type']}"
    has_none = (strategy.get("rollingUpdate") or {}).get("maxSurge") in _NONE_MORE
    return "has maxSurge 0" if has_none else ""


def _find_autoscaler(facts: Facts) -> str:
    wanted = kinds.DEPLOYMENTS.kind, facts.body["metadata"]["name"]
    for one in facts.autoscalers:
        target = one["spec"]["scaleTargetRef"]
        if (target.get("kind"), target.get("name")) == wanted:
            return f"is scaled by {kinds.AUTOSCALERS.kind} {one['metadata']['name']}"
    return ""


def _find_unrest(facts: Facts) -> str:
    """The ReplicaSet would end a pod that is not ready in the place of the one that is to go."""
    now = facts.workload
    in_use = [one for one in now.sets if one["spec"].get("replicas", 1)]
    is_whole = len(in_use) == 1 and len(now.alive) == now.replicas and now.is_ready
    return "" if is_whole else "is being rolled out, or not all of its pods are ready"


def _find_cost(facts: Facts) -> str:
    """Somebody else says which pod goes first."""
    for one in facts.workload.alive:
        if names.DELETION_COST in (one["metadata"].get("annotations") or {}):
            return f"has a pod with {names.DELETION_COST}, {one['metadata']['name']}"
    return ""


def _find_claim(facts: Facts) -> str:
    """A volume that only one node or one pod may have."""
    modes = {one["metadata"]["name"]: one["spec"].get("accessModes") or () for one in facts.claims}
    for volume in facts.body["spec"]["template"]["spec"].get("volumes") or ():
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if name is not None and _SHARED.isdisjoint(modes.get(name, ())):
            return f"has the claim {name}, which pods on several nodes may not have"
    return ""


_TABLE: tuple[Callable[[Facts], str], ...] = (
    _find_end,
    _find_unmanaged,
    _find_strategy,
    _find_autoscaler,
    _find_unrest,
    _find_cost,
    _find_claim,
)
