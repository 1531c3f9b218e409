"""A pod's requests from its raw object: kube-scheduler.md section 2.1, one resource at a time."""

from typing import Any

from tests.oracles import quantities

Json = dict[str, Any]
CAP = 2**53
DEFAULTS = {"cpu": 100, "memory": 200 * 1024 * 1024}


def amount(resource: str, quantity: Any) -> int:
    figure = quantities.scaled(str(quantity), 1000 if resource == "cpu" else 1)
    assert figure is not None
    return min(CAP, figure)


def of_container(pod: Json, container: Json, resource: str) -> int | None:
    """What one container counts for, None when nobody says."""
    asked = _requests(container).get(resource)
    status = pod.get("status", {})
    statuses = [*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ())]
    for one in statuses:
        if one["name"] == container["name"] and (
            one.get("allocatedResources") or one.get("resources")
        ):
            said = [
                (one.get("allocatedResources") or {}).get(resource),
                _requests(one).get(resource),
            ]
            if not is_infeasible(pod):
                said.append(asked)
            given = [amount(resource, quantity) for quantity in said if quantity is not None]
            return max(given) if given else None
    return None if asked is None else amount(resource, asked)


def is_infeasible(pod: Json) -> bool:
    status = pod.get("status", {})
    return status.get("resize") == "Infeasible" or any(
        one["type"] == "PodResizePending" and one.get("reason") == "Infeasible"
        for one in status.get("conditions", ())
    )


def total(pod: Json, resource: str, default: int | None = None) -> int | None:
    """The pod's request of one resource; ``default`` stands in for containers that say nothing."""

    def figure(container: Json) -> int | None:
        said = of_container(pod, container, resource)
        return default if said is None else said

    spec = pod["spec"]
    init = spec.get("initContainers", ())
    running = [figure(one) for one in [*spec["containers"], *filter(is_sidecar, init)]]
    moments = []
    for i, one in enumerate(init):
        before = [figure(earlier) for earlier in init[:i] if is_sidecar(earlier)]
        moments.append([*before, figure(one)])
    every_moment = [[n for n in moment if n is not None] for moment in [running, *moments]]
    known = [sum(moment) for moment in every_moment if moment]
    result = max(known) if known else None
    if resource in pod_level(pod):
        result = amount(resource, pod_level(pod)[resource])
    overhead = spec.get("overhead", {}).get(resource)
    if overhead is not None:
        result = (result or 0) + amount(resource, overhead)
    return None if result is None else min(CAP, result)


def pod_level(pod: Json) -> Json:
    return {
        resource: quantity
        for resource, quantity in _requests(pod["spec"]).items()
        if resource in DEFAULTS or resource.startswith("hugepages-")
    }


def nonzero(pod: Json, resource: str) -> int:
    """With kube-scheduler's default for containers that say nothing."""
    said = total(pod, resource)
    if pod_level(pod) and said is not None:
        return said
    return total(pod, resource, DEFAULTS[resource]) or 0


def everything(pod: Json) -> dict[str, int]:
    """All resources that the pod asks more than 0 of."""
    spec = pod["spec"]
    asking = [*spec["containers"], *spec.get("initContainers", ()), spec]
    status = pod.get("status", {})
    asking += [*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ())]
    resources = {resource for one in asking for resource in _requests(one)}
    resources |= set(spec.get("overhead", {}))
    resources |= {r for one in asking for r in one.get("allocatedResources") or {}}
    totals = {resource: total(pod, resource) or 0 for resource in resources - {"pods"}}
    return {resource: n for resource, n in totals.items() if n}


def is_sidecar(container: Json) -> bool:
    return bool(container.get("restartPolicy") == "Always")


def _requests(holder: Json) -> Json:
    found: Json = (holder.get("resources") or {}).get("requests") or {}
    return found
