"""What the API server does to a pod before storing it: defaults, admission, status."""

from collections.abc import Iterator
from typing import Any

from scheduler.embedded.api.admission import amounts
from scheduler.embedded.store.metadata import write_timestamp
from scheduler.embedded.store.statuses import (
    Cause,
    bad_request,
    forbidden,
    invalid_value,
    required,
)
from scheduler.embedded.store.store import Store

Json = dict[str, Any]

BUILT_IN_CLASSES = {
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_NATIVE = ("cpu", "memory", "ephemeral-storage", "storage")


def list_containers(spec: Json) -> Iterator[tuple[str, Json]]:
    """Yield every container with its field path, init containers first."""
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield f"spec.{field}[{index}]", container


def fill_in(body: Json) -> None:
    """Set the defaults of a pod's spec; keys that are there stay untouched."""
    spec = body.setdefault("spec", {})
    for _, container in list_containers(spec):
        _fill_in_container(container)
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    # An empty text counts as unset everywhere in the API.
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    spec.setdefault("enableServiceLinks", True)
    for constraint in spec.get("topologySpreadConstraints") or ():
        constraint.setdefault("whenUnsatisfiable", "DoNotSchedule")
    for field in ("nodeName", "priorityClassName"):
        if spec.get(field) == "":
            del spec[field]


def _fill_in_container(container: Json) -> None:
    resources = container.setdefault("resources", {})
    for field in ("limits", "requests"):
        if resources.get(field):
            try:
                resources[field] = amounts.rewrite_amounts(resources[field], field)
            except ValueError as error:
                raise bad_request(
                    'Pod in version "v1" cannot be handled as a Pod: ' + str(error)
                ) from None
    limits = resources.get("limits")
    if limits:
        requests = resources.get("requests") or {}
        if any(name not in requests for name in limits):
            resources["requests"] = {**limits, **requests}
    image = container.get("image", "")
    tag = image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    latest = tag == "latest" or (not tag and "@" not in image)
    container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")


def admit(store: Store, body: Json) -> None:
    """Run the admission plugins that matter to a scheduler on a new pod."""
    spec, name = body["spec"], body["metadata"].get("name", "")
    class_name, value, policy = _find_priority(store, name, spec.get("priorityClassName", ""))
    given = spec.get("priority")
    if given is not None and given != value:
        raise forbidden(
            "pods",
            name,
            f"the integer value of priority ({given}) must not be provided in pod spec;"
            f" priority admission controller computed {value} from the given PriorityClass name",
        )
    if class_name:
        spec["priorityClassName"] = class_name
    spec["priority"] = value
    if policy:
        spec["preemptionPolicy"] = policy
    add_tolerations(spec)
    if node_name := spec.get("nodeName"):
        copied = list_topology_labels(store, node_name)
        if copied:
            metadata = body["metadata"]
            metadata["labels"] = {**(metadata.get("labels") or {}), **copied}


def _find_priority(store: Store, pod: str, class_name: str) -> tuple[str, int, str]:
    bucket = "priorityclasses.scheduling.k8s.io"
    if class_name:
        found = store.get(bucket, "", class_name)
        if found is None:
            raise forbidden("pods", pod, f"no PriorityClass with name {class_name} was found")
        return class_name, found["value"], found.get("preemptionPolicy", "")
    defaults = [body for body in store.list_bodies(bucket) if body.get("globalDefault")]
    if defaults:
        lowest = min(defaults, key=lambda body: int(body["value"]))
        return lowest["metadata"]["name"], lowest["value"], lowest.get("preemptionPolicy", "")
    return "", 0, "PreemptLowerPriority"


def add_tolerations(spec: Json) -> None:
    """Add what DefaultTolerationSeconds adds: five minutes on a node that is lost."""
    tolerations = spec.get("tolerations") or []
    missing = [
        key
        for key in (_NOT_READY, _UNREACHABLE)
        if not any(_tolerates(toleration, key) for toleration in tolerations)
    ]
    if missing:
        spec["tolerations"] = tolerations + [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for key in missing
        ]


def _tolerates(toleration: Json, key: str) -> bool:
    return toleration.get("key", "") in {key, ""} and toleration.get("effect", "") in {
        "NoExecute",
        "",
    }


def list_topology_labels(store: Store, node_name: str) -> dict[str, str]:
    """Return the labels that the PodTopologyLabels admission copies from a node to its pods."""
    node = store.get("nodes", "", node_name)
    labels = (node or {"metadata": {}})["metadata"].get("labels") or {}
    wanted = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
    return {key: labels[key] for key in wanted if key in labels}


def make_first_status(spec: Json) -> Json:
    """Return the status of a new pod; the status that the client sent is dropped."""
    status: Json = {"phase": "Pending", "qosClass": find_quality(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": write_timestamp(),
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]
    return status


def find_quality(spec: Json) -> str:
    """Return the pod's quality-of-service class."""
    guaranteed, any_set = True, False
    for _, container in list_containers(spec):
        resources = container.get("resources") or {}
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        any_set = any_set or any(name in limits or name in requests for name in ("cpu", "memory"))
        guaranteed = guaranteed and all(
            name in limits and requests.get(name, limits[name]) == limits[name]
            for name in ("cpu", "memory")
        )
    if not any_set:
        return "BestEffort"
    return "Guaranteed" if guaranteed else "Burstable"


def find_problems(body: Json) -> list[Cause]:
    """Return what is wrong with a new pod's spec (the parts a scheduler's user gets wrong)."""
    spec = body["spec"]
    causes = []
    if not spec.get("containers"):
        causes.append(required("spec.containers"))
    seen: set[str] = set()
    for path, container in list_containers(spec):
        name = container.get("name", "")
        if not name:
            causes.append(required(f"{path}.name"))
        elif name in seen:
            duplicate = Cause("FieldValueDuplicate", f"{path}.name", f'Duplicate value: "{name}"')
            causes.append(duplicate)
        seen.add(name)
        if not container.get("image"):
            causes.append(required(f"{path}.image"))
        causes += _find_resource_problems(path, container.get("resources") or {})
    if spec.get("schedulingGates") and spec.get("nodeName"):
        causes.append(
            Cause(
                "FieldValueForbidden",
                "spec.nodeName",
                "Forbidden: cannot be set until all schedulingGates have been cleared",
            )
        )
    return causes


def _find_resource_problems(path: str, resources: Json) -> list[Cause]:
    causes = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for field, listed in (("limits", limits), ("requests", requests)):
        for name, text in listed.items():
            where = f"{path}.resources.{field}[{name}]"
            amount = amounts.read_value(text)
            if amount < 0:
                causes.append(invalid_value(where, text, "must be greater than or equal to 0"))
            elif _is_extended(name) and amount.denominator != 1:
                causes.append(invalid_value(where, text, "must be an integer"))
    for name, text in requests.items():
        where = f"{path}.resources.requests"
        if name in limits:
            request, limit = amounts.read_value(text), amounts.read_value(limits[name])
            if request != limit and _is_extended(name):
                why = f"must be equal to {name} limit of {limits[name]}"
                causes.append(invalid_value(where, text, why))
            elif request > limit:
                why = f"must be less than or equal to {name} limit of {limits[name]}"
                causes.append(invalid_value(where, text, why))
        elif _is_extended(name):
            why = "Limit must be set for non overcommitable resources"
            causes.append(required(f"{path}.resources.limits", why))
    return causes


def _is_extended(name: str) -> bool:
    return name not in _NATIVE and (
        name.startswith("hugepages-") or ("/" in name and "kubernetes.io/" not in name)
    )


def bind_pod(store: Store, body: Json, binding: Json) -> Json:
    """Return the pod with a Binding applied; the caller has checked that it may be bound."""
    target = binding["target"]
    metadata, meta = dict(body["metadata"]), binding.get("metadata") or {}
    # The real server turns absent annotations into a map here, and leaves out an empty one.
    annotations = {**(metadata.get("annotations") or {}), **(meta.get("annotations") or {})}
    if annotations:
        metadata["annotations"] = annotations
    labels = dict(meta.get("labels") or {})
    if target.get("kind") == "Node":
        labels |= list_topology_labels(store, target["name"])
    if labels:
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    status = {key: value for key, value in body["status"].items() if key != "nominatedNodeName"}
    condition = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": write_timestamp(),
    }
    conditions = list(status.get("conditions") or ())
    types = [one["type"] for one in conditions]
    if "PodScheduled" in types:
        conditions[types.index("PodScheduled")] = condition
    else:
        conditions.append(condition)
    status["conditions"] = conditions
    spec = {**body["spec"], "nodeName": target["name"]}
    return {**body, "metadata": metadata, "spec": spec, "status": status}
