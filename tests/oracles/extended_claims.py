"""The requests of the claim for a pod's extended resources, and which containers they serve: kube-scheduler's steps, one by one.

Source: kube-scheduler 1.37.1, dynamicresources/extendeddynamicresources.go, createRequestsAndMappings.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def make_requests(spec: Json, classes: dict[str, str]) -> tuple[list[Json], list[Json]]:
    """Return the requests in the order of their names, and the mappings; ``classes`` by resource."""
    n_init = len(spec.get("initContainers") or ())
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    long_lived, short_lived = list[int](), list[int]()
    for i, one in enumerate(containers):
        is_short = i < n_init and one.get("restartPolicy") != "Always"
        (short_lived if is_short else long_lived).append(i)
    requests: list[Json] = []
    mappings: list[Json] = []
    for resource in sorted(classes):
        of_short: list[Json] = []
        of_long: list[Json] = []
        long_requests: list[Json | None] = [None] * len(containers)
        for i in long_lived:
            made, told = _one(i, containers[i], resource, classes[resource], [])
            long_requests[i] = made
            of_long += told
        largest: Json | None = None
        names = set()
        for i in short_lived:
            made, told = _one(i, containers[i], resource, classes[resource], long_requests[i:])
            if made is not None:
                names.add(made["name"])
                if largest is None or largest["exactly"]["count"] < made["exactly"]["count"]:
                    largest = made
            of_short += told
        if largest is not None:
            names.discard(largest["name"])
            for one in of_short:
                if one["requestName"] in names:
                    one["requestName"] = largest["name"]
            requests.append(largest)
        requests += [one for one in long_requests if one is not None]
        mappings += of_long + of_short
    return sorted(requests, key=lambda one: str(one["name"])), mappings


def _one(
    i: int, container: Json, resource: str, of_class: str, reusable: list[Json | None]
) -> tuple[Json | None, list[Json]]:
    requested = (container.get("resources") or {}).get("requests") or {}
    n = int(requested.get(resource, 0))
    mappings: list[Json] = []
    if n == 0:
        return None, mappings
    total = 0
    for one in reusable:
        if one is None:
            continue
        total += one["exactly"]["count"]
        mappings.append(_map(container, resource, one["name"]))
        if total >= n:
            return None, mappings
    name = f"container-{i}-request-{sorted(requested).index(resource)}"
    exactly = {"deviceClassName": of_class, "allocationMode": "ExactCount", "count": n - total}
    mappings.append(_map(container, resource, name))
    return {"name": name, "exactly": exactly}, mappings


def _map(container: Json, resource: str, request: str) -> Json:
    return {"containerName": container["name"], "resourceName": resource, "requestName": request}
