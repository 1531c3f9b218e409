"""The device table: columns of all devices of all pools, their counters and cells, and which node has which."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from scheduler.api.claims.answers import DeviceKey
from scheduler.api.claims.devices import COMPARED, Device, PoolKey, Taint, Value, Where
from scheduler.schema import columns as c
from scheduler.schema import devices as d
from scheduler.state.claims.kinds import DeviceKinds
from scheduler.state.claims.layouts import Layouts, Pattern, compute_key
from scheduler.state.structures.interning import Interner
from scheduler.state.structures.runs import Runs, round_up

_LEAST = 64
# By PLACE_*: the attributes that Kubernetes has for all drivers.
_PLACES = "resource.kubernetes.io/pcieRoot", "resource.kubernetes.io/numaNode"
_Numbers = NDArray[np.int32]
_CounterSet = tuple[tuple[str, int], ...]


class DeviceRun(NamedTuple):
    """The devices of a slice: their rows, and their runs of cells; ``n`` may be 0."""

    first: int
    n: int
    cells: tuple[tuple[int, int], ...] = ()


class DeviceTable:
    """Owns and grows ``schema.devices.Devices``.

    Attributes:
        columns: as kernels take them; they grow in place.
        kinds: of all devices.
        version: rises when a kind or an attribute is new, or a kind has devices again: what was compiled for a pod no longer
            holds.
        written: rises when a device comes or goes.
        most, most_counters: the most devices of any node, and the most counters of any set.
    """

    def __init__(self) -> None:
        self.columns = _make_columns()
        self.kinds = DeviceKinds()
        self.version, self.written, self.most, self.most_counters = 0, 0, 0, 0
        self._devices, self._sets, self._counters, self._cells, self._spans = (
            Runs() for _ in range(5)
        )
        self._names: Interner[str] = Interner()
        self._pools: Interner[PoolKey] = Interner()
        self._name = np.zeros(_LEAST, np.int32)
        self._pool = np.zeros(_LEAST, np.int32)
        self.values: Interner[Value] = Interner()
        self._attributes: dict[str, int] = {}
        self._patterns: dict[Pattern, int] = {}
        self._reaches: Interner[Where] = Interner()
        self._layouts = Layouts(self.columns)
        self._kinds: list[int] = []
        self._present = -1
        # The kinds that whoever lists the kinds at this version sees, and maybe some that have no device any more.
        self._listed: set[int] = set()

    # Devices.

    def place_devices(
        self, pool: PoolKey, devices: Sequence[Device], taints: Sequence[tuple[Taint, ...]]
    ) -> DeviceRun:
        """Write devices that draw on no counters yet; ``taints`` are those of each of them."""
        n = len(devices)
        first = self._devices.take(round_up(n))
        self._grow_devices()
        columns, cells = self.columns, []
        kinds = [self.kinds.number_kind(pool.driver, one, of) for one, of in zip(devices, taints, strict=True)]  # fmt: skip
        rows = slice(first, first + n)
        self._grow_kinds()
        if not self._listed.issuperset(kinds):
            self._listed.update(kinds)
            self.version += 1
        columns.kind[rows] = kinds
        columns.owners[rows] = columns.sharers[rows] = 0
        columns.reach[rows] = columns.cell[rows] = columns.twin[rows] = -1
        columns.draws[:, rows] = -1
        self._name[rows] = [self._names.number(one.name) for one in devices]
        self._pool[rows] = self._pools.number(pool)
        for row, device in enumerate(devices, first):
            if device.is_shareable and device.capacities:
                amounts = [one.value for _, one in device.capacities]
                at = self._cells.take(len(amounts))
                columns.cells = _widen(columns.cells, self._cells.end)
                columns.cells[d.TOTAL, at : at + len(amounts)] = amounts
                columns.cells[d.USED, at : at + len(amounts)] = 0
                columns.cell[row] = at
                cells.append((at, len(amounts)))
            self._write_values(row, device)
        self._find_places(devices)
        self.written += 1
        return DeviceRun(first, n, tuple(cells))

    def _write_values(self, row: int, device: Device) -> None:
        values = self.columns.values
        values[:, row] = -1
        for name, value in device.attributes:
            if name in self.kinds.own and name not in self._attributes:
                values = self._add_attribute(name)
            if (at := self._attributes.get(name, -1)) >= 0 and value[0] in COMPARED:
                values[at, row] = self.values.number(value)

    def _find_places(self, devices: Sequence[Device]) -> None:
        """Write which attributes say where devices are, as soon as a device has them."""
        for place, name in enumerate(_PLACES):
            if self.columns.places[place] < 0 and any(
                name == one for device in devices for one, _ in device.attributes
            ):
                self.columns.places[place] = self.find_attribute(name)

    def give_back(self, run: DeviceRun) -> None:
        """Give the rows of devices back that nobody holds any more."""
        rows = slice(run.first, run.first + run.n)
        self.columns.kind[rows] = -1
        self.columns.reach[rows] = self.columns.cell[rows] = self.columns.draws[:, rows] = -1
        self._devices.give_back(run.first, round_up(run.n))
        for first, n in run.cells:
            self._cells.give_back(first, n)
        self.written += 1

    def find_key(self, row: int) -> DeviceKey:
        """Return the key of a device."""
        pool = self._pools.values[int(self._pool[row])]
        return DeviceKey(pool.driver, pool.name, self._names.values[int(self._name[row])])

    def find_attributes(self, row: int) -> dict[str, Value]:
        """Return all attributes of a device by full name."""
        found = dict(self.kinds.table.values[int(self.columns.kind[row])].attributes)
        for name in self.kinds.own:
            at = self._attributes.get(name, -1)
            if at >= 0 and self.columns.values[at, row] >= 0:
                found[name] = self.values.values[int(self.columns.values[at, row])]
        return found

    def list_attributes(self, names: Collection[str] | None) -> list[int]:
        """List the rows of ``values`` of attributes that name single devices, of these names alone; None: of all."""
        return [
            at
            for name, at in self._attributes.items()
            if name in self.kinds.own and (names is None or name in names)
        ]

    @property
    def n_devices(self) -> int:
        """The number of devices of all pools."""
        return int(np.count_nonzero(self.columns.kind >= 0))

    def list_kinds(self) -> list[int]:
        """List the kinds of which there are devices."""
        if self._present != self.written:
            self._present = self.written
            kind = self.columns.kind
            self._kinds = np.flatnonzero(np.bincount(kind[kind >= 0])).tolist()
            self._listed = set(self._kinds)
        return self._kinds

    def list_rows(self, kind: int) -> c.Ints:
        """List the devices of a kind."""
        rows: c.Ints = np.flatnonzero(self.columns.kind == kind)
        return rows

    # Attributes.

    def find_attribute(self, name: str) -> int:
        """Find the row of ``values`` of an attribute, also of one that is no single device's; -1 if no device has it."""
        at = self._attributes.get(name, -1)
        if at >= 0:
            return at
        kinds = [dict(one.attributes).get(name) for one in self.kinds.table.values]
        if not any(kinds):
            return -1
        numbers = np.array(
            [self.values.number(one) if one and one[0] in COMPARED else -1 for one in kinds],
            np.int32,
        )
        values = self._add_attribute(name)
        there = self.columns.kind >= 0
        values[self._attributes[name], there] = numbers[self.columns.kind[there]]
        return self._attributes[name]

    def _add_attribute(self, name: str) -> _Numbers:
        """Add a row of values, and return all rows."""
        before = self.columns.values
        self._attributes[name] = len(before)
        fresh = np.full((len(before) + 1, before.shape[1]), -1, np.int32)
        fresh[: len(before)] = before
        self.columns.values = fresh
        self.version += 1
        return fresh

    # Counters.

    def place_counters(self, counters: _CounterSet) -> int:
        """Write a set of counters, of which nothing is drawn, and return its number."""
        n, number = len(counters), self._sets.take(1)
        self.most_counters = max(self.most_counters, n)
        first = self._counters.take(n)
        columns = self.columns
        if columns.sets.shape[1] < self._sets.end:
            fresh = np.zeros((4, 2 * self._sets.end), np.int64)
            fresh[:, : columns.sets.shape[1]] = columns.sets
            columns.sets = fresh
        columns.counters = _widen(columns.counters, self._counters.end)
        columns.sets[:, number] = first, n, -1, 0
        columns.counters[d.TOTAL, first : first + n] = [amount for _, amount in counters]
        columns.counters[d.USED, first : first + n] = 0
        return number

    def write_layout(self, number: int, patterns: Sequence[Pattern]) -> None:
        """Write which layout a set of counters has, on which devices draw by these patterns."""
        first, n, _, _ = self.columns.sets[:, number].tolist()
        totals = self.columns.counters[d.TOTAL, first : first + n].tolist()
        self.columns.sets[d.SET_LAYOUT, number] = self._layouts.number_layout(totals, patterns)

    def give_back_counters(self, number: int) -> None:
        """Give back a set of counters on which no device draws any more."""
        first, n, _, _ = self.columns.sets[:, number].tolist()
        self._counters.give_back(first, n)
        self.columns.sets[:, number] = 0
        self._sets.give_back(number, 1)

    def write_draws(self, row: int, draws: Sequence[tuple[int, Pattern]]) -> None:
        """Write what a device draws: for up to two sets, by number, the places of counters and the amounts."""
        for (in_set, pattern), (number, amounts) in zip(d.DRAWS, draws, strict=False):
            self.columns.draws[in_set, row] = number
            self.columns.draws[pattern, row] = self._number_pattern(amounts)

    def _number_pattern(self, amounts: Pattern) -> int:
        known = self._patterns.get(amounts)
        if known is not None:
            return known
        columns, number = self.columns, len(self._patterns)
        first = int(columns.patterns[:2, number - 1].sum()) if number else 0
        columns.patterns = _widen(columns.patterns, number + 1)
        columns.patterns[:, number] = first, len(amounts), compute_key(amounts)
        if first + len(amounts) > len(columns.pattern):
            fresh = np.zeros((2 * (first + len(amounts)), 2), np.int64)
            fresh[:first] = columns.pattern[:first]
            columns.pattern = fresh
        columns.pattern[first : first + len(amounts)] = np.array(amounts, np.int64).reshape(-1, 2)
        self._patterns[amounts] = number
        return number

    # Nodes.

    def write_spans(self, row: int, spans: Sequence[tuple[int, int]], *, is_unsure: bool) -> bool:
        """Write which devices a node has, in order; ``is_unsure``: not all of its pools are known whole.

        Return whether it had others.
        """
        columns = self.columns
        first, n = columns.spans_of[:, row].tolist()
        before = columns.spans[first : first + n].tolist()
        if n != len(spans):
            self._spans.give_back(first, n)
            first, n = self._spans.take(len(spans)), len(spans)
            if self._spans.end > len(columns.spans):
                fresh = np.zeros((max(_LEAST, 2 * self._spans.end), 2), np.int64)
                fresh[: len(columns.spans)] = columns.spans
                columns.spans = fresh
            columns.spans_of[:, row] = first, n
        if n:
            columns.spans[first : first + n] = spans
        columns.unsure[row] = is_unsure
        self.most = max(self.most, sum(count for _, count in spans))
        return bool(before != [list(one) for one in spans])

    def fit_nodes(self, capacity: int) -> None:
        """Grow to so many rows of nodes."""
        columns = self.columns
        if columns.unsure.size < capacity:
            columns.spans_of = _widen(columns.spans_of, capacity, exact=True)
            unsure = np.zeros(capacity, np.bool_)
            unsure[: columns.unsure.size] = columns.unsure
            columns.unsure = unsure
            reaches = np.zeros((len(columns.reaches), capacity), np.bool_)
            reaches[:, : columns.reaches.shape[1]] = columns.reaches
            columns.reaches = reaches

    def number_reach(self, where: Where) -> int:
        """Return the row of ``reaches`` for devices that can be used on the nodes of ``where``."""
        number = self._reaches.number(where)
        columns = self.columns
        if number >= len(columns.reaches):
            fresh = np.zeros((2 * number + 1, columns.reaches.shape[1]), np.bool_)
            fresh[: len(columns.reaches)] = columns.reaches
            columns.reaches = fresh
        return number

    @property
    def reaches(self) -> Sequence[Where]:
        """What ``number_reach`` was given, by number."""
        return self._reaches.values

    # Growing.

    def _grow_devices(self) -> None:
        columns, capacity = self.columns, self.columns.kind.size
        if self._devices.end <= capacity:
            return
        size = max(self._devices.end, 2 * capacity)
        for name in ("kind", "owners", "sharers", "reach", "twin", "cell"):
            setattr(columns, name, _lengthen(getattr(columns, name), size))
        columns.kind[capacity:] = -1
        self._name, self._pool = _lengthen(self._name, size), _lengthen(self._pool, size)
        for name in ("draws", "values"):
            before = getattr(columns, name)
            fresh = np.full((len(before), size), -1, np.int32)
            fresh[:, :capacity] = before
            setattr(columns, name, fresh)

    def _grow_kinds(self) -> None:
        known, columns = self.kinds.table.values, self.columns
        if len(known) != columns.shareable.size:
            columns.shareable = np.array([one.is_shareable for one in known], np.bool_)
            columns.waits = np.array([one.has_conditions for one in known], np.bool_)
            columns.n_cells = np.array(
                [len(one.capacities) if one.is_shareable else 0 for one in known], np.int64
            )


def _make_columns() -> d.Devices:
    def make_rows(*shape: int) -> c.Ints:
        return np.zeros(shape, np.int64)

    def make_numbers(*shape: int) -> _Numbers:
        return np.full(shape, -1, np.int32)

    return d.Devices(
        kind=make_numbers(_LEAST),
        owners=make_numbers(_LEAST) * 0,
        sharers=make_numbers(_LEAST) * 0,
        reach=make_numbers(_LEAST),
        twin=make_numbers(_LEAST),
        cell=make_numbers(_LEAST),
        draws=make_numbers(4, _LEAST),
        values=make_numbers(0, _LEAST),
        places=np.full(d.N_PLACES, -1, np.int64),
        shareable=np.zeros(0, np.bool_),
        n_cells=make_rows(0),
        waits=np.zeros(0, np.bool_),
        sets=make_rows(4, _LEAST),
        counters=make_rows(2, _LEAST),
        patterns=make_rows(3, _LEAST),
        pattern=make_rows(_LEAST, 2),
        layouts=make_rows(2, 0),
        room_keys=make_rows(0),
        rooms=np.zeros((3, 0)),
        cells=make_rows(2, _LEAST),
        joint=make_rows(3, _LEAST),
        joint_holds=make_rows(_LEAST, 3),
        spans_of=make_rows(2, 0),
        spans=make_rows(_LEAST, 2),
        states=np.full(0, -1, np.int64),
        unsure=np.zeros(0, np.bool_),
        reaches=np.zeros((0, 0), np.bool_),
    )


def _widen(before: c.Ints, end: int, *, exact: bool = False) -> c.Ints:
    """Return the same rows with room for ``end`` columns."""
    if before.shape[1] >= end:
        return before
    fresh = np.zeros((len(before), end if exact else 2 * end), np.int64)
    fresh[:, : before.shape[1]] = before
    return fresh


def _lengthen(before: _Numbers, size: int) -> _Numbers:
    fresh = np.zeros(size, before.dtype)
    fresh[: before.size] = before
    return fresh
