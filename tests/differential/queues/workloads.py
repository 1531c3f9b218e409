"""One workload, from a source of chance."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from tests.differential.queues.quotas import (
    API,
    GPU,
    LABELS,
    NAMESPACE,
    PRIORITIES,
    TAINT,
    Plan,
)

Json = dict[str, Any]

_REQUESTS = {"cpu": ("", 1, 2), "memory": ("Gi", 1, 3), GPU: ("", 1, 2)}


# Who comes later is more important on the whole, else few would have to go.
_EARLY = ("low", "usual", "usual", "middle")
_LATE = ("usual", "middle", "high", "high", "urgent")


def draw(rng: Random, name: str, queues: Sequence[str], plan: Plan, *, is_late: bool) -> Json:
    """A workload of one to three pod sets that waits in one of the LocalQueues."""
    n_sets = rng.choice([1, 1, 1, 1, 2, 3])
    pod_sets = [_draw_pod_set(rng, f"set-{i}", plan) for i in range(n_sets)]
    if rng.random() < 0.25:
        # Of one pod set only.
        partial = rng.choice(pod_sets)
        partial["minCount"] = rng.randint(1, partial["count"])
    spec: Json = {"queueName": rng.choice(queues), "podSets": pod_sets}
    if rng.random() < 0.8:
        chosen = rng.choice(_LATE if is_late else _EARLY)
        spec["priority"] = PRIORITIES[chosen]
        spec["priorityClassRef"] = {
            "group": "kueue.x-k8s.io",
            "kind": "WorkloadPriorityClass",
            "name": chosen,
        }
    return {
        "apiVersion": API,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def _draw_pod_set(rng: Random, name: str, plan: Plan) -> Json:
    requests = {}
    for resource in plan.resources:
        unit, least, most = _REQUESTS[resource]
        if resource == "cpu" or rng.random() < 0.5:
            requests[resource] = f"{rng.randint(least, most)}{unit}"
    container = {"name": "main", "image": "none", "resources": {"requests": requests}}
    spec: Json = {"restartPolicy": "Never", "containers": [container]}
    _constrain(rng, spec)
    return {"name": name, "count": rng.choice([1, 1, 1, 2, 3]), "template": {"spec": spec}}


def _constrain(rng: Random, spec: Json) -> None:
    """Some pods may go to nodes of some flavors only."""
    if rng.random() < 0.1:
        key = rng.choice(sorted(LABELS))
        spec["nodeSelector"] = {key: rng.choice(LABELS[key])}
    if rng.random() < 0.1:
        key = rng.choice(sorted(LABELS))
        operator = rng.choice(["In", "NotIn", "Exists", "DoesNotExist"])
        wanted: Json = {"key": key, "operator": operator}
        if operator in {"In", "NotIn"}:
            wanted["values"] = [rng.choice(LABELS[key])]
        terms = [{"matchExpressions": [wanted]}]
        if rng.random() < 0.3:
            terms.append({"matchExpressions": [{"key": "example.com/other", "operator": "Exists"}]})
        required = {"nodeSelectorTerms": terms}
        spec["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
        }
    if rng.random() < 0.3:
        spec["tolerations"] = [{"key": TAINT["key"], "operator": "Exists"}]
