"""Eviction: a delete that a PodDisruptionBudget may refuse.

No disruption controller runs here: the budget's ``status`` says what is allowed, and whoever
plays the controller in a test writes it.
"""

from typing import Any

from scheduler.embedded.api.writing import strategic
from scheduler.embedded.api.writing.registry import Options, Registry
from scheduler.embedded.store import selectors
from scheduler.embedded.store.builtin import PODS
from scheduler.embedded.store.metadata import timestamp
from scheduler.embedded.store.statuses import ApiError, internal

Json = dict[str, Any]

_BUDGETS = "poddisruptionbudgets.policy"


def evict(registry: Registry, namespace: str, name: str, eviction: Json, options: Options) -> Json:
    """Delete a pod unless a budget forbids it; return the Status."""
    record = registry.get(PODS, namespace, name)
    phase = record.body["status"].get("phase")
    going = "deletionTimestamp" in record.body["metadata"]
    if phase not in {"Pending", "Succeeded", "Failed"} and not going:
        _charge(registry, namespace, record.body, options)
    if not options.dry_run:
        registry.store.put(PODS.bucket, record.key, _disrupted(record.body))
    registry.delete(PODS, record.key, eviction.get("deleteOptions") or {}, options)
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }


def _disrupted(body: Json) -> Json:
    """Return the pod with the condition that says who wants it gone."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    status = strategic.apply(body["status"], {"conditions": [condition]})
    return {**body, "status": status}


def _charge(registry: Registry, namespace: str, pod: Json, options: Options) -> None:
    budgets = [
        record
        for record in registry.store.bucket(_BUDGETS).ordered()
        if record.key[0] == namespace and matches(record.body.get("spec", {}).get("selector"), pod)
    ]
    if len(budgets) > 1:
        raise internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does"
            " not support."
        )
    for record in budgets:
        status = record.body.get("status") or {}
        if not _is_ready(pod) and _spares_unready(record.body, status):
            continue
        if status.get("observedGeneration", 0) < record.body["metadata"].get("generation", 0):
            text = f"The disruption budget {record.key[1]} is still being processed by the server."
            raise _refusal(text)
        allowed = status.get("disruptionsAllowed", 0)
        if allowed <= 0:
            raise _refusal(_why_none(record.key[1], status))
        if not options.dry_run:
            left = {**status, "disruptionsAllowed": allowed - 1}
            left["disruptedPods"] = {
                **(status.get("disruptedPods") or {}),
                pod["metadata"]["name"]: timestamp(),
            }
            registry.store.put(_BUDGETS, record.key, {**record.body, "status": left})


def _is_ready(pod: Json) -> bool:
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in pod["status"].get("conditions") or ()
    )


def _spares_unready(budget: Json, status: Json) -> bool:
    """Tell whether a pod that is not ready may go without being charged to the budget."""
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    desired = status.get("desiredHealthy", 0)
    return bool(desired > 0 and status.get("currentHealthy", 0) >= desired)


def _why_none(name: str, status: Json) -> str:
    current, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if current <= desired:
        return (
            f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        )
    return f"The disruption budget {name} does not allow evicting pods currently"


def _refusal(text: str) -> ApiError:
    cause = {"reason": "DisruptionBudget", "message": text}
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return ApiError(429, "TooManyRequests", message, {"causes": [cause]})


def matches(selector: Json | None, body: Json) -> bool:
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
    return all(test(body) for test in selectors.label_tests(",".join(terms)))
