"""A pod's resource requests, summed as kube-scheduler sums them.

Source: component-helpers ``resource.PodRequests`` of Kubernetes 1.37. Containers add up; a
restartable init container (sidecar) adds to them; every other init container runs on top of the
sidecars before it, and the peak of those counts; pod-level resources replace the sum for cpu,
memory and hugepages; overhead comes on top.

A pod with a node may be resized in place. Then three such sums are made, of what its spec wants, of what the
kubelet has granted and of what is in force, and of every resource the largest counts; what is wanted does
not where the node can never grant it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from scheduler.api import names, quantities, wire
from scheduler.errors import BadInput

# kube-scheduler's stand-ins for containers that ask nothing, used in scores and never in fit.
DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024
# Far beyond any node, and small enough that sums over a node's pods stay within int64.
AMOUNT_MAX = 2**53
_THOUSAND = 1000
_STATUS, _CONTAINERS = "status.resources", "status.containerStatuses"


class Requests(NamedTuple):
    """A pod's requests in base units: milli-CPU for cpu, else bytes or counts.

    Attributes:
        amounts: (resource, amount) sorted by name, without zeros and without ``pods``.
        nonzero_cpu: milli-CPU with kube-scheduler's default for containers that ask none.
        nonzero_memory: bytes, likewise.
        of_containers: what they are without pod-level resources; None for a pod that has none.
    """

    amounts: tuple[tuple[str, int], ...]
    nonzero_cpu: int
    nonzero_memory: int
    of_containers: Requests | None = None


def amount(resource: str, quantity: str | float, field: str) -> int:
    """A quantity in the base unit of its resource, at most ``AMOUNT_MAX``.

    Raises:
        BadInput: not a quantity, or negative; names ``field``.
    """
    try:
        if resource == names.CPU:
            return min(AMOUNT_MAX, quantities.milli(quantity))
        return min(AMOUNT_MAX, quantities.value(quantity))
    except quantities.BadQuantity as error:
        raise BadInput(f"{field}[{resource}]", str(error)) from error


def of_pod(pod: wire.Pod) -> Requests:
    """The requests of a pod; of one with a node also what in-place resizing gave it.

    Raises:
        BadInput: a quantity is malformed.
    """
    plain = _total(pod, {})
    defaults = {names.CPU: DEFAULT_MILLI_CPU, names.MEMORY: DEFAULT_MEMORY * _THOUSAND}
    of_containers = None
    if _pod_level(pod.spec):
        alone = msgspec.structs.replace(pod.spec, resources=None)
        of_containers = of_pod(msgspec.structs.replace(pod, spec=alone))
        # With pod-level requests a container need not ask anything: a default stands in only for what neither
        # asks.
        defaults = {name: n for name, n in defaults.items() if name not in plain}
    all_say = not _is_resized(pod) and all(
        _says(container, defaults) for container in _containers(pod.spec)
    )
    padded = plain if all_say else _total(pod, defaults)
    return Requests(
        tuple(
            sorted(
                (name, _in_base_units(name, n))
                for name, n in plain.items()
                if n and name != names.PODS
            )
        ),
        _in_base_units(names.CPU, padded.get(names.CPU, 0)),
        _in_base_units(names.MEMORY, padded.get(names.MEMORY, 0)),
        of_containers,
    )


def resizing(pod: wire.Pod) -> tuple[object, ...] | None:
    """All that is read of the status of a pod, equal for pods of which it means the same; None for nothing."""
    if not _is_resized(pod):
        return None
    status = pod.status
    of_containers = [
        (one.name, one.allocated_resources, one.resources and one.resources.requests)
        for one in _statuses(pod).values()
    ]
    of_pod = status.allocated_resources, status.resources and status.resources.requests
    return of_containers, of_pod, _is_infeasible(pod)


def _is_resized(pod: wire.Pod) -> bool:
    """Whether anything but the spec counts. Of a pod without a node nothing does, whatever its status says."""
    return bool(pod.spec.node_name) and (
        _is_infeasible(pod)
        or pod.status.resources is not None
        or any(
            one.allocated_resources is not None or one.resources for one in _statuses(pod).values()
        )
    )


def _is_infeasible(pod: wire.Pod) -> bool:
    """Whether the kubelet has said that the node can never grant the resize."""
    pending = (one for one in pod.status.conditions or () if one.type == "PodResizePending")
    return next((one.reason == "Infeasible" for one in pending), False)


def _statuses(pod: wire.Pod) -> dict[str, wire.ContainerStatus]:
    """By container; the first of several of one name."""
    found: dict[str, wire.ContainerStatus] = {}
    for statuses in (pod.status.container_statuses, pod.status.init_container_statuses):
        for one in statuses or ():
            found.setdefault(one.name, one)
    return found


def _containers(spec: wire.PodSpec) -> list[wire.Container]:
    return [*spec.containers, *(spec.init_containers or ())]


def _says(container: wire.Container, wanted: dict[str, int]) -> bool:
    """Whether a container asks some of all that is wanted."""
    asked = (container.resources and container.resources.requests) or {}
    return wanted.keys() <= asked.keys()


def _in_base_units(resource: str, thousandths: int) -> int:
    """Rounded up, once all is added."""
    amount = thousandths if resource == names.CPU else -(-thousandths // _THOUSAND)
    return min(AMOUNT_MAX, amount)


def _total(pod: wire.Pod, defaults: dict[str, int]) -> dict[str, int]:
    """Thousandths of each resource."""
    spec = pod.spec
    total = _sum(spec, _wanted, defaults)
    level = _pod_level(spec)
    if _is_resized(pod):
        total = _largest(pod, total, defaults)
        level = level and _pod_level_in_force(pod, level)
    total.update(level)
    _add(total, _parsed(spec.overhead or {}, "spec.overhead"))
    return total


def _largest(pod: wire.Pod, wanted: dict[str, int], defaults: dict[str, int]) -> dict[str, int]:
    """Of what containers want, were granted and use together, the most of each resource."""
    status = pod.status
    used = status.resources.requests if status.resources else None
    if status.allocated_resources is not None and used is not None:
        # Sums over all containers already, as the kubelet has made them.
        totals = [_parsed(status.allocated_resources, _STATUS), _parsed(used, _STATUS)]
    else:
        by_name, infeasible = _statuses(pod), _is_infeasible(pod)

        def granted(container: wire.Container, field: str) -> dict[str, int]:
            one = by_name.get(container.name)
            if one is not None and one.allocated_resources is not None:
                return _parsed(one.allocated_resources, _CONTAINERS)
            return {} if infeasible else _wanted(container, field)

        def in_force(container: wire.Container, field: str) -> dict[str, int]:
            one = by_name.get(container.name)
            if one is not None and one.resources and one.resources.requests is not None:
                return _parsed(one.resources.requests, _CONTAINERS)
            return granted(container, field)

        totals = [_sum(pod.spec, granted, defaults), _sum(pod.spec, in_force, defaults)]
    largest = {} if _is_infeasible(pod) else dict(wanted)
    for one in totals:
        _raise_to(largest, one)
    return largest


def _pod_level_in_force(pod: wire.Pod, level: dict[str, int]) -> dict[str, int]:
    status = pod.status
    if status.resources is None:
        return level
    found = {} if _is_infeasible(pod) else dict(level)
    for one in (status.resources.requests, status.allocated_resources):
        _raise_to(found, _parsed(_of_pod_level(one), _STATUS))
    return found


def _sum(
    spec: wire.PodSpec,
    of: Callable[[wire.Container, str], dict[str, int]],
    defaults: dict[str, int],
) -> dict[str, int]:
    """What containers add up to, by what each is said to have; ``defaults`` stand for what is not said."""
    total: dict[str, int] = {}
    for i, container in enumerate(spec.containers):
        _add(total, defaults | of(container, f"spec.containers[{i}].resources"))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for i, container in enumerate(spec.init_containers or ()):
        asked = defaults | of(container, f"spec.initContainers[{i}].resources")
        if container.restart_policy == "Always":
            _add(total, asked)
            _add(sidecars, asked)
            _raise_to(peak, sidecars)
        else:
            above = dict(sidecars)
            _add(above, asked)
            _raise_to(peak, above)
    _raise_to(total, peak)
    return total


def _wanted(container: wire.Container, field: str) -> dict[str, int]:
    requests = (container.resources and container.resources.requests) or {}
    try:
        return _parsed(requests, f"{field}.requests")
    except BadInput:
        _blame_limits(container, requests, f"{field}.limits")
        raise


def _blame_limits(container: wire.Container, requests: wire.Quantities, field: str) -> None:
    """Name a mistake as one of the limits where requests are like them.

    The API server copies limits into requests that nobody wrote: of two that are the same, limits are what a
    person has written for certain.

    Raises:
        BadInput: such a limit is malformed.
    """
    limits = (container.resources and container.resources.limits) or {}
    copied = {name: limit for name, limit in limits.items() if requests.get(name) == limit}
    _parsed(copied, field)


def _parsed(requests: wire.Quantities, field: str) -> dict[str, int]:
    """Thousandths of each resource.

    Raises:
        BadInput: a quantity is malformed.
    """
    found = {}
    for name, quantity in requests.items():
        try:
            found[name] = quantities.milli(quantity)
        except quantities.BadQuantity as error:
            raise BadInput(f"{field}[{name}]", str(error)) from error
    return found


def _pod_level(spec: wire.PodSpec) -> dict[str, int]:
    requests = spec.resources.requests if spec.resources else None
    return _parsed(_of_pod_level(requests), "spec.resources.requests")


def _of_pod_level(requests: wire.Quantities | None) -> wire.Quantities:
    """What of pod-level resources counts."""
    return {
        name: quantity
        for name, quantity in (requests or {}).items()
        if name in {names.CPU, names.MEMORY} or name.startswith("hugepages-")
    }


def _add(into: dict[str, int], other: dict[str, int]) -> None:
    for name, n in other.items():
        into[name] = into.get(name, 0) + n


def _raise_to(into: dict[str, int], other: dict[str, int]) -> None:
    for name, n in other.items():
        into[name] = max(into.get(name, 0), n)


def host_ports(spec: wire.PodSpec) -> tuple[tuple[str, int, str], ...]:
    """Host ports of containers and sidecars as sorted (protocol, port, ip), ``0.0.0.0`` for any."""
    sidecars: Iterable[wire.Container] = (
        c for c in spec.init_containers or () if c.restart_policy == "Always"
    )
    return tuple(
        sorted(
            {
                (port.protocol or "TCP", port.host_port, port.host_ip or "0.0.0.0")  # noqa: S104
                for container in [*spec.containers, *sidecars]
                for port in container.ports or ()
                if port.host_port > 0
            }
        )
    )
