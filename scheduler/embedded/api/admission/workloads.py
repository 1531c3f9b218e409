"""What the server does to a workload: defaults, and problems for which no pods could be made from its template."""

from typing import Any

from scheduler.embedded.api.admission import pods
from scheduler.embedded.store import metadata
from scheduler.embedded.store.statuses import (
    Cause,
    bad_request,
    invalid_value,
    quote,
    required,
    unsupported_value,
)

Json = dict[str, Any]

_JOBS = "jobs.batch"
_RESOURCES = frozenset({"deployments.apps", "replicasets.apps", "statefulsets.apps", _JOBS})
_COUNTS = ("replicas", "parallelism", "completions", "backoffLimit", "revisionHistoryLimit")
_MAX_COUNT = (1 << 31) - 1
_IMMUTABLE = "field is immutable"
_DEFAULTS: dict[str, Json] = {
    "deployments.apps": {
        "replicas": 1,
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
        },
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    },
    "replicasets.apps": {"replicas": 1},
    "statefulsets.apps": {
        "replicas": 1,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "revisionHistoryLimit": 10,
    },
    _JOBS: {
        "parallelism": 1,
        "backoffLimit": 6,
        "completionMode": "NonIndexed",
        "suspend": False,
    },
}


def are_workloads(resource: str) -> bool:
    """Tell whether objects of a resource are workloads with a pod template."""
    return resource in _RESOURCES


def fill_in(resource: str, body: Json) -> None:
    """Set defaults, in place."""
    spec = _get_object(body, "spec")
    if resource == _JOBS:
        if spec.get("parallelism") is None and spec.get("completions") is None:
            spec["completions"] = 1
        _select_own_pods(body, spec)
    for field, value in _DEFAULTS[resource].items():
        if not spec.get(field) and spec.get(field) != 0:
            spec[field] = dict(value) if isinstance(value, dict) else value
    for field in _COUNTS:
        count = spec.get(field)
        if count is not None and (type(count) is not int or abs(count) > _MAX_COUNT):
            raise bad_request(f"spec.{field} must be a 32-bit integer, not {quote(count)[:80]}")
    if resource != _JOBS:
        _get_object(spec, "selector")
    template = _get_object(spec, "template")
    metadata.check_types(_get_object(template, "metadata"))
    pods.fill_in(template)


def find_problems(resource: str, body: Json) -> list[Cause]:
    """Return what is wrong with a workload."""
    spec = body["spec"]
    template = spec["template"]
    causes = [
        invalid_value(f"spec.{field}", spec[field], "must be greater than or equal to 0")
        for field in _COUNTS
        if (spec.get(field) or 0) < 0
    ]
    allowed: tuple[str, ...] = ("Always",)
    if resource == _JOBS:
        allowed = ("OnFailure", "Never")
        if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
            causes.append(required("spec.completions", "when completion mode is Indexed"))
    else:
        causes += _find_selector_problems(spec)
    if template["spec"]["restartPolicy"] not in allowed:
        where = "spec.template.spec.restartPolicy"
        causes.append(unsupported_value(where, template["spec"]["restartPolicy"], allowed))
    inside = [*pods.find_problems(template), *metadata.find_label_problems(template["metadata"])]
    return causes + [one._replace(field=f"spec.template.{one.field}") for one in inside]


def find_change_problems(resource: str, new: Json, old: Json) -> list[Cause]:
    """Return why a workload may not be changed this way."""
    fixed = ("selector", "template", "completions") if resource == _JOBS else ("selector",)
    return [
        invalid_value(f"spec.{field}", new["spec"].get(field), _IMMUTABLE)
        for field in fixed
        if new["spec"].get(field) != old["spec"].get(field)
    ]


def _select_own_pods(body: Json, spec: Json) -> None:
    """Let a new Job select the pods made for it, and no others."""
    meta = body["metadata"]
    if spec.get("selector") or "uid" not in meta:
        return
    template = _get_object(spec, "template")
    prefix = "batch.kubernetes.io/"
    spec["selector"] = {"matchLabels": {f"{prefix}controller-uid": meta["uid"]}}
    inner = _get_object(template, "metadata")
    marks = {"controller-uid": meta["uid"], "job-name": meta.get("name", "")}
    marks |= {prefix + name: value for name, value in marks.items()}
    inner["labels"] = {**_get_object(inner, "labels"), **marks}


def _find_selector_problems(spec: Json) -> list[Cause]:
    selector, labels = spec["selector"], spec["template"]["metadata"].get("labels") or {}
    wanted = selector.get("matchLabels") or {}
    if not wanted and not selector.get("matchExpressions"):
        return [required("spec.selector")]
    if any(labels.get(key) != value for key, value in wanted.items()):
        why = "`selector` does not match template `labels`"
        return [invalid_value("spec.template.metadata.labels", labels, why)]
    return []


def _get_object(parent: Json, field: str) -> Json:
    """Return an object within an object; make it if it is absent."""
    if parent.get(field) is None:
        parent[field] = {}
    found = parent[field]
    if not isinstance(found, dict):
        raise bad_request(f"{field} must be an object")
    return found
