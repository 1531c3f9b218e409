"""Smaller requests for a pod: for each resource the largest request that fits, while all else stays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace as changed_template
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from scheduler.api import names, quantities, wire
from scheduler.devices.table import Devices
from scheduler.state.pods import PodRecord
from scheduler.telling.advice import wishes
from scheduler.telling.advice.asking import Asking

_MIB = 1 << 20
# Resources in bytes, whose requests are reduced in whole MiB, because nobody writes other figures.
_IN_BYTES = frozenset({names.MEMORY, names.EPHEMERAL})
# The most amounts of one resource that are reduced by themselves: a pod may have a thousand containers.
_APART_MAX = 8


class Ask(NamedTuple):
    """A resource that a pod requests.

    Attributes:
        asked: the requested amount in base units; if ``of_each``, the largest request of a container.
        unit: the step of smaller requests, in base units.
        of_each: whether nodes compare the request of each container, and not the sum of all containers.
        at: the containers that would request less, by their places in the pod (app containers first); empty for all.
    """

    resource: str
    asked: int
    unit: int
    of_each: bool
    at: tuple[int, ...] = ()


class Less(NamedTuple):
    """A resource of which a pod would have to request less.

    Attributes:
        most: the largest request that fits; one unit more does not fit. Both were tried.
        names: the containers that would request less; empty if these are all containers that request the resource.
        is_unlike: whether the containers that would request less request different amounts now.
    """

    ask: Ask
    most: int
    names: tuple[str, ...] = ()
    is_unlike: bool = False


def list_asks(pod: PodRecord, words: wire.Pod, devices: Devices) -> list[Ask]:
    """List the resources that a pod requests; devices, which each container requests for itself, come last."""
    found = []
    own = pod.template.family
    for resource, asked in pod.template.requests.amounts:
        if resource not in devices.inner_resources and resource != own:
            found.append(Ask(resource, asked, _choose_unit(resource, asked), of_each=False))
    of_cards = [name for name, family in devices.inner_resources.items() if family == own]
    for resource in (own, *sorted(of_cards)) if devices.is_family(own) else ():
        asked = max((_read_request(one, resource) for one in _list_containers(words)), default=0)
        if asked > 0:
            found.append(Ask(resource, asked, 1, of_each=True))
    return found


def list_asks_apart(words: wire.Pod, whole: Ask) -> list[Ask]:
    """List each amount of a resource by itself, the largest first, if containers request different amounts."""
    alike: dict[int, list[int]] = {}
    for i, container in enumerate(_list_containers(words)):
        if (asked := _read_request(container, whole.resource)) > 0:
            alike.setdefault(asked, []).append(i)
    if not whole.of_each or len(alike) < 2:
        return []
    return [
        whole._replace(asked=asked, at=tuple(at))
        for asked, at in sorted(alike.items(), reverse=True)[:_APART_MAX]
    ]


def name_containers(words: wire.Pod, one: Less) -> Less:
    """Add the names of the containers that would request less, unless all containers with the resource would."""
    if not one.ask.of_each:
        return one
    each = list(enumerate(_list_containers(words)))
    amounts = {
        i: n for i, container in each if (n := _read_request(container, one.ask.resource)) > 0
    }
    called = {i: container.name or f"number {i + 1}" for i, container in each}
    at = [i for i, n in amounts.items() if n > one.most and (not one.ask.at or i in one.ask.at)]
    is_unlike = len({amounts[i] for i in at}) > 1
    named = () if len(at) == len(amounts) else tuple(called[i] for i in at)
    return one._replace(names=named, is_unlike=is_unlike)


def request_less(asking: Asking, words: wire.Pod, amounts: Mapping[Ask, int]) -> PodRecord:
    """Make the pod with smaller requests."""
    pod = wishes.copy_pod(words)
    in_all: dict[str, int] = {}
    for ask, amount in amounts.items():
        if ask.of_each:
            _cap_requests(pod, ask, amount)
        else:
            # It does not matter which container requests it.
            in_all[ask.resource] = amount
    record = asking.cluster.read_as_if(pod)
    if not in_all:
        return record
    requests = record.template.requests
    kept = tuple(sorted((dict(requests.amounts) | in_all).items()))
    template = changed_template(record.template, requests=requests._replace(amounts=kept))
    return replace(record, template=template)


def find_largest(ask: Ask, fits: Callable[[int], bool]) -> Less | None:
    """Find the largest smaller request that fits; None if not even one unit fits."""
    most = find_most(lambda units: fits(units * ask.unit), -(-ask.asked // ask.unit))
    return Less(ask, most * ask.unit) if most else None


def find_most(fits: Callable[[int], bool], too_many: int) -> int:
    """Find the largest number below ``too_many`` that fits, by bisection from 1; 0 if 1 does not fit.

    Asks O(log ``too_many``) times.
    """
    if too_many <= 1 or not fits(1):
        return 0
    low, high = 1, too_many
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


def _choose_unit(resource: str, asked: int) -> int:
    in_bytes = resource in _IN_BYTES or resource.startswith("hugepages-")
    return _MIB if in_bytes and asked > _MIB else 1


def _cap_requests(pod: wire.Pod, ask: Ask, amount: int) -> None:
    for i, container in enumerate(_list_containers(pod)):
        if (not ask.at or i in ask.at) and _read_request(container, ask.resource) > amount:
            for section in _list_sections(container):
                if ask.resource in section:
                    section[ask.resource] = amount


def _list_containers(pod: wire.Pod) -> Iterator[wire.Container]:
    return chain(pod.spec.containers, pod.spec.init_containers or ())


def _list_sections(container: wire.Container) -> Iterator[wire.Quantities]:
    found = container.resources
    return (one for one in ((found.limits, found.requests) if found else ()) if one is not None)


def _read_request(container: wire.Container, resource: str) -> int:
    """Read what a container requests; 0 for a quantity that cannot be read, which is reported elsewhere."""
    for section in _list_sections(container):
        if resource in section:
            try:
                return quantities.read_value(section[resource])
            except quantities.BadQuantity:
                return 0
    return 0
