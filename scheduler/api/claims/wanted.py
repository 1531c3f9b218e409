"""What the containers of a pod request of extended resources, container by container.

For most purposes the sum over the containers is enough, see ``api/pods/requests.py``. Devices of classes are allocated for each
container by itself.
"""

from __future__ import annotations

from typing import NamedTuple

from scheduler.api import quantities, wire

# The name of a class behind it is an extended resource, too, whatever the class says.
CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
# More than any claim can have.
_MOST, _THOUSAND = 2**31, 1000


class Wanted(NamedTuple):
    """What one container requests of one extended resource.

    Attributes:
        resource: its name.
        at: the place of the container, init containers first.
        container: its name.
        place: the place of the resource among all resources that the container requests, by name.
        n: how many.
        is_short: it is an init container that ends before later containers begin.
    """

    resource: str
    at: int
    container: str
    place: int
    n: int
    is_short: bool


def is_extended(resource: str) -> bool:
    """Whether a resource is extended: its name has a domain, which is not one of Kubernetes' own."""
    return (
        "/" in resource
        and "kubernetes.io/" not in resource
        and not resource.startswith("requests.")
    )


def may_be_backed(resource: str) -> bool:
    """Whether a class may stand behind a resource."""
    return is_extended(resource) or resource.startswith(CLASS_PREFIX)


def read_wanted(spec: wire.PodSpec) -> tuple[Wanted, ...]:
    """Read what containers request of extended resources, by resource and container; none for most pods.

    An amount that is no whole number counts nothing here, as in kube-scheduler.
    """
    found: list[Wanted] = []
    n_init = len(spec.init_containers or ())
    for at, container in enumerate([*(spec.init_containers or ()), *spec.containers]):
        requests = (container.resources and container.resources.requests) or {}
        if not any(map(may_be_backed, requests)):
            continue
        is_short = at < n_init and container.restart_policy != "Always"
        for place, resource in enumerate(sorted(requests)):
            n = _read_whole(requests[resource]) if may_be_backed(resource) else 0
            if n > 0:
                found.append(Wanted(resource, at, container.name, place, n, is_short))
    return tuple(sorted(found))


def _read_whole(quantity: str | float) -> int:
    try:
        whole, rest = divmod(quantities.read_milli(quantity), _THOUSAND)
    except quantities.BadQuantity:
        # The requests of the pod cannot be read either, which is said where they are.
        return 0
    return 0 if rest else min(whole, _MOST)
