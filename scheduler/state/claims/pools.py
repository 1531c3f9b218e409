"""One pool in the table: the devices of all its slices, and the counters on which they draw."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from scheduler.api.claims.devices import Device, PoolKey, Slice, Taint, Where
from scheduler.state.claims.layouts import Pattern
from scheduler.state.claims.table import DeviceRun, DeviceTable

# A device with more rows than this is a mistake.
TWINS_MAX = 8
_Find = Callable[[PoolKey, Device], tuple[Taint, ...]]
# For each set of counters by name: its number, and the place of each counter.
_Sets = dict[str, tuple[int, dict[str, int]]]


class PlacedSlice(NamedTuple):
    """The devices of a slice.

    Attributes:
        names: the names of its devices, in the order of their rows.
        has_conditions: a bind waits for some of its devices.
        nodes: of a slice whose devices say their own nodes, all that they say.
    """

    run: DeviceRun
    names: tuple[str, ...]
    has_conditions: bool
    nodes: tuple[Where, ...]

    @property
    def n(self) -> int:
        """The number of devices."""
        return self.run.n

    @property
    def span(self) -> tuple[int, int]:
        """The first device and their number."""
        return self.run.first, self.run.n


@dataclass(slots=True)
class PlacedPool:
    """What a pool has in the table.

    Attributes:
        slices: by name.
        counters: the numbers of all sets of counters.
        invalid: the generations that cannot be right.
        twins: by name of a device that has several rows, these rows.
    """

    slices: dict[str, PlacedSlice] = field(default_factory=dict)
    counters: list[int] = field(default_factory=list)
    invalid: set[int] = field(default_factory=set)
    twins: dict[str, list[int]] = field(default_factory=dict)

    def find_rows(self, device: str) -> list[int]:
        """Find the rows of the device with a name."""
        if device in self.twins:
            return self.twins[device]
        for one in self.slices.values():
            if device in one.names:
                return [one.run.first + one.names.index(device)]
        return []

    def has_twins(self, names: Sequence[str]) -> bool:
        """Whether two devices of these slices have one name."""
        devices = [name for one in names for name in self.slices[one].names]
        return len(set(devices)) != len(devices)

    def give_back(self, table: DeviceTable) -> None:
        """Give back all rows; nobody holds any of them."""
        for one in self.slices.values():
            table.give_back(one.run)
        for number in self.counters:
            table.give_back_counters(number)


def place_pool(
    table: DeviceTable, pool: PoolKey, slices: Iterable[Slice], find_taints: _Find
) -> PlacedPool:
    """Write the devices of all slices of a pool; ``find_taints`` finds the taints of a device."""
    placed = PlacedPool()
    by_generation: defaultdict[int, list[Slice]] = defaultdict(list)
    for one in slices:
        by_generation[one.generation].append(one)
    for generation, there in by_generation.items():
        sets = _place_counters(table, there, placed, generation)
        drawn: defaultdict[int, list[Pattern]] = defaultdict(list)
        for one in there:
            placed.slices[one.name] = _place_slice(table, pool, one, find_taints)
            if not _write_draws(table, placed.slices[one.name].run, one, sets, drawn):
                placed.invalid.add(generation)
        for number, patterns in drawn.items():
            table.write_layout(number, patterns)
    _link_twins(table, placed, by_generation)
    return placed


def _link_twins(
    table: DeviceTable, placed: PlacedPool, by_generation: Mapping[int, Sequence[Slice]]
) -> None:
    """Link the rows that are one device: a claim that has it has all of them.

    Nothing is allocated of a generation in which a device has other capacities than in another one.
    """
    rows: defaultdict[str, list[tuple[int, int, Device]]] = defaultdict(list)
    for generation, there in by_generation.items():
        for one in there:
            first = placed.slices[one.name].run.first
            for row, device in enumerate(one.devices, first):
                rows[device.name].append((row, generation, device))
    for name, same in rows.items():
        if len(same) < 2:
            continue
        alike = [row for row, _, device in same if _get_shared(device) == _get_shared(same[0][2])]
        placed.twins[name] = alike
        placed.invalid.update(generation for row, generation, _ in same if row not in alike)
        if len(alike) > TWINS_MAX:
            placed.invalid.update(by_generation)
        for row, after in zip(alike, [*alike[1:], alike[0]], strict=True):
            table.columns.twin[row] = after if after != row else -1


def _get_shared(device: Device) -> object:
    return device.is_shareable, device.capacities if device.is_shareable else ()


def _place_counters(
    table: DeviceTable, slices: Iterable[Slice], placed: PlacedPool, generation: int
) -> _Sets:
    sets: _Sets = {}
    for one in slices:
        for name, counters in one.counters:
            if name in sets:
                placed.invalid.add(generation)
                continue
            number = table.place_counters(counters)
            placed.counters.append(number)
            sets[name] = number, {counter: i for i, (counter, _) in enumerate(counters)}
    return sets


def _place_slice(table: DeviceTable, pool: PoolKey, one: Slice, find_taints: _Find) -> PlacedSlice:
    taints = [find_taints(pool, device) for device in one.devices]
    run = table.place_devices(pool, one.devices, taints)
    nodes: dict[Where, None] = {}
    if one.where is None:
        for row, device in enumerate(one.devices, run.first):
            where = device.where or Where()
            nodes[where] = None
            table.columns.reach[row] = table.number_reach(where)
    return PlacedSlice(
        run,
        tuple(device.name for device in one.devices),
        any(device.conditions for device in one.devices),
        tuple(nodes),
    )


def _write_draws(
    table: DeviceTable,
    run: DeviceRun,
    one: Slice,
    sets: _Sets,
    drawn: defaultdict[int, list[Pattern]],
) -> bool:
    """Write what the devices of a slice draw, and add it to ``drawn`` by set; return whether all counters that they name are there."""
    is_valid = True
    for row, device in enumerate(one.devices, run.first):
        draws = []
        for draw in device.draws:
            number, places = sets.get(draw.counter_set, (-1, {}))
            amounts = tuple(
                (places[name], amount) for name, amount in draw.amounts if name in places
            )
            is_valid = is_valid and len(amounts) == len(draw.amounts) and number >= 0
            if number >= 0:
                draws.append((number, amounts))
                drawn[number].append(amounts)
        table.write_draws(row, draws[:2])
    return is_valid
