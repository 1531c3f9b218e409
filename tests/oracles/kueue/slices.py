"""Workloads that take the place of others of their job once they are admitted (pkg/workloadslicing).

Such a slice needs quota only for what it asks beyond the old one, in the flavors of the old one, whose quota is free at
the same moment. Kueue asks that both are of one namespace and one cluster queue; here they are of one job too, and the
old one does not have to go for somebody else.
"""

from tests.oracles.kueue.workloads import Info, Manifest, PodSet, check_condition, find_old_key
from tests.oracles.kueue.world import World

REPLACED = "WorkloadSliceReplaced"


def find_old(world: World, info: Info, *, may_go: bool = False) -> Info | None:
    """Find the workload with quota whose place this one takes; ``may_go``: one that has to go counts too."""
    old = world.queues[info.queue].workloads.get(find_old_key(info.manifest))
    if old is None or (check_condition(old.manifest, "Evicted") and not may_go):
        return None
    mine, its = info.manifest["metadata"], old.manifest["metadata"]
    is_kin = mine.get("namespace", "") == its.get("namespace", "")
    return old if is_kin and find_owner(info.manifest) == find_owner(old.manifest) else None


def find_owner(manifest: Manifest) -> str:
    """Find the uid of the controlling owner; nothing without one."""
    owners = manifest["metadata"].get("ownerReferences") or []
    return next((str(one["uid"]) for one in owners if one.get("controller")), "")


def count_held(old: Info | None, name: str, resource: str) -> int:
    """Count what a pod set of the old one has of a resource."""
    held = _find_pod_set(old, name)
    return held.requests.get(resource, 0) if held else 0


def find_held_flavor(old: Info | None, name: str, resource: str) -> str:
    held = _find_pod_set(old, name)
    return held.flavors.get(resource, "") if held else ""


def count_more(old: Info | None, name: str, count: int) -> int:
    """Count the pods that a pod set has more than that of the old one."""
    held = _find_pod_set(old, name)
    return count - held.count if held else count


def _find_pod_set(old: Info | None, name: str) -> PodSet | None:
    return next((one for one in old.pod_sets if one.name == name), None) if old else None
