"""A pod's resource requests, summed as kube-scheduler sums them.

Source: component-helpers ``resource.PodRequests`` of Kubernetes 1.37. Containers add up; a
restartable init container (sidecar) adds to them; every other init container runs on top of the
sidecars before it, and the peak of those counts; pod-level resources replace the sum for cpu,
memory and hugepages; overhead comes on top.

A pod with a node may be resized in place. Then three such sums are made: of what its spec wants, of what the
kubelet has granted, and of what is in force. The largest sum of each resource counts; the wanted sum does not
count if the node can never grant it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from scheduler.api import names, quantities, wire
from scheduler.errors import BadInput

# kube-scheduler's defaults for containers without requests, used in scores and never in fit.
DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024
# Far more than any node has, and small enough that sums over a node's pods stay within int64.
AMOUNT_MAX = 2**53
_THOUSAND = 1000
_STATUS, _CONTAINERS = "status.resources", "status.containerStatuses"


class Requests(NamedTuple):
    """A pod's requests in base units: milli-CPU for cpu, else bytes or counts.

    Attributes:
        amounts: (resource, amount) sorted by name, without zeros and without ``pods``.
        nonzero_cpu: milli-CPU, with kube-scheduler's default for containers that ask none.
        nonzero_memory: bytes, likewise.
        of_containers: the requests without pod-level resources; None for a pod that has no pod-level resources.
    """

    amounts: tuple[tuple[str, int], ...]
    nonzero_cpu: int
    nonzero_memory: int
    of_containers: Requests | None = None


def read_amount(resource: str, quantity: str | float, field: str) -> int:
    """Read a quantity in the base unit of its resource, at most ``AMOUNT_MAX``.

    Raises:
        BadInput: this is not a quantity, or it is negative; the error names ``field``.
    """
    try:
        if resource == names.CPU:
            return min(AMOUNT_MAX, quantities.read_milli(quantity))
        return min(AMOUNT_MAX, quantities.read_value(quantity))
    except quantities.BadQuantity as error:
        raise BadInput(f"{field}[{resource}]", str(error)) from error


def read_requests(pod: wire.Pod) -> Requests:
    """Read the requests of a pod; for a pod with a node also what in-place resizing gave it.

    Raises:
        BadInput: a quantity is malformed.
    """
    plain = _sum_pod(pod, {})
    defaults = {names.CPU: DEFAULT_MILLI_CPU, names.MEMORY: DEFAULT_MEMORY * _THOUSAND}
    of_containers = None
    if _read_pod_level(pod.spec):
        alone = msgspec.structs.replace(pod.spec, resources=None)
        of_containers = read_requests(msgspec.structs.replace(pod, spec=alone))
        # With pod-level requests a container need not ask anything: the default counts only if neither the pod nor
        # a container asks the resource.
        defaults = {name: n for name, n in defaults.items() if name not in plain}
    all_say = not _is_resized(pod) and all(
        _has_all(container, defaults) for container in _list_containers(pod.spec)
    )
    padded = plain if all_say else _sum_pod(pod, defaults)
    return Requests(
        tuple(
            sorted(
                (name, _round_to_base_unit(name, n))
                for name, n in plain.items()
                if n and name != names.PODS
            )
        ),
        _round_to_base_unit(names.CPU, padded.get(names.CPU, 0)),
        _round_to_base_unit(names.MEMORY, padded.get(names.MEMORY, 0)),
        of_containers,
    )


def read_quota_amounts(spec: wire.PodSpec) -> tuple[tuple[str, int], ...]:
    """Read what a pod of a template counts against quotas: (resource, amount) by name, with those of 0.

    Limits count where a container has no request: nobody has filled the requests of a template in.

    Raises:
        BadInput: a quantity is malformed.
    """
    filled = msgspec.structs.replace(fill_requests(spec), node_name=None)
    total = _sum_pod(wire.Pod(spec=filled), {})
    return tuple(
        sorted(
            (name, min(quantities.INT64_MAX, n if name == names.CPU else -(-n // _THOUSAND)))
            for name, n in total.items()
        )
    )


def fill_requests(spec: wire.PodSpec) -> wire.PodSpec:
    """Return a template's spec with limits as requests where there are none, as the API server fills them into pods."""
    return msgspec.structs.replace(
        spec,
        containers=[_fill_requests(one) for one in spec.containers],
        init_containers=[_fill_requests(one) for one in spec.init_containers or ()] or None,
    )


def _fill_requests(container: wire.Container) -> wire.Container:
    resources = container.resources
    if resources is None or not resources.limits:
        return container
    requests = resources.limits | (resources.requests or {})
    return msgspec.structs.replace(
        container, resources=msgspec.structs.replace(resources, requests=requests)
    )


def read_resizing(pod: wire.Pod) -> tuple[object, ...] | None:
    """Read what counts of the status of a pod; equal if it means the same, None if nothing counts."""
    if not _is_resized(pod):
        return None
    status = pod.status
    of_containers = [
        (one.name, one.allocated_resources, one.resources and one.resources.requests)
        for one in _index_statuses(pod).values()
    ]
    of_pod = status.allocated_resources, status.resources and status.resources.requests
    return of_containers, of_pod, _is_infeasible(pod)


def _is_resized(pod: wire.Pod) -> bool:
    """Whether the status counts beside the spec. For a pod without a node it never does, whatever it says."""
    return bool(pod.spec.node_name) and (
        _is_infeasible(pod)
        or pod.status.resources is not None
        or any(
            one.allocated_resources is not None or one.resources
            for one in _index_statuses(pod).values()
        )
    )


def _is_infeasible(pod: wire.Pod) -> bool:
    """Whether the kubelet has said that the node can never grant the resize."""
    pending = (one for one in pod.status.conditions or () if one.type == "PodResizePending")
    return next((one.reason == "Infeasible" for one in pending), False)


def _index_statuses(pod: wire.Pod) -> dict[str, wire.ContainerStatus]:
    """Index the statuses by container; of several with one name the first counts."""
    found: dict[str, wire.ContainerStatus] = {}
    for statuses in (pod.status.container_statuses, pod.status.init_container_statuses):
        for one in statuses or ():
            found.setdefault(one.name, one)
    return found


def _list_containers(spec: wire.PodSpec) -> list[wire.Container]:
    return [*spec.containers, *(spec.init_containers or ())]


def _has_all(container: wire.Container, wanted: dict[str, int]) -> bool:
    """Whether a container has a request for each of these resources."""
    asked = (container.resources and container.resources.requests) or {}
    return wanted.keys() <= asked.keys()


def _round_to_base_unit(resource: str, thousandths: int) -> int:
    """Round a total of thousandths up to the base unit of its resource."""
    amount = thousandths if resource == names.CPU else -(-thousandths // _THOUSAND)
    return min(AMOUNT_MAX, amount)


def _sum_pod(pod: wire.Pod, defaults: dict[str, int]) -> dict[str, int]:
    """Sum up the thousandths of each resource of a pod."""
    spec = pod.spec
    total = _sum_containers(spec, _read_wanted, defaults)
    level = _read_pod_level(spec)
    if _is_resized(pod):
        total = _find_largest(pod, total, defaults)
        level = level and _read_level_in_force(pod, level)
    total.update(level)
    _add(total, _parse(spec.overhead or {}, "spec.overhead"))
    return total


def _find_largest(
    pod: wire.Pod, wanted: dict[str, int], defaults: dict[str, int]
) -> dict[str, int]:
    """Find the most of each resource: of what all containers want, were granted, and have in force."""
    status = pod.status
    used = status.resources.requests if status.resources else None
    if status.allocated_resources is not None and used is not None:
        # The kubelet has summed these up over all containers already.
        totals = [_parse(status.allocated_resources, _STATUS), _parse(used, _STATUS)]
    else:
        by_name, infeasible = _index_statuses(pod), _is_infeasible(pod)

        def read_granted(container: wire.Container, field: str) -> dict[str, int]:
            one = by_name.get(container.name)
            if one is not None and one.allocated_resources is not None:
                return _parse(one.allocated_resources, _CONTAINERS)
            return {} if infeasible else _read_wanted(container, field)

        def read_in_force(container: wire.Container, field: str) -> dict[str, int]:
            one = by_name.get(container.name)
            if one is not None and one.resources and one.resources.requests is not None:
                return _parse(one.resources.requests, _CONTAINERS)
            return read_granted(container, field)

        totals = [
            _sum_containers(pod.spec, read_granted, defaults),
            _sum_containers(pod.spec, read_in_force, defaults),
        ]
    largest = {} if _is_infeasible(pod) else dict(wanted)
    for one in totals:
        _raise_to(largest, one)
    return largest


def _read_level_in_force(pod: wire.Pod, level: dict[str, int]) -> dict[str, int]:
    status = pod.status
    if status.resources is None:
        return level
    found = {} if _is_infeasible(pod) else dict(level)
    for one in (status.resources.requests, status.allocated_resources):
        _raise_to(found, _parse(_pick_pod_level(one), _STATUS))
    return found


def _sum_containers(
    spec: wire.PodSpec,
    of: Callable[[wire.Container, str], dict[str, int]],
    defaults: dict[str, int],
) -> dict[str, int]:
    """Sum up containers, where ``of`` reads each container; ``defaults`` count for what it does not have."""
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


def _read_wanted(container: wire.Container, field: str) -> dict[str, int]:
    requests = (container.resources and container.resources.requests) or {}
    try:
        return _parse(requests, f"{field}.requests")
    except BadInput:
        _blame_limits(container, requests, f"{field}.limits")
        raise


def _blame_limits(container: wire.Container, requests: wire.Quantities, field: str) -> None:
    """Blame the limits for a mistake in requests that are equal to them.

    The API server copies limits into requests that are not written. If both are equal, it is certain only that a
    person wrote the limits.

    Raises:
        BadInput: an equal limit is malformed.
    """
    limits = (container.resources and container.resources.limits) or {}
    copied = {name: limit for name, limit in limits.items() if requests.get(name) == limit}
    _parse(copied, field)


def _parse(requests: wire.Quantities, field: str) -> dict[str, int]:
    """Thousandths of each resource.

    Raises:
        BadInput: a quantity is malformed.
    """
    found = {}
    for name, quantity in requests.items():
        try:
            found[name] = quantities.read_milli(quantity)
        except quantities.BadQuantity as error:
            raise BadInput(f"{field}[{name}]", str(error)) from error
    return found


def _read_pod_level(spec: wire.PodSpec) -> dict[str, int]:
    requests = spec.resources.requests if spec.resources else None
    return _parse(_pick_pod_level(requests), "spec.resources.requests")


def _pick_pod_level(requests: wire.Quantities | None) -> wire.Quantities:
    """Pick the pod-level resources that count."""
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


def list_host_ports(spec: wire.PodSpec) -> tuple[tuple[str, int, str], ...]:
    """List the host ports of containers and sidecars as sorted (protocol, port, ip), with ``0.0.0.0`` for any."""
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
