"""Kueue's tables in our words: a compact notation, and the manifests that it stands for.

Each file beside this one is one kind of case: ``scheduling`` (one cycle), ``cycles`` (several), ``targets`` (who goes for a
given choice of flavors), ``shares`` (shares and quotas of nodes), ``flavors`` (the choice of flavors with a given
oracle), ``order`` (the order of heads) and ``slices`` (cycles with workloads that take the place of others). A case says:

- ``name`` in plain English, ``source`` as Kueue calls it, and what is configured where that is not the default.
- ``flavors``, ``namespaces``, ``cohorts``, ``queues`` and ``locals``: what is not said of them is the default. Flavors
  that queues name are there unless ``missing`` names them, and so are namespaces of workloads. A quota is written
  "50 borrow 10 lend 5". ``locals`` are needed where something is said of a local queue; else a workload is ``in`` a
  cluster queue by a local queue of that name.
- ``workloads``: ``asks`` of one pod, or ``pods`` by set. What is admitted ``has`` its flavors by set and resource, and
  uses what its pods ask, unless ``uses`` says otherwise. What is a slice ``replaces`` another workload; ``owner`` is the
  uid of the job that owns it. Times are seconds from ``NOW``.
- ``want``: see ``expect_outcome``, ``expect_cycles`` and the top of each file.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.oracles.kueue.workloads import REPLACES
from tests.oracles.quantities import exact

NOW = "2026-01-01T12:00:00+00:00"
GROUP = "kueue.x-k8s.io/v1beta2"
ELASTIC = "kueue.x-k8s.io/elastic-job"
Fields = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """A case: what there is, and what is expected; ``fields`` are those of the case as they are written."""

    name: str
    source: str
    objects: list[dict[str, Any]]
    config: dict[str, Any]
    now: str
    expected: Any
    fields: Fields = field(repr=False, default_factory=dict)


@cache
def read_file(kind: str) -> list[dict[str, Any]]:
    path = Path(__file__).parent / f"{kind}.yaml"
    loaded: list[dict[str, Any]] = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    return loaded


def load(kind: str) -> list[Case]:
    """Load all cases of a kind."""
    return [make_case(kind, fields) for fields in read_file(kind)]


def make_case(kind: str, fields: Fields) -> Case:
    return Case(
        fields["name"],
        fields["source"],
        make_objects(fields),
        fields.get("config") or {},
        NOW,
        EXPECTATIONS[kind](fields) if kind in EXPECTATIONS else fields["want"],
        fields,
    )


def expect_outcome(fields: Fields) -> dict[str, Any]:
    """Expect what one cycle comes to."""
    want = fields["want"]
    return {**expect_moves(want), "pending": expect_waiting(want)}


def expect_cycles(fields: Fields) -> dict[str, Any]:
    """Expect who moves in each of the ``cycles``, and nobody in later ones, and who waits after the last one."""
    want = fields["want"]
    cycles = [expect_moves(one) for one in want.get("cycles", [])]
    return {"cycles": cycles, "pending": expect_waiting(want)}


def expect_slices(fields: Fields) -> dict[str, Any]:
    """Expect the same, and whose place was taken by whom in each of the cycles."""
    expected = expect_cycles(fields)
    for one, told in zip(expected["cycles"], fields["want"].get("cycles", []), strict=True):
        pairs = told.get("replaced", {}).items()
        one["replaced"] = {name_key(old): name_key(new) for old, new in pairs}
    return expected


def expect_moves(want: Fields) -> dict[str, dict[str, Any]]:
    """Expect who is ``admitted`` [queue, counts and flavors by set] and ``preempted`` [by whom, why]."""
    admitted = {}
    for key, (queue, pod_sets) in want.get("admitted", {}).items():
        sets = {
            name: {"count": one["count"], "flavors": {k: v for k, v in one.items() if k != "count"}}
            for name, one in pod_sets.items()
        }
        admitted[name_key(key)] = {"clusterQueue": queue, "podSets": sets}
    preempted = {
        name_key(key): {"by": name_key(by), "reason": reason}
        for key, (by, reason) in want.get("preempted", {}).items()
    }
    return {"admitted": admitted, "preempted": preempted}


def expect_waiting(want: Fields) -> dict[str, dict[str, Any]]:
    """Expect who is ``waiting`` [where, why, in words]; only where if no cycle has looked at it."""
    pending = {}
    for key, told in want.get("waiting", {}).items():
        where, reason, message = [*told, None, None][:3]
        pending[name_key(key)] = {"where": where, "reason": reason, "message": message}
    return pending


def name_key(key: str) -> str:
    return key if "/" in key else f"default/{key}"


def make_objects(fields: Fields) -> list[dict[str, Any]]:
    """Make the manifests of a case."""
    missing = set(fields.get("missing", []))
    queues, cohorts = fields.get("queues", {}), fields.get("cohorts") or {}
    flavors: dict[str, Any] = {
        name: {}
        for one in [*queues.values(), *cohorts.values()]
        for group in (one or {}).get("quotas", [])
        for name in group
    }
    flavors |= fields.get("flavors", {})
    workloads = {name_key(key): one for key, one in fields.get("workloads", {}).items()}
    namespaces = {key.split("/")[0]: {} for key in workloads} | fields.get("namespaces", {})
    objects = [_make("Namespace", name, {}, labels=labels) for name, labels in namespaces.items()]
    objects += [make_flavor(name, one) for name, one in flavors.items()]
    objects += [make_cohort(name, one or {}) for name, one in cohorts.items()]
    objects += [make_queue(name, one or {}) for name, one in queues.items()]
    locals_ = {name_key(key): one for key, one in fields.get("locals", {}).items()}
    for key, one in workloads.items():
        if "in" in one:
            locals_.setdefault(f"{key.split('/')[0]}/{one['in']}", one["in"])
    objects += [make_local_queue(key, one) for key, one in locals_.items()]
    objects += [
        {
            "kind": "LimitRange",
            "metadata": {"name": "limits", "namespace": namespace},
            "spec": {"limits": limits},
        }
        for namespace, limits in fields.get("limits", {}).items()
    ]
    objects += [make_workload(key, one) for key, one in workloads.items()]
    return [
        one
        for one in objects
        if one["metadata"]["name"] not in missing or one["kind"] == "Workload"
    ]


def _make(kind: str, name: str, spec: Fields, **metadata: Any) -> dict[str, Any]:
    said = {"name": name, **{key: value for key, value in metadata.items() if value}}
    version = "v1" if kind == "Namespace" else GROUP
    return {"apiVersion": version, "kind": kind, "metadata": said, "spec": dict(spec)}


def make_incoming(fields: Fields) -> dict[str, Any]:
    """Make the workload that asks, in a case of targets or of flavors."""
    one = fields.get("incoming") or {"queue": fields["queue"], **fields}
    said = {
        key: one[key]
        for key in ("asks", "pods", "priority", "created", "uid", "job", "reclaimed")
        if key in one
    }
    return make_workload(
        name_key(one["name"] if "incoming" in fields else "incoming"), {**said, "in": one["queue"]}
    )


def make_flavor(name: str, one: Fields) -> dict[str, Any]:
    """Make a flavor of ``labels``, ``taints`` ("key=value:effect") and ``tolerations``."""
    spec: dict[str, Any] = {}
    if "labels" in one:
        spec["nodeLabels"] = one["labels"]
    if "tolerations" in one:
        spec["tolerations"] = one["tolerations"]
    if "taints" in one:
        parts = [text.replace("=", ":").split(":") for text in one["taints"]]
        spec["nodeTaints"] = [
            dict(zip(("key", "value", "effect"), part, strict=True)) for part in parts
        ]
    return _make("ResourceFlavor", name, spec)


def make_cohort(name: str, one: Fields) -> dict[str, Any]:
    spec: dict[str, Any] = {"resourceGroups": make_groups(one.get("quotas", []))}
    if "parent" in one:
        spec["parentName"] = one["parent"]
    if "weight" in one:
        spec["fairSharing"] = {"weight": str(one["weight"])}
    return _make("Cohort", name, spec)


def make_queue(name: str, one: Fields) -> dict[str, Any]:
    """Make a cluster queue; ``select`` is a label selector, by default of all namespaces."""
    spec: dict[str, Any] = {
        "resourceGroups": make_groups(one.get("quotas", [])),
        "queueingStrategy": "StrictFIFO" if one.get("strict") else "BestEffortFIFO",
        "namespaceSelector": {"matchLabels": one["select"]} if "select" in one else {},
        "preemption": {
            "withinClusterQueue": one.get("within", "Never"),
            "reclaimWithinCohort": one.get("reclaim", "Never"),
        },
        "flavorFungibility": {
            "whenCanBorrow": one.get("on_borrow", "MayStopSearch"),
            "whenCanPreempt": one.get("on_preempt", "TryNextFlavor"),
        },
    }
    if "borrow" in one:
        spec["preemption"]["borrowWithinCohort"] = {"policy": one["borrow"]}
        if "threshold" in one:
            spec["preemption"]["borrowWithinCohort"]["maxPriorityThreshold"] = one["threshold"]
    if "prefers" in one:
        spec["flavorFungibility"]["preference"] = one["prefers"]
    for key, place in (("cohort", "cohortName"), ("stop", "stopPolicy")):
        if key in one:
            spec[place] = one[key]
    if "weight" in one:
        spec["fairSharing"] = {"weight": str(one["weight"])}
    if one.get("counts_usage"):
        spec["admissionScope"] = {"admissionMode": "UsageBasedAdmissionFairSharing"}
    return _make("ClusterQueue", name, spec)


def make_groups(groups: list[Fields]) -> list[dict[str, Any]]:
    """Make groups of resources, each of quotas by flavor and resource."""
    made = []
    for group in groups:
        flavors: list[dict[str, Any]] = [
            {"name": flavor, "resources": [make_quota(name, text) for name, text in quotas.items()]}
            for flavor, quotas in group.items()
        ]
        covered = [one["name"] for one in flavors[0]["resources"]]
        made.append({"coveredResources": covered, "flavors": flavors})
    return made


def make_quota(name: str, text: object) -> dict[str, Any]:
    words = str(text).split()
    quota = {"name": name, "nominalQuota": words[0]}
    for key, value in zip(words[1::2], words[2::2], strict=True):
        quota[{"borrow": "borrowingLimit", "lend": "lendingLimit"}[key]] = value
    return quota


def make_local_queue(key: str, one: Any) -> dict[str, Any]:
    """Make a local queue of the name of its cluster queue, or with ``weight`` and what it ``used``."""
    namespace, name = key.split("/")
    said = one if isinstance(one, dict) else {"queue": one}
    made = _make("LocalQueue", name, {"clusterQueue": said["queue"]}, namespace=namespace)
    if "weight" in said:
        made["spec"]["fairSharing"] = {"weight": str(said["weight"])}
    if "used" in said:
        usage = {
            "consumedResources": {k: str(v) for k, v in said["used"].items()},
            "lastUpdate": NOW,
        }
        made["status"] = {"fairSharing": {"admissionFairSharingStatus": usage}}
    return made


def make_moment(seconds: float) -> str:
    return (datetime.fromisoformat(NOW) + timedelta(seconds=seconds)).astimezone(UTC).isoformat()


def make_workload(key: str, one: Fields) -> dict[str, Any]:
    """Make a workload, with what it has if it is admitted."""
    namespace, name = key.split("/")
    pods = one.get("pods") or {"main": {"asks": one.get("asks", {})}}
    spec: dict[str, Any] = {
        "podSets": [make_pod_set(pod_set, said) for pod_set, said in pods.items()],
        "queueName": one.get("local", one.get("in", "")),
        "priority": one.get("priority", 0),
        "active": one.get("active", True),
    }
    labels = {"kueue.x-k8s.io/job-uid": one["job"]} if "job" in one else {}
    made = _make("Workload", name, spec, namespace=namespace, uid=one.get("uid"), labels=labels)
    made["metadata"] |= make_slice(one)
    if "created" in one:
        made["metadata"]["creationTimestamp"] = make_moment(one["created"])
    status: dict[str, Any] = {}
    if "reclaimed" in one:
        status["reclaimablePods"] = [{"name": k, "count": v} for k, v in one["reclaimed"].items()]
    if "checks" in one:
        status["admissionChecks"] = [{"name": k, "state": v} for k, v in one["checks"].items()]
    conditions = [make_condition(kind, told) for kind, told in one.get("conditions", {}).items()]
    if "has" in one:
        queue = one.get("of", one.get("in", ""))
        conditions.insert(
            0, make_condition("QuotaReserved", ["True", "QuotaReserved", one.get("since", 0)])
        )
        status["admission"] = make_admission(queue, pods, one)
    if conditions:
        status["conditions"] = conditions
    return {**made, "status": status}


def make_slice(one: Fields) -> dict[str, Any]:
    """Make what the metadata of a workload of an elastic job say beside its name."""
    made: dict[str, Any] = {}
    if "replaces" in one:
        made["annotations"] = {ELASTIC: "true", REPLACES: name_key(one["replaces"])}
    if "owner" in one:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": one["owner"], "uid": one["owner"]}
        made["ownerReferences"] = [{**owner, "controller": True}]
    return made


def make_pod_set(name: str, said: Fields) -> dict[str, Any]:
    """Make a pod set whose pods have one container, and what else ``spec`` says of them."""
    resources = {"requests": {k: str(v) for k, v in said.get("asks", {}).items()}}
    if "limits" in said:
        resources["limits"] = {k: str(v) for k, v in said["limits"].items()}
    spec = {"containers": [{"name": "main", "resources": resources}], **said.get("spec", {})}
    made: dict[str, Any] = {"name": name, "count": said.get("count", 1), "template": {"spec": spec}}
    if "min" in said:
        made["minCount"] = said["min"]
    if "group" in said:
        made["topologyRequest"] = {"podSetGroupName": said["group"]}
    return made


def make_condition(kind: str, told: list[Any]) -> dict[str, Any]:
    status, reason, at = told
    moment = make_moment(at)
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": reason,
        "lastTransitionTime": moment,
    }


def make_admission(queue: str, pods: Fields, one: Fields) -> dict[str, Any]:
    assignments = []
    for name, flavors in one["has"].items():
        said = pods.get(name, {})
        count = (one.get("counts") or {}).get(name, said.get("count", 1))
        uses = (one.get("uses") or {}).get(name)
        if uses is None:
            asked = {k: v for k, v in said.get("asks", {}).items() if k in flavors}
            uses = {k: multiply_quantity(v, count) for k, v in asked.items()}
        uses = {k: str(v) for k, v in uses.items()}
        assignments.append(
            {"name": name, "flavors": flavors, "resourceUsage": uses, "count": count}
        )
    return {"clusterQueue": queue, "podSetAssignments": assignments}


def multiply_quantity(text: object, times: int) -> str:
    value = (exact(str(text)) or Fraction(0)) * times
    return str(value) if value.denominator == 1 else f"{int(value * 1000)}m"


EXPECTATIONS: dict[str, Callable[[Fields], dict[str, Any]]] = {
    "scheduling": expect_outcome,
    "cycles": expect_cycles,
    "slices": expect_slices,
}
