"""ResourceSlices: which pools there are, and which devices of them each node has.

Whether a pool is whole is told for each node by itself: only the slices that the node can use count, of these only those
of the highest generation, and all of that generation must be there. Slices are kept packed, because the columns have all
that decisions read of them.

Source: k8s.io/dynamic-resource-allocation v0.37.1, structured/internal/incubating/pools_incubating.go.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from scheduler.api.claims import devices, objects
from scheduler.api.claims.answers import DeviceKey
from scheduler.api.claims.devices import PoolKey, Slice, Taint, TaintRule, Where
from scheduler.state.claims.pools import PlacedPool, place_pool
from scheduler.state.claims.table import DeviceTable
from scheduler.state.nodes import NodeTable

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(objects.ResourceSlice)


class _Packed(NamedTuple):
    """A slice: where it belongs, and the rest as compressed JSON."""

    pool: PoolKey
    generation: int
    n_slices: int
    where: Where | None
    json: bytes

    def unpack(self) -> Slice:
        """Parse the slice again."""
        return devices.read_slice(self.decode())

    def decode(self) -> objects.ResourceSlice:
        """Return the slice as it was read."""
        return _decoder.decode(zlib.decompress(self.json))


class PoolProblem(NamedTuple):
    """Why no device of a pool is allocated on a node: the pool is invalid, or not known whole yet."""

    pool: PoolKey
    is_invalid: bool


class Inventory:
    """Follows slices, taint rules and nodes, and writes the columns.

    Attributes:
        table: the columns.
        problems: by row of a node the pools of which it gets no device.
        rules: the taint rules by name.
    """

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self.table = DeviceTable()
        self._slices: dict[str, _Packed] = {}
        # Slices as they were just parsed, until they are written.
        self._fresh: dict[str, Slice] = {}
        self._of_pool: defaultdict[PoolKey, dict[str, None]] = defaultdict(dict)
        # Slices by the node that alone can use them, and those that several nodes may use.
        self._of_node: defaultdict[str, set[str]] = defaultdict(set)
        self._shared: set[str] = set()
        self._placed: dict[PoolKey, PlacedPool] = {}
        self._reaches: list[Where] = []
        self.rules: dict[str, TaintRule] = {}
        self.problems: dict[int, tuple[PoolProblem, ...]] = {}

    @property
    def has_shared(self) -> bool:
        """Whether there are devices that several nodes can use."""
        return bool(self._shared)

    def list_shared(self) -> set[PoolKey]:
        """List the pools of which several nodes can use devices."""
        return {self._slices[name].pool for name in self._shared}

    # Slices.

    @property
    def n_fresh(self) -> int:
        """How many slices are not written yet."""
        return len(self._fresh)

    def list_slices(self) -> list[str]:
        """List the names of all slices."""
        return list(self._slices)

    def list_pools(self) -> list[PoolKey]:
        """List all pools."""
        return [pool for pool, slices in self._of_pool.items() if slices]

    def find_pool(self, name: str) -> PoolKey | None:
        """Find the pool of a slice; None for a slice that is not there."""
        known = self._slices.get(name)
        return known.pool if known else None

    def has_same(self, found: objects.ResourceSlice) -> bool:
        """Whether a slice is known as it is, but for its metadata."""
        known = self._slices.get(found.metadata.name)
        return known is not None and known.decode().spec == found.spec

    def keep_slice(self, found: objects.ResourceSlice, parsed: Slice) -> None:
        """Keep a slice; its pool has to be written afterwards."""
        self.drop_slice(parsed.name)
        packed = zlib.compress(_encoder.encode(found), 1)
        one = _Packed(parsed.pool, parsed.generation, parsed.n_slices, parsed.where, packed)
        self._slices[parsed.name], self._fresh[parsed.name] = one, parsed
        self._of_pool[parsed.pool][parsed.name] = None
        if parsed.where is not None and parsed.where.node is not None:
            self._of_node[parsed.where.node].add(parsed.name)
        else:
            self._shared.add(parsed.name)

    def drop_slice(self, name: str) -> None:
        """Forget a slice; its pool has to be written afterwards."""
        old = self._slices.pop(name, None)
        self._fresh.pop(name, None)
        if old is None:
            return
        self._of_pool[old.pool].pop(name, None)
        self._shared.discard(name)
        if old.where is not None and old.where.node is not None:
            self._of_node[old.where.node].discard(name)
            if not self._of_node[old.where.node]:
                del self._of_node[old.where.node]

    def write_pool(self, pool: PoolKey) -> bool:
        """Write the devices of a pool anew, of which nothing is charged.

        Return whether the kinds of all devices have to be found anew: an attribute names single devices after all.
        """
        before = self._placed.pop(pool, None)
        if before is not None:
            before.give_back(self.table)
        parsed = [
            self._fresh.pop(name) if name in self._fresh else self._slices[name].unpack()
            for name in sorted(self._of_pool.get(pool, ()))
        ]
        is_new = [
            self.table.kinds.note_attributes(device) for one in parsed for device in one.devices
        ]
        if parsed:
            self._placed[pool] = place_pool(self.table, pool, parsed, self._find_taints)
        else:
            self._of_pool.pop(pool, None)
        self._note_reaches()
        return any(is_new)

    def _find_taints(self, pool: PoolKey, device: devices.Device) -> tuple[Taint, ...]:
        if not self.rules:
            return device.taints
        added = {one.taint for one in self.rules.values() if one.is_about(pool, device.name)}
        return tuple(sorted({*device.taints, *added}))

    def find_rows(self, pool: PoolKey, device: str) -> list[int]:
        """Find the rows of a device: one, unless its pool is being updated or has two devices of one name."""
        placed = self._placed.get(pool)
        return placed.find_rows(device) if placed else []

    def find_device(self, key: DeviceKey) -> devices.Device | None:
        """Find what a slice says of a device, which takes some time; None for a device that is gone."""
        found = self._find_source(key)
        return found[1] if found else None

    def read_pool(self, pool: PoolKey) -> dict[str, devices.Device]:
        """Read what the newest slices of a pool say of its devices, by name, which takes some time."""
        names = sorted(self._of_pool.get(pool, ()), key=lambda one: self._slices[one].generation)
        return {one.name: one for name in names for one in self._slices[name].unpack().devices}

    def find_term(self, key: DeviceKey) -> dict[str, Any] | None:
        """Find the term that selects the nodes on which a device can be used.

        None: it can be used on all nodes. Empty: on the node alone for which it is chosen.
        """
        pool = PoolKey(key.driver, key.pool)
        wheres = [self._slices[name].where for name in self._of_pool.get(pool, ())]
        if all(one is not None and one.node is not None for one in wheres):
            return {}
        found = self._find_source(key)
        if found is None:
            return {}
        one, device, raw = found
        where = one.where or device.where
        if device.binds_to_node or (where is not None and where.node is not None):
            return {}
        terms = raw.node_selector.node_selector_terms if raw.node_selector else None
        return msgspec.to_builtins(terms[0]) if terms else None

    def _find_source(
        self, key: DeviceKey
    ) -> tuple[Slice, devices.Device, objects.SliceSpec | objects.Device] | None:
        """Find the slice of a device, the device, and the object that has its node selector."""
        for name in sorted(self._of_pool.get(PoolKey(key.driver, key.pool), ())):
            found = self._slices[name].decode()
            for i, one in enumerate(found.spec.devices or ()):
                if one.name == key.name:
                    parsed = devices.read_slice(found)
                    raw = one if parsed.where is None else found.spec
                    return parsed, parsed.devices[i], raw
        return None

    # Nodes.

    def list_concerned(self, pools: Iterable[PoolKey]) -> set[int]:
        """List the rows of the nodes that can use any devices of these pools, or are near to it."""
        found: set[int] = set()
        for pool in pools:
            for name in self._of_pool.get(pool, ()):
                where = self._slices[name].where
                if where is None or where.node is None:
                    return set(self._nodes.rows.values())
                if (row := self._nodes.find_row(where.node)) >= 0:
                    found.add(row)
        return found

    def write_node(self, row: int) -> bool:
        """Write which devices a node has; return whether that has changed."""
        self.table.fit_nodes(self._nodes.capacity)
        facts = self._nodes.facts[row]
        spans: list[tuple[int, int]] = []
        problems: list[PoolProblem] = []
        if facts is not None:
            for number, where in enumerate(self._reaches):
                self.table.columns.reaches[number, row] = where.includes(facts.name, facts.labels)
            names = self._list_usable(facts.name, facts.labels)
            for pool, placed, slices in sorted(self._group_slices(names), key=_order_pools):
                if (problem := self._find_problem(pool, placed, slices)) is not None:
                    problems += problem
                    continue
                spans += [placed.slices[one].span for one in sorted(slices) if placed.slices[one].n]
        before = self.problems.pop(row, ())
        if problems:
            self.problems[row] = tuple(problems)
        has_changed = self.table.write_spans(row, spans, is_unsure=bool(problems))
        return has_changed or before != tuple(problems)

    def list_invalid(self) -> list[int]:
        """List the rows of the nodes that have pools whose slices contradict each other."""
        return [row for row, found in self.problems.items() if any(one.is_invalid for one in found)]

    def clear_node(self, row: int) -> None:
        """Take all devices from the row of a node that is gone."""
        self.problems.pop(row, None)
        if row < self.table.columns.unsure.size:
            self.table.write_spans(row, (), is_unsure=False)
            self.table.columns.reaches[:, row] = False

    def _list_usable(self, node: str, labels: Mapping[str, str]) -> Iterator[str]:
        yield from self._of_node.get(node, ())
        for name in self._shared:
            where = self._slices[name].where
            choices = self._list_choices(name) if where is None else (where,)
            if any(one.includes(node, labels) for one in choices):
                yield name

    def _list_choices(self, name: str) -> tuple[Where, ...]:
        placed = self._placed.get(self._slices[name].pool)
        return placed.slices[name].nodes if placed and name in placed.slices else ()

    def _group_slices(
        self, names: Iterable[str]
    ) -> Iterator[tuple[PoolKey, PlacedPool, list[str]]]:
        """Group slices by pool, and keep of each pool those of the highest generation."""
        by_pool: defaultdict[PoolKey, list[str]] = defaultdict(list)
        for name in names:
            by_pool[self._slices[name].pool].append(name)
        for pool, found in by_pool.items():
            there = sorted(found)
            newest = max(self._slices[name].generation for name in there)
            placed = self._placed.get(pool)
            # Slices that are not written yet come with their pool.
            names = [n for n in there if self._slices[n].generation == newest]
            names = [n for n in names if placed is not None and n in placed.slices]
            if placed is not None and names:
                yield pool, placed, names

    def _find_problem(
        self, pool: PoolKey, placed: PlacedPool, names: list[str]
    ) -> list[PoolProblem] | None:
        """Find why a node gets no device of a pool; None for no reason, and none where it is as if there was no pool."""
        first = self._slices[names[0]]
        if len(names) != first.n_slices:
            there = [self._slices[name] for name in self._of_pool[pool]]
            everywhere = [one for one in there if one.where is None or one.where.is_known]
            if any(one.generation > first.generation for one in everywhere):
                return []
            n_there = sum(one.generation == first.generation for one in everywhere)
            if n_there != first.n_slices:
                return [PoolProblem(pool, is_invalid=False)]
        is_invalid = first.generation in placed.invalid or placed.has_twins(names)
        return [PoolProblem(pool, is_invalid=True)] if is_invalid else None

    def _note_reaches(self) -> None:
        """Find the nodes of devices that say their own, where such are new."""
        for number in range(len(self._reaches), len(self.table.reaches)):
            where = self.table.reaches[number]
            self._reaches.append(where)
            self.table.fit_nodes(self._nodes.capacity)
            for name, row in self._nodes.rows.items():
                facts = self._nodes.facts[row]
                if facts is not None:
                    is_there = where.includes(name, facts.labels)
                    self.table.columns.reaches[number, row] = is_there


def _order_pools(one: tuple[PoolKey, PlacedPool, list[str]]) -> tuple[bool, PoolKey]:
    """Order pools by name, those last whose devices have to get ready first."""
    pool, placed, names = one
    return any(placed.slices[name].has_conditions for name in names), pool
