"""The table of device drivers, and the families of devices that they allocate.

A family is a resource by which containers request devices. It may have several drivers, each for other nodes: the first
driver in ``Devices.drivers`` that serves a node allocates the devices of the family there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import chain

from scheduler.api import names, selector_text, wire
from scheduler.api.hami_config.maps import DeviceSettings
from scheduler.api.pods.gpus import GpuAsk
from scheduler.api.reasons import CARD_CODES, CardRefusal
from scheduler.api.selectors import NOTHING, Selector
from scheduler.config import Config
from scheduler.devices.contract import (
    AS_ALLOCATED,
    AnyDriver,
    CardDriver,
    CountingDriver,
    NodeReading,
    Shown,
    Texts,
)
from scheduler.devices.counted import FAMILIES as WHOLE
from scheduler.devices.counted import PluginParts, WholeDevices
from scheduler.devices.hami import HamiCards
from scheduler.devices.vendors import table as vendors
from scheduler.errors import BadInput
from scheduler.schema import columns as c

# Each node has a reading of each driver, and a pod that runs is read by each of the earlier tables.
DRIVERS_MAX, _EARLIER_MAX = 256, 16
# Tenants may name resources in any combination.
_READERS_MAX = 1024
# The effects of taints that keep pods off a node.
_KEEP_OFF = frozenset({"NoSchedule", "NoExecute"})


class Devices:
    """The drivers of one cluster, and its families by number.

    The families of drivers that name their resources have the first numbers, whether or not a node offers them. Where a
    driver names a pattern, a family is added when a node first offers a resource that matches. Pods add none: everybody
    who may create pods could add families without end.

    Drivers may be replaced (``take_up``). A driver keeps its number as long as it keeps its name, and families keep theirs
    for good. A driver that is gone keeps its number and allocates nothing. On nodes that a driver of cards serves, the
    resources by which its devices were requested before stand for no device: their cards are in the pool of its
    present resource.

    Attributes:
        drivers: by number.
        cards, whole: the drivers of cards, and of devices that are counted, by their numbers.
        by_name: the drivers of cards by their names, also those that are not in use any more.
        cards_in_use: the drivers of cards that are in use.
        families: the resource of each family.
        notes: the annotations of pods that say which devices they accept.
        inner_resources: by resource that only cards have: the family of these cards.
        inner_families: the same by the family's number.
        foreign: selects the nodes whose devices another scheduler allocates, by their labels and taints.
        marks: patterns of further resources by which nodes offer devices that no family counts; ``*`` for any end.
        earlier: the drivers that were in use earlier, the latest first.
        earlier_names: the resources by which pods requested the devices of their drivers of cards.
        is_configured: whether the drivers are as HAMi's configuration says, and not only as its chart does.
    """

    def __init__(
        self,
        drivers: Iterable[AnyDriver],
        marks: tuple[str, ...] = (),
        foreign: Selector = NOTHING,
    ) -> None:
        self.drivers: tuple[AnyDriver, ...] = ()
        self.marks, self.foreign = marks, foreign
        self.families: list[str] = []
        self._earlier: tuple[tuple[Hashable, tuple[AnyDriver, ...]], ...] = ()
        self._key: Hashable = None
        self.is_configured = False
        self._numbers: dict[str, int] = {}
        self._use(tuple(drivers))

    def take_up(self, drivers: tuple[AnyDriver, ...], key: Hashable) -> None:
        """Use other drivers from now on; what pods hold is read by the earlier ones, too.

        ``key``: drivers with equal keys read pods alike.

        Raises:
            BadInput: so many drivers have been in use by now that each node would take too much memory.
        """
        known = {one.name for one in self.drivers}
        if len(known.union(one.name for one in drivers)) > DRIVERS_MAX:
            problem = f"more than {DRIVERS_MAX} words have been in use since the scheduler has started; start it anew"
            raise BadInput("iluvatars and vnpus", problem)
        if key != self._key:
            others = [one for one in self._earlier if one[0] not in {key, self._key}]
            self._earlier = ((self._key, self._in_use), *others)[:_EARLIER_MAX]
            self._key = key
        self.is_configured = True
        self._use(drivers)

    def _use(self, drivers: tuple[AnyDriver, ...]) -> None:
        fresh = {one.name: one for one in drivers}
        known = [fresh.pop(one.name, one) for one in self.drivers]
        self.drivers = (*known, *fresh.values())
        self.cards, self.whole = _sort_drivers(self.drivers)
        self.by_name: Mapping[str, CardDriver] = {one.name: one for one in self.cards.values()}
        numbers = {one.name: i for i, one in enumerate(self.drivers)}
        self.earlier = tuple(one for _, one in self._earlier)
        self._in_use, self._order = drivers, tuple(numbers[one.name] for one in drivers)
        in_use = {i: self.cards[i] for i in self._order if i in self.cards}
        self.cards_in_use = tuple(in_use.values())
        self._patterns = [one for driver in drivers for one in driver.resources if "*" in one]
        self.inner_resources: dict[str, str] = {
            resource: family
            for driver in in_use.values()
            for family in driver.resources
            for resource in driver.inner_resources
        }
        self.notes = frozenset(one for driver in in_use.values() for one in driver.notes)
        self._reads = [
            (i, *_list_read(self.drivers[i], self.cards.get(i)))
            for i in self._order
            if self._is_reader(i)
        ]
        self._readers: dict[frozenset[str], tuple[int, ...]] = {}
        self._drivers_of = [self._list_serving(one) for one in self.families]
        self.add_families(one for driver in drivers for one in driver.resources if "*" not in one)
        self.inner_families = {
            resource: number
            for resource, family in self.inner_resources.items()
            if (number := self.find_family(family)) >= 0
        }
        self.earlier_names = frozenset(
            name
            for before in self.earlier
            for one in _sort_drivers(before)[0].values()
            for name in one.resources
        )
        self._before = {
            resource: numbers[one.name]
            for before in reversed(self.earlier)
            for one in before
            for resource in one.resources
            if numbers[one.name] in self.cards
            and numbers[one.name] not in self._list_serving(resource)
        }

    def _list_serving(self, resource: str) -> tuple[int, ...]:
        return tuple(i for i in self._order if allocates(self.drivers[i], resource))

    def find_family(self, resource: str) -> int:
        """Find the number of a family, -1 for none."""
        return self._numbers.get(resource, -1)

    def add_families(self, resources: Iterable[str]) -> None:
        """Add the families of these resources that are not there yet."""
        for resource in resources:
            if resource not in self._numbers:
                self._numbers[resource] = len(self.families)
                self.families.append(resource)
                self._drivers_of.append(self._list_serving(resource))

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
        before = self.find_earlier(self.families[family])
        if before >= 0 and self.drivers[before].serves(read(before)):
            return before
        served = (one for one in self._drivers_of[family] if self.drivers[one].serves(read(one)))
        return next(served, -1)

    def list_drivers(self, family: int) -> tuple[int, ...]:
        """List the numbers of the drivers of a family; the first one reads what pods request."""
        return self._drivers_of[family]

    def find_earlier(self, resource: str) -> int:
        """Find the driver of cards by whose earlier settings pods requested its cards by a resource; -1 for none."""
        return self._before.get(resource, -1)

    def has_cards(self, driver: int, family: int) -> bool:
        """Whether the cards of a driver are in its pools of a family, which it does not only serve as an earlier one."""
        return driver in self._drivers_of[family]

    def is_family(self, resource: str) -> bool:
        """Whether a resource requests devices of a family."""
        return resource in self._numbers

    def is_of_devices(self, resource: str) -> bool:
        """Whether a resource requests devices of a family, or a part of them that only their driver reads."""
        return resource in self._numbers or resource in self.inner_resources

    def find_part(self, resource: str) -> tuple[int, int, int] | None:
        """Find what a quota of a resource is about: the family, the figure of its cards, and how much of it is one unit."""
        if (family := self.find_family(resource)) >= 0:
            return family, c.SLOTS, 1
        family = self.find_family(self.inner_resources.get(resource, ""))
        for number in self._drivers_of[family] if family >= 0 else ():
            if number in self.cards and resource in self.cards[number].parts:
                return family, *self.cards[number].parts[resource]
        return None

    def list_card_drivers(self, resource: str) -> list[CardDriver]:
        """List the drivers that allocate the devices of a family one by one."""
        family = self.find_family(resource)
        numbers = self._drivers_of[family] if family >= 0 else ()
        return [self.cards[one] for one in numbers if one in self.cards]

    def name_codes(self, resource: str) -> Mapping[CardRefusal, str]:
        """Name the reasons why a device of a family is refused, in the words of its driver."""
        drivers = self.list_card_drivers(resource)
        return drivers[0].codes if drivers else CARD_CODES

    def show(self, resource: str) -> Shown:
        """Return how the devices of a family are shown in metrics under HAMi's names."""
        drivers = self.list_card_drivers(resource)
        return drivers[0].shown if drivers else AS_ALLOCATED

    def read_requests(self, pod: wire.Pod) -> tuple[GpuAsk, ...]:
        """Read what a pod requests from each family of which it requests devices.

        Raises:
            BadInput: a figure that the family's plugin could not serve.
        """
        return self._read_each(pod, lambda number: self.drivers[number].read_requests(pod))

    def read_most(self, pod: wire.Pod) -> tuple[GpuAsk, ...]:
        """Read what a pod requests from each family, and the most that it may hold of those where that cannot be read."""

        def read(number: int) -> tuple[GpuAsk, ...]:
            try:
                return self.drivers[number].read_requests(pod)
            except BadInput:
                cards = self.cards.get(number)
                return () if cards is None else cards.read_most(pod)

        return self._read_each(pod, read)

    def _read_each(
        self, pod: wire.Pod, read_of: Callable[[int], tuple[GpuAsk, ...]]
    ) -> tuple[GpuAsk, ...]:
        named: set[str] = set()
        for one in chain(pod.spec.containers, pod.spec.init_containers or ()):
            if one.resources is not None:
                named.update(one.resources.requests or (), one.resources.limits or ())
        asks: list[GpuAsk] = []
        for number in self._list_readers(frozenset(named)):
            # The first driver of a family reads what is requested of the family.
            asks += [one for one in read_of(number) if self._find_reader(one.family) == number]
        return tuple(asks)

    def _is_reader(self, number: int) -> bool:
        """Whether a driver may be the first driver of any family, so that it reads what pods request."""
        return any(
            "*" in one or self._list_serving(one)[0] == number
            for one in self.drivers[number].resources
        )

    def _list_readers(self, named: frozenset[str]) -> tuple[int, ...]:
        """List the drivers that may read what a pod requests that names these resources; kept, as most pods name the same."""
        readers = self._readers.get(named)
        if readers is None:
            if len(self._readers) >= _READERS_MAX:
                self._readers.clear()
            readers = self._readers[named] = tuple(
                number
                for number, read, patterns in self._reads
                if self._may_read(read, patterns, named)
            )
        return readers

    @staticmethod
    def _may_read(
        names_: frozenset[str], patterns: Collection[str], named: Collection[str]
    ) -> bool:
        """Whether any of the resources that a pod names is one of those given by name or by pattern."""
        if not names_.isdisjoint(named):
            return True
        return any(fnmatchcase(one, mark) for mark in patterns for one in named)

    def _find_reader(self, family: str) -> int:
        serving = self._drivers_of[number] if (number := self.find_family(family)) >= 0 else ()
        return serving[0] if serving else self._list_serving(family)[0]

    def is_foreign(self, labels: Texts, taints: Iterable[tuple[str, str, str]]) -> bool:
        """Whether another scheduler allocates the devices of a node with these labels and taints (key, value, effect).

        A taint that keeps pods off counts like a label of its key and value, because people give nodes away by either.
        """
        if self.foreign == NOTHING:
            return False
        marks = {key: value for key, value, effect in taints if effect in _KEEP_OFF}
        return self.foreign.matches({**marks, **labels})

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
    """Make the drivers with the settings of HAMi's chart, as ``list_drivers``."""
    return list_drivers(label, DeviceSettings())


def list_drivers(label: str, settings: DeviceSettings) -> tuple[AnyDriver, ...]:
    """List the drivers, the first choice of each node first; ``label`` as ``HamiCards`` takes it."""
    # The numbers of families follow the drivers: those of whole devices come before those of vendors.
    kinds = vendors.list_drivers(settings.config)
    shared = [one for one in kinds if not set(WHOLE).isdisjoint(one.resources)]
    whole = (WholeDevices(resource) for resource in WHOLE)
    own = (one for one in kinds if one not in shared)
    return HamiCards(label, settings), *shared, *whole, *own, PluginParts()


def make_devices(
    label: str = names.HAMI_NODE_LABEL,
    marks: tuple[str, ...] = (),
    foreign: Selector = NOTHING,
) -> Devices:
    """Make the table of one cluster."""
    return Devices(make_drivers(label), marks, foreign)


def read_devices(config: Config) -> Devices:
    """Make the table that the configuration describes, before HAMi's own is known."""
    return make_devices(config.hami_node_label, config.gpu_resources, find_foreign(config))


def find_foreign(config: Config) -> Selector:
    """Find which nodes the configuration gives to another scheduler of devices; ``NOTHING`` for none."""
    return selector_text.parse_text(config.hami_scheduler_nodes, "hamiSchedulerNodes")


# The table with the default settings, to read what nodes report; no cluster owns it, so it never gets more families.
DEFAULT_DEVICES: Devices = make_devices()
# The resources by which pods request devices of families that are always there.
FAMILIES = tuple(DEFAULT_DEVICES.families)
# As ``Devices.inner_resources``.
INNER_RESOURCES: dict[str, str] = DEFAULT_DEVICES.inner_resources
# As ``Devices.by_name``.
CARD_DRIVERS = DEFAULT_DEVICES.by_name
