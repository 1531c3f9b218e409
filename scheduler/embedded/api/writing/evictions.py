"""Eviction: a delete that a PodDisruptionBudget may refuse.

No disruption controller runs here: the budget's ``status`` says what is allowed, and a test that plays the
controller writes it.
"""

from typing import Any

from scheduler.embedded.api.writing import strategic
from scheduler.embedded.api.writing.registry import Options, Registry
from scheduler.embedded.store import selectors
from scheduler.embedded.store.builtin import PODS
from scheduler.embedded.store.metadata import write_timestamp
from scheduler.embedded.store.statuses import ApiError, internal

Json = dict[str, Any]

_BUDGETS = "poddisruptionbudgets.policy"


def evict_pod(
    registry: Registry, namespace: str, name: str, eviction: Json, options: Options
) -> Json:
    """Delete a pod unless a budget forbids it; return the Status."""
    record = registry.get(PODS, namespace, name)
    phase = record.body["status"].get("phase")
    going = "deletionTimestamp" in record.body["metadata"]
    if phase not in {"Pending", "Succeeded", "Failed"} and not going:
        _charge(registry, namespace, record.body, options)
    if not options.dry_run:
        registry.store.put(PODS.bucket, record.key, _mark_disrupted(record.body))
    registry.delete(PODS, record.key, eviction.get("deleteOptions") or {}, options)
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }


def _mark_disrupted(body: Json) -> Json:
    """Return the pod with the condition that says why it is evicted."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": write_timestamp(),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    status = strategic.apply_patch(body["status"], {"conditions": [condition]})
    return {**body, "status": status}


def _charge(registry: Registry, namespace: str, pod: Json, options: Options) -> None:
    budgets = [
        record
        for record in registry.store.get_bucket(_BUDGETS).list_ordered()
        if record.key[0] == namespace
        and has_match(record.body.get("spec", {}).get("selector"), pod)
    ]
    if len(budgets) > 1:
        raise internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does"
            " not support."
        )
    for record in budgets:
        status = record.body.get("status") or {}
        if not _is_ready(pod) and _may_spare_unready(record.body, status):
            continue
        if status.get("observedGeneration", 0) < record.body["metadata"].get("generation", 0):
            text = f"The disruption budget {record.key[1]} is still being processed by the server."
            raise _make_refusal(text)
        allowed = status.get("disruptionsAllowed", 0)
        if allowed <= 0:
            raise _make_refusal(_explain_none(record.key[1], status))
        if not options.dry_run:
            left = {**status, "disruptionsAllowed": allowed - 1}
            left["disruptedPods"] = {
                **(status.get("disruptedPods") or {}),
                pod["metadata"]["name"]: write_timestamp(),
            }
            registry.store.put(_BUDGETS, record.key, {**record.body, "status": left})


def _is_ready(pod: Json) -> bool:
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in pod["status"].get("conditions") or ()
    )


def _may_spare_unready(budget: Json, status: Json) -> bool:
    """Tell whether a pod that is not ready may go without counting for the budget."""
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    desired = status.get("desiredHealthy", 0)
    return bool(desired > 0 and status.get("currentHealthy", 0) >= desired)


def _explain_none(name: str, status: Json) -> str:
    current, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if current <= desired:
        return (
            f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        )
    return f"The disruption budget {name} does not allow evicting pods currently"


def _make_refusal(text: str) -> ApiError:
    cause = {"reason": "DisruptionBudget", "message": text}
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return ApiError(429, "TooManyRequests", message, {"causes": [cause]})


def has_match(selector: Json | None, body: Json) -> bool:
    """Tell whether a structured label selector matches; an absent one matches nothing."""
    if selector is None:
        return False
    terms = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for term in selector.get("matchExpressions") or ():
        key, values = term["key"], ",".join(term.get("values") or ())
        match term["operator"]:
            case "In":
                terms.append(f"{key} in ({values})")
            case "NotIn":
                terms.append(f"{key} notin ({values})")
            case "Exists":
                terms.append(key)
            case "DoesNotExist":
                terms.append(f"!{key}")
    return all(test(body) for test in selectors.parse_labels(",".join(terms)))
