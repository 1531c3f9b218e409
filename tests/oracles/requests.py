"""A pod's requests from its raw object, one resource at a time, exactly and rounded up once.

Written from component-helpers' ``resource.PodRequests`` of Kubernetes 1.37.1 and kube-scheduler's
``getNonMissingContainerRequests``.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tests.oracles import quantities

Json = dict[str, Any]
CAP = 2**53
# Of a container that says nothing; in cores and bytes.
DEFAULTS = {"cpu": Fraction(100, 1000), "memory": Fraction(200 * 1024 * 1024)}
Said = Callable[[Json, str], Fraction | None]


def exact(quantity: Any) -> Fraction:
    # No finer than thousandths, as the API server keeps them.
    thousandths = quantities.scaled(str(quantity), 1000)
    assert thousandths is not None
    return Fraction(thousandths, 1000)


def rounded(resource: str, figure: Fraction) -> int:
    return min(CAP, math.ceil(figure * (1000 if resource == "cpu" else 1)))


def amount(resource: str, quantity: Any) -> int:
    return rounded(resource, exact(quantity))


def is_infeasible(pod: Json) -> bool:
    for one in pod.get("status", {}).get("conditions", ()):
        if one["type"] == "PodResizePending":
            return bool(one.get("reason") == "Infeasible")
    return False


def total(pod: Json, resource: str) -> int | None:
    """The pod's request of one resource in milli-CPU or whole units, None when nobody says any."""
    said = exact_total(pod, resource)
    return None if said is None else rounded(resource, said)


def exact_total(pod: Json, resource: str, default: Fraction | None = None) -> Fraction | None:
    """``default`` stands in for containers that say nothing."""
    result = of_containers(pod, resource, default)
    if pod_level(pod):
        said = of_pod_level(pod, resource)
        result = result if said is None else said
    overhead = pod["spec"].get("overhead", {}).get(resource)
    if overhead is not None:
        result = (result or 0) + exact(overhead)
    return result


def of_containers(pod: Json, resource: str, default: Fraction | None) -> Fraction | None:
    def spec(container: Json, resource: str) -> Fraction | None:
        asked = _requests(container).get(resource)
        return None if asked is None else exact(asked)

    def allocated(container: Json, resource: str) -> Fraction | None:
        given = status_of(pod, container).get("allocatedResources")
        if given is not None:
            return exact(given[resource]) if resource in given else None
        return None if is_infeasible(pod) else spec(container, resource)

    def actuated(container: Json, resource: str) -> Fraction | None:
        given = (status_of(pod, container).get("resources") or {}).get("requests")
        if given is not None:
            return exact(given[resource]) if resource in given else None
        return allocated(container, resource)

    wanted = summed(pod, resource, spec, default)
    if not pod["spec"].get("nodeName"):
        return wanted
    status = pod.get("status", {})
    granted, used = (
        status.get("allocatedResources"),
        (status.get("resources") or {}).get("requests"),
    )
    if granted is not None and used is not None:
        figures = [exact(m[resource]) if resource in m else None for m in (granted, used)]
    else:
        figures = [
            summed(pod, resource, allocated, default),
            summed(pod, resource, actuated, default),
        ]
    if not is_infeasible(pod):
        figures.append(wanted)
    return most(figures)


def summed(pod: Json, resource: str, said: Said, default: Fraction | None) -> Fraction | None:
    """The most that containers have at one time: all that run, or an init container and what runs beside it."""

    def figure(container: Json) -> Fraction | None:
        found = said(container, resource)
        return default if found is None else found

    spec = pod["spec"]
    init = spec.get("initContainers", ())
    moments = [[figure(one) for one in [*spec["containers"], *filter(is_sidecar, init)]]]
    for i, one in enumerate(init):
        before = [figure(earlier) for earlier in init[:i] if is_sidecar(earlier)]
        moments.append([*before, figure(one)])
    known = [[n for n in moment if n is not None] for moment in moments]
    return most([sum(moment, Fraction(0)) if moment else None for moment in known])


def of_pod_level(pod: Json, resource: str) -> Fraction | None:
    if resource not in DEFAULTS and not resource.startswith("hugepages-"):
        return None
    asked = pod_level(pod).get(resource)
    wanted = None if asked is None else exact(asked)
    status = pod.get("status", {})
    if not pod["spec"].get("nodeName") or status.get("resources") is None:
        return wanted
    maps = [status["resources"].get("requests") or {}, status.get("allocatedResources") or {}]
    figures = [exact(m[resource]) if resource in m else None for m in maps]
    return most(figures if is_infeasible(pod) else [*figures, wanted])


def pod_level(pod: Json) -> Json:
    return {
        resource: quantity
        for resource, quantity in _requests(pod["spec"]).items()
        if resource in DEFAULTS or resource.startswith("hugepages-")
    }


def without_pod_level(pod: Json) -> Json:
    return pod | {"spec": {key: value for key, value in pod["spec"].items() if key != "resources"}}


def most(figures: list[Fraction | None]) -> Fraction | None:
    known = [n for n in figures if n is not None]
    return max(known) if known else None


def nonzero(pod: Json, resource: str) -> int:
    """With kube-scheduler's default for containers that say nothing."""
    said = exact_total(pod, resource)
    if not pod_level(pod) or said is None:
        said = exact_total(pod, resource, DEFAULTS[resource])
    return rounded(resource, said or Fraction(0))


def everything(pod: Json) -> dict[str, int]:
    """All resources that the pod asks more than 0 of."""
    spec, status = pod["spec"], pod.get("status", {})
    statuses = [*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ())]
    asking = [*spec["containers"], *spec.get("initContainers", ()), spec, status, *statuses]
    resources = {resource for one in asking for resource in _requests(one)}
    resources |= set(spec.get("overhead", {}))
    resources |= {r for one in asking for r in one.get("allocatedResources") or {}}
    totals = {resource: total(pod, resource) or 0 for resource in resources - {"pods"}}
    return {resource: n for resource, n in totals.items() if n}


def status_of(pod: Json, container: Json) -> Json:
    status = pod.get("status", {})
    for one in [*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ())]:
        if one["name"] == container["name"]:
            found: Json = one
            return found
    return {}


def is_sidecar(container: Json) -> bool:
    return bool(container.get("restartPolicy") == "Always")


def _requests(holder: Json) -> Json:
    found: Json = (holder.get("resources") or {}).get("requests") or {}
    return found
