"""What a pod asks for, summed as kube-scheduler sums it.

Source: component-helpers ``resource.PodRequests`` of Kubernetes 1.36. Containers add up; a
restartable init container (sidecar) adds to them; every other init container runs on top of the
sidecars before it, and the peak of those counts; pod-level resources replace the sum for cpu,
memory and hugepages; overhead comes on top.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from scheduler.api import names, quantities, wire
from scheduler.errors import BadInput

# kube-scheduler's stand-ins for containers that ask nothing, used in scores and never in fit.
DEFAULT_MILLI_CPU = 100
DEFAULT_MEMORY = 200 * 1024 * 1024
# Far beyond any node, and small enough that sums over a node's pods stay within int64.
AMOUNT_MAX = 2**53


class Requests(NamedTuple):
    """A pod's requests in base units: milli-CPU for cpu, else bytes or counts.

    Attributes:
        amounts: (resource, amount) sorted by name, without zeros and without ``pods``.
        nonzero_cpu: milli-CPU with kube-scheduler's default for containers that ask none.
        nonzero_memory: bytes, likewise.
    """

    amounts: tuple[tuple[str, int], ...]
    nonzero_cpu: int
    nonzero_memory: int


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
    """The requests of a pod; for a running pod also what in-place resizing gave it.

    Raises:
        BadInput: a quantity is malformed.
    """
    actual = {
        status.name: status
        for status in [
            *(pod.status.container_statuses or ()),
            *(pod.status.init_container_statuses or ()),
        ]
        if status.allocated_resources or status.resources
    }
    infeasible = is_resize_infeasible(pod)
    plain = _total(pod.spec, actual, infeasible, {})
    defaults = {names.CPU: DEFAULT_MILLI_CPU, names.MEMORY: DEFAULT_MEMORY}
    if _pod_level(pod.spec):
        # With pod-level requests a container need not ask anything: a default stands in only for what neither
        # asks.
        defaults = {name: n for name, n in defaults.items() if name not in plain}
    all_say = not actual and all(_says(container, defaults) for container in _containers(pod.spec))
    padded = plain if all_say else _total(pod.spec, actual, infeasible, defaults)
    return Requests(
        tuple(sorted((name, n) for name, n in plain.items() if n and name != names.PODS)),
        padded.get(names.CPU, 0),
        padded.get(names.MEMORY, 0),
    )


def is_resize_infeasible(pod: wire.Pod) -> bool:
    """Whether the kubelet has said that the node can never grant the resize."""
    return pod.status.resize == "Infeasible" or any(
        condition.type == "PodResizePending" and condition.reason == "Infeasible"
        for condition in pod.status.conditions or ()
    )


def _containers(spec: wire.PodSpec) -> list[wire.Container]:
    return [*spec.containers, *(spec.init_containers or ())]


def _says(container: wire.Container, wanted: dict[str, int]) -> bool:
    """Whether a container asks some of all that is wanted."""
    asked = (container.resources and container.resources.requests) or {}
    return wanted.keys() <= asked.keys()


def _total(
    spec: wire.PodSpec,
    actual: dict[str, wire.ContainerStatus],
    infeasible: bool,
    defaults: dict[str, int],
) -> dict[str, int]:
    pod_level = _pod_level(spec)
    total: dict[str, int] = {}
    for i, container in enumerate(spec.containers):
        field = f"spec.containers[{i}].resources"
        _add(total, defaults | _container(container, actual, infeasible, field))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for i, container in enumerate(spec.init_containers or ()):
        field = f"spec.initContainers[{i}].resources"
        asked = defaults | _container(container, actual, infeasible, field)
        if container.restart_policy == "Always":
            _add(total, asked)
            _add(sidecars, asked)
            _raise_to(peak, sidecars)
        else:
            above = dict(sidecars)
            _add(above, asked)
            _raise_to(peak, above)
    _raise_to(total, peak)
    total.update(pod_level)
    for name, quantity in (spec.overhead or {}).items():
        total[name] = total.get(name, 0) + amount(name, quantity, "spec.overhead")
    return {name: min(n, AMOUNT_MAX) for name, n in total.items()}


def _container(
    container: wire.Container,
    actual: dict[str, wire.ContainerStatus],
    infeasible: bool,
    field: str,
) -> dict[str, int]:
    requests = (container.resources and container.resources.requests) or {}
    try:
        asked = _parsed(requests, f"{field}.requests")
    except BadInput:
        _blame_limits(container, requests, f"{field}.limits")
        raise
    status = actual.get(container.name)
    if status is None:
        return asked
    # In-place resize: the larger of what is wanted, granted and in use counts; a wish that the
    # node can never grant does not.
    granted = _parsed(status.allocated_resources or {}, "status.containerStatuses")
    used = _parsed(
        (status.resources and status.resources.requests) or {}, "status.containerStatuses"
    )
    if infeasible:
        asked = {}
    _raise_to(asked, granted)
    _raise_to(asked, used)
    return asked


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
    return {name: amount(name, quantity, field) for name, quantity in requests.items()}


def _pod_level(spec: wire.PodSpec) -> dict[str, int]:
    requests = (spec.resources and spec.resources.requests) or {}
    return {
        name: amount(name, quantity, "spec.resources.requests")
        for name, quantity in requests.items()
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
