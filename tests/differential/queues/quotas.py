"""Flavors, cohorts of up to three levels and ClusterQueues, from a source of chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

Json = dict[str, Any]

API = "kueue.x-k8s.io/v1beta2"
NAMESPACE = "default"
GPU = "example.com/gpu"
# Labels of nodes that flavors may have; workloads select by the same.
LABELS = {"example.com/model": ("small", "large"), "example.com/zone": ("east", "west")}
TAINT = {"key": "example.com/spot", "value": "true", "effect": "NoSchedule"}
# By value: ties are decided by the time of creation.
PRIORITIES = {"low": -10, "usual": 0, "middle": 50, "high": 100, "urgent": 1_000}
# Of each resource the unit, and between how many of them a flavor of a ClusterQueue has.
_SIZES = {"cpu": ("", 3, 10), "memory": ("Gi", 6, 28), GPU: ("", 3, 10)}
# Policies, in the proportion in which they are drawn.
_WITHIN = ("Never", *2 * ("LowerPriority", "LowerOrNewerEqualPriority"))
_RECLAIM = ("Never", *2 * ("LowerPriority", "Any", "Any"))
_NOTHING = 0.1
_WEIGHTS = ("0", "500m", "1", "2", "3")


class Plan(NamedTuple):
    """What the objects of a world have in common.

    Attributes:
        groups: of resources, each with the names of its flavors in an order that ClusterQueues may change.
        is_fair: whether weights matter.
    """

    groups: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]

    @property
    def resources(self) -> tuple[str, ...]:
        """All that have a quota."""
        return tuple(resource for resources, _ in self.groups for resource in resources)


def draw_plan(rng: Random) -> Plan:
    """Which resources share their flavors, and how many flavors there are."""
    names = [f"flavor-{i}" for i in range(rng.randint(1, 4))]
    if len(names) > 1 and rng.random() < 0.4:
        cut = rng.randint(1, len(names) - 1)
        return Plan(((("cpu", "memory"), tuple(names[:cut])), ((GPU,), tuple(names[cut:]))))
    resources = rng.choice([("cpu",), ("cpu", GPU), ("cpu", "memory", GPU)])
    return Plan(((resources, tuple(names)),))


def build(rng: Random, plan: Plan, *, is_fair: bool) -> list[Json]:
    """All objects but workloads."""
    # All flavors have the same labels: which ones of them count for a flavor is not the same in all versions of Kueue.
    keys = [key for key in LABELS if rng.random() < 0.5]
    objects = [_flavor(rng, name, keys) for _, flavors in plan.groups for name in flavors]
    objects += [
        make("WorkloadPriorityClass", name, value=value) for name, value in PRIORITIES.items()
    ]
    cohorts = _draw_cohorts(rng)
    objects += _make_cohorts(rng, plan, cohorts, is_fair=is_fair)
    names = [name for name, _ in cohorts]
    for i in range(rng.choice([1, 2, 3, 3, 4])):
        # A leaf of the tree more often than what is above it.
        cohort = rng.choice(["", *names, *names[-2:], *names[-2:]]) if names else ""
        objects.append(_cluster_queue(rng, plan, f"queue-{i}", cohort, is_fair=is_fair))
        for j in range(rng.choice([1, 1, 2])):
            one = make("LocalQueue", f"local-{i}-{j}", spec={"clusterQueue": f"queue-{i}"})
            one["metadata"]["namespace"] = NAMESPACE
            objects.append(one)
    return objects


def make(kind: str, name: str, **fields: Any) -> Json:
    """An object of Kueue's."""
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, **fields}


def change(rng: Random, manifest: Json) -> Json:
    """A Cohort or ClusterQueue with other quotas, or a ClusterQueue that is stopped or goes on."""
    spec = manifest["spec"]
    if manifest["kind"] == "ClusterQueue" and rng.random() < 0.3:
        is_stopped = spec.get("stopPolicy", "None") != "None"
        spec["stopPolicy"] = "None" if is_stopped else rng.choice(["Hold", "HoldAndDrain"])
        return manifest
    for group in spec.get("resourceGroups", ()):
        for flavor in group["flavors"]:
            for resource in flavor["resources"]:
                if rng.random() < 0.5:
                    resource["nominalQuota"] = _draw_quantity(rng, resource["name"])
    return manifest


def _flavor(rng: Random, name: str, keys: Sequence[str]) -> Json:
    labels = {key: rng.choice(LABELS[key]) for key in keys}
    spec: Json = {"nodeLabels": labels} if labels else {}
    if rng.random() < 0.2:
        spec["nodeTaints"] = [TAINT]
        if rng.random() < 0.3:
            spec["tolerations"] = [{"key": TAINT["key"], "operator": "Exists"}]
    return make("ResourceFlavor", name, spec=spec)


def _draw_cohorts(rng: Random) -> list[tuple[str, str]]:
    """Pairs of a cohort and the one above it, "" for a root; parents come first."""
    levels = rng.choice([0, 1, 1, 1, 2, 2, 3])
    found: list[tuple[str, str]] = []
    above = [""]
    for level in range(levels):
        here = []
        for i in range(1 if not level else rng.randint(1, 2)):
            name = f"cohort-{level}-{i}"
            found.append((name, rng.choice(above)))
            here.append(name)
        above = here
    return found


def _make_cohorts(
    rng: Random, plan: Plan, cohorts: Sequence[tuple[str, str]], *, is_fair: bool
) -> Iterator[Json]:
    for name, above in cohorts:
        spec: Json = {"parentName": above} if above else {}
        if rng.random() < 0.4:
            spec["resourceGroups"] = _draw_groups(rng, plan, has_limits=bool(above))
        if is_fair and rng.random() < 0.6:
            spec["fairSharing"] = {"weight": rng.choice(_WEIGHTS)}
        # One that says nothing need not be there.
        if spec or rng.random() < 0.5:
            yield make("Cohort", name, spec=spec)


def _cluster_queue(rng: Random, plan: Plan, name: str, cohort: str, *, is_fair: bool) -> Json:
    spec: Json = {
        "namespaceSelector": {},
        "queueingStrategy": rng.choice(["BestEffortFIFO", "BestEffortFIFO", "StrictFIFO"]),
        "resourceGroups": _draw_groups(rng, plan, has_limits=bool(cohort)),
        "preemption": _draw_preemption(rng, is_fair=is_fair),
    }
    if is_fair and not cohort:
        # Kueue 0.17.0 ends with a nil pointer when the candidates of one without a cohort are not enough.
        spec["preemption"]["withinClusterQueue"] = "Never"
    if rng.random() < 0.6:
        spec["flavorFungibility"] = _draw_fungibility(rng)
    if cohort:
        spec["cohortName"] = cohort
    if is_fair and rng.random() < 0.7:
        spec["fairSharing"] = {"weight": rng.choice(_WEIGHTS)}
    return make("ClusterQueue", name, spec=spec)


def _draw_groups(rng: Random, plan: Plan, *, has_limits: bool) -> list[Json]:
    groups = []
    for resources, names in plan.groups:
        chosen = rng.sample(names, rng.randint(1, len(names)))
        flavors = [
            {
                "name": name,
                "resources": [_draw_quota(rng, one, has_limits=has_limits) for one in resources],
            }
            for name in chosen
        ]
        groups.append({"coveredResources": list(resources), "flavors": flavors})
    return groups


def _draw_quota(rng: Random, resource: str, *, has_limits: bool) -> Json:
    quota: Json = {"name": resource, "nominalQuota": _draw_quantity(rng, resource)}
    for limit in ("borrowingLimit", "lendingLimit") if has_limits else ():
        if rng.random() < 0.25:
            quota[limit] = _draw_quantity(rng, resource)
    return quota


def _draw_quantity(rng: Random, resource: str) -> str:
    unit, least, most = _SIZES[resource]
    if rng.random() < _NOTHING:
        return "0"
    return f"{rng.randint(least, most)}{unit}"


def _draw_preemption(rng: Random, *, is_fair: bool) -> Json:
    reclaim = rng.choice(_RECLAIM)
    within = rng.choice(_WITHIN)
    found: Json = {"reclaimWithinCohort": reclaim, "withinClusterQueue": within}
    # With fair sharing it is refused, and so it is by those who reclaim nothing.
    if not is_fair and reclaim != "Never" and rng.random() < 0.5:
        found["borrowWithinCohort"] = {"policy": "LowerPriority"}
        if rng.random() < 0.6:
            found["borrowWithinCohort"]["maxPriorityThreshold"] = rng.choice([-10, 0, 50])
    return found


def _draw_fungibility(rng: Random) -> Json:
    borrow = rng.choice(["MayStopSearch", "TryNextFlavor"])
    preempt = rng.choice(["MayStopSearch", "TryNextFlavor"])
    found = {"whenCanBorrow": borrow, "whenCanPreempt": preempt}
    if borrow == preempt == "TryNextFlavor" and rng.random() < 0.6:
        found["preference"] = rng.choice(["BorrowingOverPreemption", "PreemptionOverBorrowing"])
    return found
