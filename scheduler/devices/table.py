"""The table of device drivers, and the families of devices that they allocate.

A family is a resource by which containers request devices. It may have several drivers, each for other nodes: the first
driver in ``Devices.drivers`` that serves a node allocates the devices of the family there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import chain

from scheduler.api import names, wire
from scheduler.api.cards import Grants
from scheduler.api.hami_config.chart import CHART
from scheduler.api.pods.gpus import GpuAsk
from scheduler.config import Config
from scheduler.devices.contract import (
    AnyDriver,
    CardDriver,
    CountingDriver,
    NodeReading,
    PodMarks,
    Texts,
)
from scheduler.devices.hami import HamiCards
from scheduler.devices.vendors import table as vendors
from scheduler.devices.whole import FAMILIES as WHOLE
from scheduler.devices.whole import WholeDevices


class Devices:
    """The drivers of one cluster, and its families by number.

    The families of drivers that name their resources have the first numbers, whether or not a node offers them. Where a
    driver names a pattern, a family is added when a node first offers a resource that matches. Pods add none: everybody
    who may create pods could add families without end.

    Attributes:
        drivers: the order says which driver serves a node if several would.
        cards, whole: the drivers of cards, and of devices that are counted, by their numbers.
        families: the resource of each family.
        notes: the annotations of pods that say which devices they accept.
        inner_resources: by resource that only cards have: the family of these cards.
        marks: patterns of further resources by which nodes offer devices that no family counts; ``*`` for any end.
    """

    def __init__(self, drivers: Iterable[AnyDriver], marks: tuple[str, ...] = ()) -> None:
        self.drivers = tuple(drivers)
        self.cards, self.whole = _sort_drivers(self.drivers)
        self.marks = marks
        self.families: list[str] = []
        self._numbers: dict[str, int] = {}
        self._drivers_of: list[tuple[int, ...]] = []
        self._patterns = [one for driver in self.drivers for one in driver.resources if "*" in one]
        self.inner_resources: dict[str, str] = {
            resource: family
            for driver in self.cards.values()
            for family in driver.resources
            for resource in driver.inner_resources
        }
        self.notes = frozenset(one for driver in self.cards.values() for one in driver.notes)
        self._reads = [
            _list_read(driver, self.cards.get(i)) for i, driver in enumerate(self.drivers)
        ]
        self._names = frozenset(one for read, _ in self._reads for one in read)
        for driver in self.drivers:
            self.add_families(one for one in driver.resources if "*" not in one)

    def find_family(self, resource: str) -> int:
        """Find the number of a family, -1 for none."""
        return self._numbers.get(resource, -1)

    def add_families(self, resources: Iterable[str]) -> None:
        """Add the families of these resources that are not there yet."""
        for resource in resources:
            if resource not in self._numbers:
                self._numbers[resource] = len(self.families)
                self.families.append(resource)
                served = (i for i, one in enumerate(self.drivers) if allocates(one, resource))
                self._drivers_of.append(tuple(served))

    def note_offered(self, resources: Iterable[str]) -> None:
        """Add the families that nodes offer by resources that only a pattern names."""
        if self._patterns:
            self.add_families(
                one for one in resources if any(fnmatchcase(one, mark) for mark in self._patterns)
            )

    def find_driver(self, family: int, read: Callable[[int], NodeReading]) -> int:
        """Find the driver that allocates the devices of a family on a node, by its number; -1 for none.

        ``read`` returns what is known of the node for a driver, by its number.
        """
        served = (one for one in self._drivers_of[family] if self.drivers[one].serves(read(one)))
        return next(served, -1)

    def list_drivers(self, family: int) -> tuple[int, ...]:
        """List the numbers of the drivers of a family; the first one reads what pods request."""
        return self._drivers_of[family]

    def list_card_drivers(self, resource: str) -> list[CardDriver]:
        """List the drivers that allocate the devices of a family one by one."""
        family = self.find_family(resource)
        numbers = self._drivers_of[family] if family >= 0 else ()
        return [self.cards[one] for one in numbers if one in self.cards]

    def read_requests(self, pod: wire.Pod) -> tuple[GpuAsk, ...]:
        """Read what a pod requests from each family of which it requests devices.

        Raises:
            BadInput: a figure that the family's plugin could not serve.
        """
        containers = chain(pod.spec.containers, pod.spec.init_containers or ())
        found = (one.resources for one in containers if one.resources is not None)
        named = {name for one in found for name in (*(one.requests or ()), *(one.limits or ()))}
        if not self._may_read(self._names, self._patterns, named):
            return ()
        return tuple(
            ask
            for number, driver in enumerate(self.drivers)
            if self._may_read(*self._reads[number], named)
            for ask in driver.read_requests(pod)
            # The first driver of a family reads what is requested of the family.
            if self._find_reader(ask.family) == number
        )

    @staticmethod
    def _may_read(
        names_: frozenset[str], patterns: Collection[str], named: Collection[str]
    ) -> bool:
        """Whether any of the resources that a pod names is one of those given by name or by pattern."""
        if not names_.isdisjoint(named):
            return True
        return any(fnmatchcase(one, mark) for mark in patterns for one in named)

    def _find_reader(self, family: str) -> int:
        return next(i for i, one in enumerate(self.drivers) if allocates(one, family))

    def are_marked(self, labels: Texts, offered: Iterable[str]) -> bool:
        """Whether a node has devices by its labels or by what it offers, whether or not a family counts them."""
        if labels.get(names.GPU_PRESENT) == "true":
            return True
        return any(fnmatchcase(resource, mark) for resource in offered for mark in self.marks)


def allocates(driver: AnyDriver, resource: str) -> bool:
    """Whether a driver allocates devices that are requested by a resource."""
    return any(fnmatchcase(resource, one) for one in driver.resources)


@lru_cache(maxsize=16)
def _sort_drivers(
    drivers: tuple[AnyDriver, ...],
) -> tuple[dict[int, CardDriver], dict[int, CountingDriver]]:
    """Sort drivers into those of cards and those of devices that are counted; to look at a whole protocol takes 50 µs."""
    cards = {i: one for i, one in enumerate(drivers) if isinstance(one, CardDriver)}
    whole = {i: one for i, one in enumerate(drivers) if not isinstance(one, CardDriver)}
    return cards, whole


def _list_read(
    driver: AnyDriver, cards: CardDriver | None
) -> tuple[frozenset[str], tuple[str, ...]]:
    """List the resources that a driver reads of a pod, and the patterns of such resources."""
    inner = cards.inner_resources if cards is not None else frozenset()
    patterns = tuple(one for one in driver.resources if "*" in one)
    return frozenset({*driver.resources, *inner}.difference(patterns)), patterns


@lru_cache(maxsize=16)
def make_drivers(label: str = names.HAMI_NODE_LABEL) -> tuple[AnyDriver, ...]:
    """Make the drivers, the first choice of each node first; ``label`` as ``HamiCards`` takes it."""
    # The numbers of families follow the drivers: those of whole devices come before those of vendors.
    kinds = vendors.list_drivers(CHART)
    shared = [one for one in kinds if not set(WHOLE).isdisjoint(one.resources)]
    whole = (WholeDevices(resource) for resource in WHOLE)
    return HamiCards(label), *shared, *whole, *(one for one in kinds if one not in shared)


def make_devices(
    label: str = names.HAMI_NODE_LABEL, marks: tuple[str, ...] = names.GPU_RESOURCES
) -> Devices:
    """Make the table of one cluster."""
    return Devices(make_drivers(label), marks)


def read_devices(config: Config) -> Devices:
    """Make the table that the configuration describes."""
    return make_devices(config.hami_node_label, config.gpu_resources)


# For callers without a cluster: what drivers read and write on pods does not depend on the label.
_DRIVERS = make_drivers()
CARD_DRIVERS = tuple(driver for driver in _DRIVERS if isinstance(driver, CardDriver))
_CARDS = {driver.name: driver for driver in CARD_DRIVERS}
# The table with the default settings, to read what nodes report; no cluster owns it, so it never gets more families.
DEFAULT_DEVICES: Devices = make_devices()
# The resources by which pods request devices of families that are always there.
FAMILIES = tuple(DEFAULT_DEVICES.families)
# As ``Devices.inner_resources``.
INNER_RESOURCES: dict[str, str] = DEFAULT_DEVICES.inner_resources
_NAMES = frozenset({*FAMILIES, *INNER_RESOURCES})


def is_of_devices(resource: str) -> bool:
    """Whether a resource requests devices of a family, or a part of them that only their driver reads."""
    return resource in _NAMES


def is_family(resource: str) -> bool:
    """Whether a resource requests devices of a family."""
    return resource in FAMILIES


def get_card_driver(driver: str) -> CardDriver:
    """Return the driver of cards that a decision names."""
    return _CARDS[driver]


def write_answers(node: str, grants: Grants, now: int) -> PodMarks:
    """Write down a decision as marks for the pod; ``now`` is in seconds since 1970."""
    marks = PodMarks({}, {})
    for grant in grants:
        answer = _CARDS[grant.driver].write_answer(node, grant.slots, now, grant.of_pod)
        marks.annotations.update(answer.annotations)
        marks.labels.update(answer.labels)
    return marks


def are_answered(annotations: Texts, grants: Grants) -> bool:
    """Whether the annotations are those of a pod that was bound with these devices."""
    return all(_CARDS[one.driver].is_answered(annotations, one.slots) for one in grants)


def is_served(annotations: Texts) -> bool:
    """Whether a plugin has served, or has failed to serve, the pod of these annotations."""
    return any(cards.is_served(annotations) for cards in _CARDS.values())


def is_locked(annotations: Texts) -> bool:
    """Whether a plugin of the node of these annotations is busy with a pod."""
    return any(cards.is_locked(annotations) for cards in _CARDS.values())


def sign_node(node: wire.Node, drivers: tuple[str, ...]) -> wire.Node:
    """Return the node with the marks of the plugins of these drivers."""
    for driver in drivers:
        node = _CARDS[driver].sign_node(node)
    return node
