"""What a Workload asks and holds (pkg/workload/workload.go)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.oracles.kueue.amounts import (
    Amounts,
    Requests,
    add_amounts,
    read_request,
)

Manifest = Mapping[str, Any]
# Fields of a pod's spec that decide how it is scheduled.
_SHAPED = (
    "nodeSelector", "affinity", "tolerations", "runtimeClassName", "priority",
    "topologySpreadConstraints", "overhead", "resourceClaims",
)  # fmt: skip


REPLACES = "kueue.x-k8s.io/workload-slice-replacement-for"


@dataclass
class PodSet:
    """The pods of one set: what all of them request together, and the flavors once they are assigned."""

    name: str
    count: int
    requests: Requests
    flavors: dict[str, str] = field(default_factory=dict)


@dataclass
class Progress:
    """How far the last look at the flavors came, and when it was (AssignmentClusterQueueState)."""

    tried: list[dict[str, int]]
    generation: int
    cycle: int
    shape: str


@dataclass(eq=False)
class Info:
    """A Workload and what was read from it."""

    manifest: Manifest
    key: str
    pod_sets: list[PodSet]
    queue: str
    shape: str
    # Flavors by pod set and resource that another try in the same cycle must keep to.
    nominated: dict[str, dict[str, str]] = field(default_factory=dict)
    progress: Progress | None = None

    @property
    def priority(self) -> int:
        return int(self.manifest["spec"].get("priority") or 0)

    @property
    def uid(self) -> str:
        return str(self.manifest["metadata"].get("uid", ""))

    @property
    def local_queue(self) -> str:
        return f"{self.manifest['metadata'].get('namespace', '')}/{self.manifest['spec'].get('queueName', '')}"


def find_old_key(manifest: Manifest) -> str:
    """Find the key of the workload whose place this one takes once it is admitted; nothing if it is no such slice."""
    return str((manifest["metadata"].get("annotations") or {}).get(REPLACES, ""))


def make_key(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def read_time(text: str | None) -> float:
    """Read a moment in seconds; without one it is before all others."""
    return datetime.fromisoformat(text).timestamp() if text else float("-inf")


def find_condition(manifest: Manifest, kind: str) -> Manifest | None:
    """Find a condition, whether it holds or not."""
    conditions = manifest.get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == kind), None)


def check_condition(manifest: Manifest, kind: str) -> bool:
    condition = find_condition(manifest, kind)
    return condition is not None and condition["status"] == "True"


def check_admissible(manifest: Manifest) -> bool:
    """Check whether a queue takes the workload at all."""
    held = ("QuotaReserved", "Finished", "WaitingForReplacementPods")
    if any(check_condition(manifest, kind) for kind in held):
        return False
    return bool(manifest["spec"].get("active", True))


def find_queued_time(manifest: Manifest, *, by_creation: bool = False) -> float:
    """Find since when the workload counts as waiting: its creation, or its eviction for pods or checks.

    With ``by_creation`` an eviction for pods that were not ready does not put the workload behind.
    """
    evicted = find_condition(manifest, "Evicted")
    if evicted is not None and evicted["status"] == "True":
        counts = ["AdmissionCheck"] if by_creation else ["AdmissionCheck", "PodsReadyTimeout"]
        if evicted["reason"] in counts:
            return read_time(evicted.get("lastTransitionTime"))
    return read_time(manifest["metadata"].get("creationTimestamp"))


def sum_pod(spec: Manifest) -> Requests:
    """Add up what one pod requests: containers, at least every init container, and the overhead."""
    if requested := spec.get("resources", {}).get("requests"):
        total = _read_list(requested)
    else:
        total, sidecars, most = {}, dict[str, int](), dict[str, int]()
        for container in spec.get("initContainers", []):
            own = _read_list(container.get("resources", {}).get("requests", {}))
            if container.get("restartPolicy") == "Always":
                sidecars = _merge(sidecars, own, add_amounts)
                own = dict(sidecars)
            else:
                own = _merge(own, sidecars, add_amounts)
            most = _merge(most, own, max)
        for container in spec.get("containers", []):
            own = _read_list(container.get("resources", {}).get("requests", {}))
            total = _merge(total, own, add_amounts)
        total = _merge(_merge(total, sidecars, add_amounts), most, max)
    return _merge(total, _read_list(spec.get("overhead", {})), add_amounts)


def _read_list(amounts: Manifest) -> Requests:
    return {resource: read_request(resource, text) for resource, text in amounts.items()}


def _merge(a: Requests, b: Requests, how: Any) -> Requests:
    return {
        name: how(a[name], b[name]) if name in a and name in b else a.get(name, b.get(name, 0))
        for name in {**a, **b}
    }


def count_pods(manifest: Manifest) -> dict[str, int]:
    """Count the pods of each set that are not given back yet."""
    counts = {one["name"]: int(one["count"]) for one in manifest["spec"].get("podSets", [])}
    for one in manifest.get("status", {}).get("reclaimablePods", []):
        if one["name"] in counts:
            counts[one["name"]] -= min(int(one["count"]), counts[one["name"]])
    return counts


def scale_pod_set(pod_set: PodSet, count: int) -> PodSet:
    """Give the pod set another count; what one pod requests is rounded down."""
    requests = dict(pod_set.requests)
    if pod_set.count in {0, count}:
        return PodSet(pod_set.name, pod_set.count, requests, dict(pod_set.flavors))
    requests = {name: value // pod_set.count * count for name, value in requests.items()}
    return PodSet(pod_set.name, count, requests, dict(pod_set.flavors))


def read_workload(manifest: Manifest, queue: str = "") -> Info:
    """Read a workload: what it holds when it is admitted, else what its pods request."""
    admission = manifest.get("status", {}).get("admission")
    if admission is not None:
        queue, pod_sets = admission["clusterQueue"], _read_admitted(manifest)
    else:
        pod_sets = _read_pending(manifest)
    shape = _find_shape(manifest, pod_sets)
    return Info(manifest, make_key(manifest), pod_sets, queue, shape)


def _read_pending(manifest: Manifest) -> list[PodSet]:
    counts = count_pods(manifest)
    pod_sets = []
    for one in manifest["spec"].get("podSets", []):
        count = counts[one["name"]]
        requests = sum_pod(one.get("template", {}).get("spec", {}))
        requests = {name: max(0, value) * count for name, value in requests.items()}
        pod_sets.append(PodSet(one["name"], count, requests))
    return pod_sets


def _read_admitted(manifest: Manifest) -> list[PodSet]:
    totals = {one["name"]: int(one["count"]) for one in manifest["spec"].get("podSets", [])}
    left = count_pods(manifest)
    pod_sets = []
    for one in manifest["status"]["admission"]["podSetAssignments"]:
        name = one["name"]
        count = int(one.get("count", totals.get(name, 0)))
        requests = _read_list(one.get("resourceUsage", {}))
        pod_set = PodSet(name, count, requests, dict(one.get("flavors", {})))
        if left.get(name, 0) < count:
            pod_set = scale_pod_set(pod_set, left.get(name, 0))
        pod_sets.append(pod_set)
    return pod_sets


def sum_usage(info: Info) -> Amounts:
    """Add up what an admitted workload uses of each resource in each flavor."""
    usage: Amounts = {}
    for pod_set in info.pod_sets:
        for resource, value in pod_set.requests.items():
            if flavor := pod_set.flavors.get(resource):
                fr = (flavor, resource)
                usage[fr] = add_amounts(usage.get(fr, 0), value)
    return usage


def _find_shape(manifest: Manifest, pod_sets: list[PodSet]) -> str:
    """Describe all that decides how the workload is scheduled: workloads of one shape fare alike.

    The shape of a slice says whose place it takes, which Kueue's does not: it may fit where another one does not.
    """
    shapes = []
    for one, pod_set in zip(manifest["spec"].get("podSets", []), pod_sets, strict=False):
        spec = one.get("template", {}).get("spec", {})
        shape: dict[str, Any] = {name: spec[name] for name in _SHAPED if spec.get(name)}
        for group in ("initContainers", "containers"):
            shape[group] = [
                [_read_list(c.get("resources", {}).get("requests", {})), c.get("ports")]
                for c in spec.get(group, [])
            ]
        shape |= {"name": pod_set.name, "count": pod_set.count, "requests": pod_set.requests}
        shape |= {"min": one.get("minCount"), "topology": one.get("topologyRequest")}
        shapes.append(shape)
    priority = int(manifest["spec"].get("priority") or 0)
    return json.dumps([priority, shapes, find_old_key(manifest)], sort_keys=True, default=str)
