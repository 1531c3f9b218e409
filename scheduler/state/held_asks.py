"""What a pod that runs asks of devices, after the configuration of the drivers has changed.

A pod keeps what it holds, and it was placed by the configuration of that time: other resources may have stood for the
devices, and a unit of memory may have meant another amount. So a pod that was known then keeps what it asked. Of a pod that
comes later, what it asks is read by the latest configuration under which it may hold what its claim says.

A process that starts anew knows no earlier configuration. Where nobody but schedulers can write claims, it need not know any:
a pod asks at least what its claim says, see ``raise_asks``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from scheduler.api import wire
from scheduler.api.cards import CardUse, Slots
from scheduler.api.pods.gpus import MEMORY_MAX_MIB, ContainerAsk, GpuAsk
from scheduler.devices.contract import CardDriver
from scheduler.devices.table import Devices
from scheduler.errors import BadInput
from scheduler.state.told_cards import limit_claim

Asks = tuple[GpuAsk, ...]


def join_asks(devices: Devices, held: Asks, present: Asks) -> Asks:
    """Add to what a pod has asked until now what it asks of other families by the present configuration."""
    families = {ask.family for ask in held}
    drivers = {one for family in families for one in _list_drivers(devices, family)}
    more = (
        ask
        for ask in present
        if ask.family not in families and devices.find_earlier(ask.family) not in drivers
    )
    return (*held, *more)


def find_asks(devices: Devices, pod: wire.Pod, present: Asks) -> Asks:
    """Find what a pod on a node asks; ``present`` is what it asks by the present configuration."""
    named = _list_named(pod)
    if named.isdisjoint(devices.earlier_names):
        return present
    found = {ask.family: ask for ask in present}
    for driver in devices.cards_in_use:
        if not driver.resources:
            continue
        family = driver.resources[0]
        ask = _find_of_driver(devices, pod, driver, found.get(family))
        if ask is None or ask is found.get(family):
            continue
        if ask.family != family:
            found.pop(ask.family, None)
        found[family] = ask._replace(family=family)
    return tuple(found.values())


def raise_asks(asks: Asks, claims: Iterable[tuple[str, Slots]]) -> Asks:
    """Raise the memory and the cores that a pod asks of each card to what its claims say, by family.

    The number of cards stays, and so does what is asked as a share of a card or decided by its model: of these a claim may
    say more than the figures of the request, whatever the configuration was.
    """
    said: dict[str, list[Slots]] = {}
    for family, slots in claims:
        said.setdefault(family, []).append(slots)
    return tuple(
        ask._replace(
            containers=tuple(
                _raise_ask(one, [use for slots in said[ask.family] for use in slots[i]])
                for i, one in enumerate(ask.containers)
            )
        )
        if ask.family in said and ask.find_parts is None
        else ask
        for ask in asks
    )


def _raise_ask(ask: ContainerAsk, uses: Iterable[CardUse]) -> ContainerAsk:
    # No card has so much memory: it stands for all of a card, where a request cannot be read any more.
    parts = [use for use in uses if use.place is None and use.mem_mib < MEMORY_MAX_MIB]
    if not ask.cards or not parts:
        return ask
    mib = max(ask.mem_mib, *(use.mem_mib for use in parts))
    cores = max(ask.cores, *(min(use.cores, MEMORY_MAX_MIB) for use in parts))
    return ask._replace(
        mem_mib=mib if ask.mem_mib else 0, cores=ask.cores if ask.core_percent else cores
    )


def _find_of_driver(
    devices: Devices, pod: wire.Pod, driver: CardDriver, present: GpuAsk | None
) -> GpuAsk | None:
    earlier = list(_list_earlier(devices, pod, driver))
    every = earlier if present is None else [present, *earlier]
    for ask in every:
        if _is_covered(pod, driver, ask):
            return ask
    if present is not None:
        return present
    # Without a claim, nobody knows which devices a resource stands for that others count by now.
    gone = (ask for ask in earlier if not _list_drivers(devices, ask.family))
    return next(gone, None)


def _list_earlier(devices: Devices, pod: wire.Pod, driver: CardDriver) -> Iterator[GpuAsk]:
    """List what a pod asks of a driver's devices by the earlier configurations, the latest first."""
    for drivers in devices.earlier:
        for one in drivers:
            if one.name == driver.name:
                try:
                    yield from one.read_requests(pod)
                except BadInput:
                    continue


def _is_covered(pod: wire.Pod, driver: CardDriver, ask: GpuAsk) -> bool:
    """Whether a pod has a claim, and may hold all of it by what it asks."""
    try:
        slots = driver.read_claim(pod, [bool(one.cards) for one in ask.containers])
    except BadInput:
        return False
    return any(slots) and limit_claim(slots, ask.containers, initialized=False) == slots


def _list_drivers(devices: Devices, family: str) -> tuple[int, ...]:
    number = devices.find_family(family)
    return devices.list_drivers(number) if number >= 0 else ()


def _list_named(pod: wire.Pod) -> set[str]:
    containers = chain(pod.spec.containers, pod.spec.init_containers or ())
    found = (one.resources for one in containers if one.resources is not None)
    return {name for one in found for name in (*(one.requests or ()), *(one.limits or ()))}
