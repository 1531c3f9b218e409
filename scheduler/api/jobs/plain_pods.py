"""Pods that wait in a queue by themselves, and groups of such pods: what they say, and what they are.

Source: Kueue (2026-08), ``pkg/controller/jobs/pod/pod_controller.go`` and ``pkg/util/pod/pod.go``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from scheduler.api import names, values
from scheduler.api.groups.readers import reading
from scheduler.api.jobs.parts import (
    MAIN,
    JobPart,
    Json,
    get_in,
    has_condition,
    read_list,
    read_object,
)
from scheduler.errors import BadInput

_LABELS = "metadata", "labels"
_TEXTS = "metadata", "annotations"
_GATES = names.KUEUE_GATE, names.KUEUE_TOPOLOGY_GATE
_HASH_LENGTH = 8
# What kubectl keeps for itself, and what a pod gets from others.
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_NOT_COPIED = frozenset({"nodeName", "schedulingGates"})
# The place of a pod's template: the pod itself.
_PLACE: tuple[str, ...] = ()


def find_group(labels: Mapping[str, Any]) -> str:
    """Find the group that a pod names; empty for a pod by itself."""
    return str(labels.get(names.KUEUE_GROUP, ""))


def read_total(pod: Json) -> int:
    """Read how many pods a group has.

    Raises:
        BadInput: the pod does not say it, or says what cannot be.
    """
    field = f"metadata.annotations[{names.KUEUE_TOTAL}]"
    text = read_object(pod, *_TEXTS).get(names.KUEUE_TOTAL)
    if text is None:
        raise BadInput(field, f"is missing; the label {names.KUEUE_GROUP} needs it")
    return reading.parse_count(str(text), field)


def read_common_total(pods: Sequence[Json]) -> int:
    """Read how many pods a group has, on which all that have not failed agree, as they do on their queue.

    Raises:
        BadInput: they do not.
    """
    alive = [one for one in pods if _read_phase(one) != "Failed"] or list(pods)
    first = alive[0]
    total, queue = read_total(first), read_object(first, *_LABELS).get(names.KUEUE_QUEUE)
    for one in alive[1:]:
        name = values.quote(get_in(one, ("metadata", "name")))
        if read_total(one) != total:
            field = f"metadata.annotations[{names.KUEUE_TOTAL}]"
            raise BadInput(field, f"pod {name} of the group has another number of pods")
        if read_object(one, *_LABELS).get(names.KUEUE_QUEUE) != queue:
            field = f"metadata.labels[{names.KUEUE_QUEUE}]"
            raise BadInput(field, f"pod {name} of the group names another queue")
    return total


def _read_phase(pod: Json) -> str:
    return str(get_in(pod, ("status", "phase")) or "")


def is_over(pod: Json) -> bool:
    """Whether a pod has ended."""
    return _read_phase(pod) in {"Succeeded", "Failed"}


def has_succeeded(pod: Json) -> bool:
    """Whether a pod has succeeded."""
    return _read_phase(pod) == "Succeeded"


def is_going(pod: Json) -> bool:
    """Whether a pod is being deleted."""
    return get_in(pod, ("metadata", "deletionTimestamp")) is not None


def is_gated(pod: Json) -> bool:
    """Whether a gate of Kueue keeps a pod from running."""
    return any(one.get("name") in _GATES for one in read_list(pod, "spec", "schedulingGates"))


def may_come(pod: Json) -> bool:
    """Whether a pod runs, has succeeded, or can still run."""
    if is_going(pod) and not get_in(pod, ("spec", "nodeName")):
        return False
    return _read_phase(pod) != "Failed"


def is_ready(pod: Json) -> bool:
    """Whether a pod is ready."""
    return has_condition(pod, "Ready")


def says(pod: Json, name: str, value: str) -> bool:
    """Whether a pod has an annotation with a value."""
    return bool(read_object(pod, *_TEXTS).get(name) == value)


def find_role(pod: Json) -> str:
    """Find the role of a pod in its group: pods with the same one are alike."""
    said = read_object(pod, *_TEXTS).get(names.KUEUE_ROLE)
    return str(said) if said else make_role(read_object(pod, "spec"))


def make_role(spec: Mapping[str, Any]) -> str:
    """Make the digest of what counts of a pod's spec, as Kueue's own webhook does.

    Raises:
        BadInput: a part of it is no object.
    """
    keys = (
        "affinity", "nodeSelector", "overhead", "priority", "resourceClaims", "runtimeClassName",
        "tolerations", "topologySpreadConstraints",
    )  # fmt: skip
    shape: Json = {key: spec.get(key) for key in keys}
    for key in ("containers", "initContainers"):
        shape[key] = [_shape_container(one) for one in read_list(spec, key)] or None
    if spec.get("resources"):
        shape["resources"] = _sort(read_object(spec, "resources").get("requests"))
    for key in ("nodeSelector", "overhead"):
        shape[key] = _sort(shape[key])
    text = json.dumps({"spec": dict(sorted(shape.items()))}, separators=(",", ":"), ensure_ascii=False)  # fmt: skip
    return hashlib.sha256(text.encode()).hexdigest()[:_HASH_LENGTH]


def _shape_container(container: Json) -> Json:
    requests = _sort(read_object(container, "resources").get("requests"))
    return {"ports": container.get("ports") or None, "resources": {"requests": requests}}


def _sort(found: Any) -> Any:
    """Sort a map by its keys, as Go writes it; no map is null."""
    return dict(sorted(found.items())) if isinstance(found, Mapping) and found else None


def list_parts(pods: Sequence[Json], total: int | None = None) -> list[JobPart]:
    """List the parts of the workload of pods: one for a pod by itself, else one for each role of the group.

    Args:
        pods: those that may run, or have run.
        total: for a group that need not be complete, how many pods it has: all are like the first one.
    """
    parts: dict[str, JobPart] = {}
    for pod in pods:
        role = find_role(pod) if find_group(read_object(pod, *_LABELS)) else MAIN
        known = parts.get(role)
        if known is not None:
            parts[role] = known._replace(n_pods=known.n_pods + 1)
            continue
        parts[role] = JobPart(role, 1, _make_template(pod), _PLACE, index_label=names.KUEUE_INDEX)
        if total is not None:
            return [parts[role]._replace(n_pods=total)]
    return sorted(parts.values())


def _make_template(pod: Json) -> Json:
    """Make the template of pods that are like a pod."""
    texts = {key: one for key, one in read_object(pod, *_TEXTS).items() if key != _APPLIED}
    labels = dict(read_object(pod, *_LABELS))
    spec = {key: one for key, one in read_object(pod, "spec").items() if key not in _NOT_COPIED}
    return {"metadata": {"labels": labels, "annotations": texts}, "spec": spec}
