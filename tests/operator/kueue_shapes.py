"""Objects of Kueue's kinds, right and wrong ones: what the API server says of each is compared with Kueue's own CRDs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
Path = tuple[str | int, ...]
VERSION = "kueue.x-k8s.io/v1beta2"
LONG = "x" * 300


def make(kind: str, spec: Json, **more: Any) -> Json:
    return {
        "apiVersion": VERSION,
        "kind": kind,
        "metadata": {"name": f"a-{kind.lower()}"},
        **({} if kind == "WorkloadPriorityClass" else {"spec": spec}),
        **more,
    }


def make_group(*flavors: str, **limits: Any) -> Json:
    quotas = [{"name": one, "nominalQuota": 5, **limits} for one in ("cpu", "memory")]
    return {
        "coveredResources": ["cpu", "memory"],
        "flavors": [{"name": one, "resources": quotas} for one in flavors],
    }


QUEUE = make(
    "ClusterQueue",
    {
        "cohortName": "all",
        "namespaceSelector": {"matchLabels": {"team": "a"}},
        "queueingStrategy": "StrictFIFO",
        "resourceGroups": [make_group("one", "two", borrowingLimit="3", lendingLimit="1500m")],
        "flavorFungibility": {
            "whenCanBorrow": "TryNextFlavor",
            "whenCanPreempt": "TryNextFlavor",
            "preference": "PreemptionOverBorrowing",
        },
        "preemption": {
            "reclaimWithinCohort": "Any",
            "withinClusterQueue": "LowerOrNewerEqualPriority",
            "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 100},
        },
        "admissionChecksStrategy": {
            "admissionChecks": [{"name": "budget", "onFlavors": ["one"]}],
        },
        "stopPolicy": "Hold",
        "fairSharing": {"weight": "2"},
        "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
    },
)
LOCAL = make("LocalQueue", {"clusterQueue": "q", "stopPolicy": "HoldAndDrain", "fairSharing": {}})
COHORT = make("Cohort", {"parentName": "all", "resourceGroups": [make_group("one")]})
FLAVOR = make(
    "ResourceFlavor",
    {
        "nodeLabels": {"pool": "spot"},
        "nodeTaints": [{"key": "spot", "value": "true", "effect": "NoSchedule"}],
        "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
        "topologyName": "racks",
    },
)
TOPOLOGY = make(
    "Topology", {"levels": [{"nodeLabel": "a/block"}, {"nodeLabel": "kubernetes.io/hostname"}]}
)
CLASS = make("WorkloadPriorityClass", {}, value=100, description="More important.")
CHECK = make(
    "AdmissionCheck",
    {
        "controllerName": "example.com/budget",
        "parameters": {"apiGroup": "example.com", "kind": "Budget", "name": "small"},
    },
)
PODS: Json = {"spec": {"containers": [{"name": "main", "image": "none"}]}}
WORKLOAD = make(
    "Workload",
    {
        "queueName": "q",
        "active": True,
        "priority": 5,
        "priorityClassRef": {
            "group": "kueue.x-k8s.io",
            "kind": "WorkloadPriorityClass",
            "name": "high",
        },
        "maximumExecutionTimeSeconds": 60,
        "podSets": [
            {"name": "leader", "count": 1, "template": PODS},
            {
                "name": "workers",
                "count": 4,
                "minCount": 2,
                "template": PODS,
                "topologyRequest": {"required": "a/rack", "podSetSliceSize": 2},
            },
        ],
    },
)
WHOLE = (QUEUE, LOCAL, COHORT, FLAVOR, TOPOLOGY, CLASS, CHECK, WORKLOAD)
_GONE = object()
_GROUP: Path = ("spec", "resourceGroups", 0)
_QUOTA: Path = (*_GROUP, "flavors", 0, "resources", 0)

# Where each kind is changed, and to what.
_CHANGES: tuple[tuple[Json, Path, Any], ...] = (
    (QUEUE, ("spec",), {}),
    (QUEUE, ("spec",), _GONE),
    (QUEUE, ("spec", "cohortName"), _GONE),
    (QUEUE, ("spec", "cohortName"), "Not A Name"),
    (QUEUE, ("spec", "namespaceSelector"), {}),
    (
        QUEUE,
        ("spec", "namespaceSelector", "matchExpressions"),
        [{"key": "a", "operator": "Exists"}],
    ),
    (QUEUE, ("spec", "queueingStrategy"), "FIFO"),
    (QUEUE, ("spec", "queueingStrategy"), _GONE),
    (QUEUE, ("spec", "resourceGroups"), []),
    (QUEUE, (*_GROUP, "coveredResources"), ["cpu"]),
    (QUEUE, (*_GROUP, "coveredResources"), []),
    (QUEUE, (*_GROUP, "coveredResources"), [f"r{i}" for i in range(65)]),
    (QUEUE, (*_GROUP, "flavors"), []),
    (QUEUE, (*_QUOTA, "nominalQuota"), "five"),
    (QUEUE, (*_QUOTA, "nominalQuota"), _GONE),
    (QUEUE, (*_QUOTA, "lendingLimit"), True),
    (QUEUE, ("spec", "flavorFungibility", "whenCanBorrow"), "Borrow"),
    (QUEUE, ("spec", "flavorFungibility", "whenCanBorrow"), "MayStopSearch"),
    (QUEUE, ("spec", "flavorFungibility", "whenCanPreempt"), _GONE),
    (QUEUE, ("spec", "flavorFungibility"), _GONE),
    (QUEUE, ("spec", "preemption", "reclaimWithinCohort"), "Never"),
    (QUEUE, ("spec", "preemption", "reclaimWithinCohort"), "LowerPriority"),
    (QUEUE, ("spec", "preemption", "withinClusterQueue"), "Any"),
    (QUEUE, ("spec", "preemption", "borrowWithinCohort", "policy"), "Never"),
    (QUEUE, ("spec", "preemption"), _GONE),
    (QUEUE, ("spec", "admissionChecksStrategy", "admissionChecks"), []),
    (QUEUE, ("spec", "admissionChecksStrategy", "admissionChecks", 0, "name"), ""),
    (QUEUE, ("spec", "stopPolicy"), "Stop"),
    (QUEUE, ("spec", "fairSharing", "weight"), "much"),
    (QUEUE, ("spec", "admissionScope", "admissionMode"), "None"),
    (LOCAL, ("spec", "clusterQueue"), LONG),
    (LOCAL, ("spec", "stopPolicy"), _GONE),
    (LOCAL, ("spec",), {}),
    (COHORT, ("spec",), {}),
    (COHORT, ("spec", "parentName"), _GONE),
    (COHORT, ("spec", "parentName"), "UP"),
    (COHORT, (*_GROUP, "coveredResources"), ["cpu"]),
    (FLAVOR, ("spec",), _GONE),
    (FLAVOR, ("spec",), {}),
    (FLAVOR, ("spec", "nodeLabels"), {}),
    (FLAVOR, ("spec", "nodeLabels"), {f"l{i}": "x" for i in range(9)}),
    (FLAVOR, ("spec", "topologyName"), _GONE),
    (FLAVOR, ("spec", "nodeTaints", 0, "effect"), "Never"),
    (FLAVOR, ("spec", "nodeTaints", 0, "key"), _GONE),
    (FLAVOR, ("spec", "tolerations", 0, "value"), "true"),
    (FLAVOR, ("spec", "tolerations", 0, "operator"), "Equal"),
    (FLAVOR, ("spec", "tolerations", 0, "operator"), "Like"),
    (FLAVOR, ("spec", "tolerations", 0, "operator"), _GONE),
    (FLAVOR, ("spec", "tolerations", 0, "key"), _GONE),
    (FLAVOR, ("spec", "tolerations", 0), {"operator": "Equal"}),
    (FLAVOR, ("spec", "tolerations", 0, "effect"), "Sometimes"),
    (FLAVOR, ("spec", "tolerations", 0, "tolerationSeconds"), 5),
    (TOPOLOGY, ("spec", "levels"), []),
    (TOPOLOGY, ("spec", "levels"), [{"nodeLabel": "a"}, {"nodeLabel": "a"}]),
    (TOPOLOGY, ("spec", "levels", 0, "nodeLabel"), "kubernetes.io/hostname"),
    (TOPOLOGY, ("spec", "levels"), [{"nodeLabel": "kubernetes.io/hostname"}, {"nodeLabel": "a"}]),
    (TOPOLOGY, ("spec", "levels"), [{"nodeLabel": f"l{i}"} for i in range(17)]),
    (TOPOLOGY, ("spec", "levels", 0, "nodeLabel"), ""),
    (CLASS, ("value",), _GONE),
    (CLASS, ("value",), "high"),
    (CLASS, ("value",), 2**31),
    (CLASS, ("description",), _GONE),
    (CHECK, ("spec", "controllerName"), ""),
    (CHECK, ("spec", "controllerName"), _GONE),
    (CHECK, ("spec", "parameters"), _GONE),
    (CHECK, ("spec", "parameters", "name"), "Not A Name"),
    (WORKLOAD, ("spec", "podSets"), []),
    (WORKLOAD, ("spec", "podSets", 0, "count"), _GONE),
    (WORKLOAD, ("spec", "podSets", 0, "count"), -1),
    (WORKLOAD, ("spec", "podSets", 1, "minCount"), 5),
    (WORKLOAD, ("spec", "podSets", 1, "minCount"), 0),
    (WORKLOAD, ("spec", "podSets", 0, "name"), "workers"),
    (WORKLOAD, ("spec", "podSets", 0, "name"), "Not A Name"),
    (WORKLOAD, ("spec", "podSets", 0, "template"), _GONE),
    (WORKLOAD, ("spec", "podSets", 0, "template", "spec"), {}),
    (WORKLOAD, ("spec", "podSets", 1, "topologyRequest", "required"), "x" * 64),
    (WORKLOAD, ("spec", "queueName"), _GONE),
    (WORKLOAD, ("spec", "queueName"), "Not A Name"),
    (WORKLOAD, ("spec", "active"), "yes"),
    (WORKLOAD, ("spec", "priority"), _GONE),
    (WORKLOAD, ("spec", "priorityClassRef"), _GONE),
    (WORKLOAD, ("spec", "priorityClassRef", "group"), "scheduling.k8s.io"),
    (WORKLOAD, ("spec", "priorityClassRef", "kind"), "PriorityClass"),
    (WORKLOAD, ("spec", "priorityClassRef", "name"), ""),
    (WORKLOAD, ("spec", "maximumExecutionTimeSeconds"), 0),
)


def list_shapes() -> Iterator[tuple[str, Json]]:
    """Yield objects, each with what it is called."""
    for one in WHOLE:
        yield str(one["kind"]), one
    for one, path, value in _CHANGES:
        said = "nothing" if value is _GONE else repr(value)[:40]
        yield f"{one['kind']} with {'.'.join(map(str, path))}: {said}", _change(one, path, value)


def _change(found: Any, path: Path, value: Any) -> Any:
    """Return a copy that has another value somewhere, or none."""
    copied: Any = dict(found) if isinstance(found, dict) else list(found)
    first, *rest = path
    if rest:
        copied[first] = _change(copied[first], tuple(rest), value)
    elif value is _GONE:
        del copied[first]
    else:
        copied[first] = value
    return copied


STATUS: Json = {
    "admission": {
        "clusterQueue": "q",
        "podSetAssignments": [
            {"name": name, "flavors": {"cpu": "one"}, "resourceUsage": {"cpu": "1500m"}, "count": 1}
            for name in ("leader", "workers")
        ],
    },
    "conditions": [
        {
            "type": kind,
            "status": "True",
            "reason": kind,
            "message": "",
            "lastTransitionTime": "2027-01-15T08:00:00Z",
            "observedGeneration": 1,
        }
        for kind in ("QuotaReserved", "Admitted")
    ],
    "requeueState": {"count": 1, "requeueAt": "2027-01-15T08:00:00Z"},
    "schedulingStats": {
        "evictions": [{"reason": "Preempted", "underlyingCause": "", "count": 1}],
    },
    "accumulatedPastExecutionTimeSeconds": 7,
}
_ASSIGNED: Path = ("admission", "podSetAssignments")
STATUSES: tuple[Json, ...] = (
    STATUS,
    *(
        _change(STATUS, path, value)
        for path, value in (
            (_ASSIGNED, STATUS["admission"]["podSetAssignments"][:1]),
            ((*_ASSIGNED, 0, "resourceUsage"), {"cpu": "much"}),
            (("conditions", 0, "message"), _GONE),
            (("conditions", 0, "reason"), ""),
            (("conditions", 0, "status"), "Perhaps"),
            (("conditions", 0, "type"), "Admitted"),
            (("requeueState", "count"), -1),
            (("schedulingStats", "evictions", 0, "underlyingCause"), _GONE),
        )
    ),
)
# Changes of a workload that may run.
LATER: tuple[Json, ...] = (
    {"queueName": "other"},
    {"active": False},
    {"priority": 7},
    {"maximumExecutionTimeSeconds": 61},
    {"priorityClassRef": {"name": "other"}},
    {"priorityClassRef": {"group": "scheduling.k8s.io", "kind": "PriorityClass"}},
    {"priorityClassRef": None},
)
