"""How much less a pod must request: for each resource the largest request that fits, all else unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace as changed_template
from itertools import chain
from typing import NamedTuple

from msgspec.structs import replace

from scheduler.api import names, quantities, wire
from scheduler.devices.table import INNER_RESOURCES, place_of
from scheduler.state.pods import PodRecord
from scheduler.telling.advice import wishes
from scheduler.telling.advice.asking import Asking

_MIB = 1 << 20
# Of bytes nobody writes a figure that is no whole number of these.
_IN_BYTES = frozenset({names.MEMORY, names.EPHEMERAL})
# Amounts of one resource that are tried by themselves: a pod may have a thousand containers.
_APART_MAX = 8


class Ask(NamedTuple):
    """A resource that a pod asks.

    Attributes:
        asked: in base units; of what is asked container by container, by the one that asks the most.
        unit: in which it is told how much less would do.
        of_each: nodes see what each container asks, and not what all ask together.
        at: which containers would ask less, by their places in the pod (app containers first); empty for all.
    """

    resource: str
    asked: int
    unit: int
    of_each: bool
    at: tuple[int, ...] = ()


class Less(NamedTuple):
    """A resource of which a pod would have to ask less.

    Attributes:
        most: the most that would do, tried; one unit more would not, which was tried too.
        names: the containers that would ask less, where these are not all that ask any; else empty.
        is_unlike: the containers that would ask less ask unlike amounts now.
    """

    ask: Ask
    most: int
    names: tuple[str, ...] = ()
    is_unlike: bool = False


def asks(pod: PodRecord, words: wire.Pod) -> list[Ask]:
    """All that a pod asks: what each container asks of devices comes last."""
    found = []
    family = place_of(pod.template.family)
    for resource, asked in pod.template.requests.amounts:
        if resource not in INNER_RESOURCES and resource != pod.template.family:
            found.append(Ask(resource, asked, _unit(resource, asked), of_each=False))
    of_cards = [name for name, place in INNER_RESOURCES.items() if place == family]
    for resource in (pod.template.family, *sorted(of_cards)) if family >= 0 else ():
        asked = max((_asked(one, resource) for one in _containers(words)), default=0)
        if asked > 0:
            found.append(Ask(resource, asked, 1, of_each=True))
    return found


def asks_apart(words: wire.Pod, whole: Ask) -> list[Ask]:
    """Of what containers ask in unlike amounts: each amount by itself, the largest first."""
    alike: dict[int, list[int]] = {}
    for i, container in enumerate(_containers(words)):
        if (asked := _asked(container, whole.resource)) > 0:
            alike.setdefault(asked, []).append(i)
    if not whole.of_each or len(alike) < 2:
        return []
    return [
        whole._replace(asked=asked, at=tuple(at))
        for asked, at in sorted(alike.items(), reverse=True)[:_APART_MAX]
    ]


def name_containers(words: wire.Pod, one: Less) -> Less:
    """The same with the containers that it changes, unless these are all that ask the resource."""
    if not one.ask.of_each:
        return one
    each = list(enumerate(_containers(words)))
    amounts = {i: n for i, container in each if (n := _asked(container, one.ask.resource)) > 0}
    called = {i: container.name or f"number {i + 1}" for i, container in each}
    at = [i for i, n in amounts.items() if n > one.most and (not one.ask.at or i in one.ask.at)]
    is_unlike = len({amounts[i] for i in at}) > 1
    named = () if len(at) == len(amounts) else tuple(called[i] for i in at)
    return one._replace(names=named, is_unlike=is_unlike)


def asking_less(asking: Asking, words: wire.Pod, amounts: Mapping[Ask, int]) -> PodRecord:
    """The pod with other amounts of these."""
    pod = wishes.copy(words)
    in_all: dict[str, int] = {}
    for ask, amount in amounts.items():
        if ask.of_each:
            _cap(pod, ask, amount)
        else:
            # It does not matter which container asks it.
            in_all[ask.resource] = amount
    record = asking.cluster.read_as_if(pod)
    if not in_all:
        return record
    requests = record.template.requests
    kept = tuple(sorted((dict(requests.amounts) | in_all).items()))
    template = changed_template(record.template, requests=requests._replace(amounts=kept))
    return replace(record, template=template)


def largest(ask: Ask, fits: Callable[[int], bool]) -> Less | None:
    """The most of a resource that fits, below what is asked; None when not even one unit does."""
    most = most_of(lambda units: fits(units * ask.unit), -(-ask.asked // ask.unit))
    return Less(ask, most * ask.unit) if most else None


def most_of(fits: Callable[[int], bool], too_many: int) -> int:
    """The most of 1.. that fits, of which one more does not; 0 when 1 does not. O(log ``too_many``) questions."""
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


def _unit(resource: str, asked: int) -> int:
    in_bytes = resource in _IN_BYTES or resource.startswith("hugepages-")
    return _MIB if in_bytes and asked > _MIB else 1


def _cap(pod: wire.Pod, ask: Ask, amount: int) -> None:
    for i, container in enumerate(_containers(pod)):
        if (not ask.at or i in ask.at) and _asked(container, ask.resource) > amount:
            for section in _sections(container):
                if ask.resource in section:
                    section[ask.resource] = amount


def _containers(pod: wire.Pod) -> Iterator[wire.Container]:
    return chain(pod.spec.containers, pod.spec.init_containers or ())


def _sections(container: wire.Container) -> Iterator[wire.Quantities]:
    found = container.resources
    return (one for one in ((found.limits, found.requests) if found else ()) if one is not None)


def _asked(container: wire.Container, resource: str) -> int:
    """What a container asks; 0 for what cannot be read, of which the pod is told elsewhere."""
    for section in _sections(container):
        if resource in section:
            try:
                return quantities.value(section[resource])
            except quantities.BadQuantity:
                return 0
    return 0
