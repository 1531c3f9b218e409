"""Parsed ResourceSlices, DeviceClasses and DeviceTaintRules.

Amounts are thousandths of a unit as integers, rounded up; what is larger than an int64 holds is capped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from scheduler.api import selectors, wire
from scheduler.api.claims import objects
from scheduler.api.quantities import BadQuantity, read_milli
from scheduler.api.selectors import Labels, NodeTerm
from scheduler.errors import BadInput

# The type of a value, and the value. A value without a type is never equal to another one, and neither is a list: only
# with DRAListTypeAttributes, which is off, does kube-scheduler compare lists.
Value = tuple[str, Any]
INT, BOOL, STRING, VERSION, LIST, VERSIONS = "int", "bool", "string", "version", "list", "versions"
NO_TYPE = ""
COMPARED = frozenset({INT, BOOL, STRING, VERSION})
Taint = tuple[str, str, str]
_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


class Policy(NamedTuple):
    """Which amounts of a capacity a request may consume: one of ``values``, or a range; either may be absent.

    Attributes:
        default: what a request consumes that does not name the capacity; None: the whole value.
        values: ascending; empty for a range, or for neither.
        least: the least of a range; None for no range.
        most, step: None for no such bound.
    """

    default: int | None
    values: tuple[int, ...] = ()
    least: int | None = None
    most: int | None = None
    step: int | None = None


class Amount(NamedTuple):
    """A capacity of a device; ``policy`` is None where any amount up to the value may be consumed."""

    value: int
    policy: Policy | None = None


class Draw(NamedTuple):
    """What a device draws of a set of counters while it is allocated: amounts by counter, sorted."""

    counter_set: str
    amounts: tuple[tuple[str, int], ...]


class Where(NamedTuple):
    """On which nodes devices can be used: on one by name, on those that match a term, or on all."""

    node: str | None = None
    terms: tuple[NodeTerm, ...] | None = None
    is_everywhere: bool = False

    @property
    def is_known(self) -> bool:
        """Whether it names any nodes: a later version of the API may do so in another way."""
        return self.node is not None or self.terms is not None or self.is_everywhere

    def includes(self, node: str, labels: Labels) -> bool:
        """Whether devices can be used on a node with these labels."""
        if self.node is not None:
            return self.node == node
        if self.terms is None:
            return self.is_everywhere
        return any(
            all(selectors.meets_requirement(one, labels) for one in term.labels)
            and all((node in one.values) == (one.operator == "In") for one in term.names)
            for term in self.terms
        )


class Device(NamedTuple):
    """A device.

    Attributes:
        name: its name in its pool.
        attributes: values by full name, ``domain/id``, sorted.
        capacities: by the name that is published, sorted.
        draws: what it draws of counters.
        taints: those that keep claims off, sorted.
        is_shareable: several claims may have it at once.
        binds_to_node: a claim that gets it can be used on the node only for which it was allocated.
        conditions, failures: the conditions that a bind waits for, and those that end it.
        where: its own nodes, None where the slice says them.
    """

    name: str
    attributes: tuple[tuple[str, Value], ...]
    capacities: tuple[tuple[str, Amount], ...]
    draws: tuple[Draw, ...]
    taints: tuple[Taint, ...]
    is_shareable: bool
    binds_to_node: bool
    conditions: tuple[str, ...]
    failures: tuple[str, ...]
    where: Where | None


class Slice(NamedTuple):
    """A ResourceSlice.

    Attributes:
        pool: the driver and the name of the pool.
        generation, n_slices: only the highest generation counts, and only if it has so many slices.
        where: None where each device has its own nodes.
        devices: in their order.
        counters: the counters of each set, sorted; either devices or counters.
    """

    name: str
    pool: PoolKey
    generation: int
    n_slices: int
    where: Where | None
    devices: tuple[Device, ...]
    counters: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]


class PoolKey(NamedTuple):
    """A pool is named by its driver and by a name of the driver's own."""

    driver: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


class DeviceClass(NamedTuple):
    """A DeviceClass.

    Attributes:
        selectors: CEL expressions, all of which a device must match; None for a selector of a kind that is not known.
        config: for each configuration the driver and its parameters, as they stand.
        extended: the extended resource that stands for the class; empty for none.
        created: creation time as the API writes it.
    """

    name: str
    selectors: tuple[str | None, ...]
    config: tuple[objects.ClassConfig, ...]
    extended: str
    created: str


class TaintRule(NamedTuple):
    """A DeviceTaintRule; ``driver``, ``pool`` and ``device`` are None where any will do."""

    name: str
    driver: str | None
    pool: str | None
    device: str | None
    taint: Taint

    def is_near(self, pool: PoolKey) -> bool:
        """Whether it may taint devices of a pool."""
        return self.driver in {None, pool.driver} and self.pool in {None, pool.name}

    def is_about(self, pool: PoolKey, device: str) -> bool:
        """Whether it taints a device."""
        return self.is_near(pool) and self.device in {None, device}


def read_slice(found: objects.ResourceSlice) -> Slice:
    """Parse a slice.

    Raises:
        BadInput: an amount is no quantity.
    """
    spec = found.spec
    pool = PoolKey(spec.driver, spec.pool.name)
    devices = tuple(
        read_device(one, pool.driver, f"spec.devices[{i}]")
        for i, one in enumerate(spec.devices or ())
    )
    counters = tuple(
        (one.name, _read_counters(one.counters, f"spec.sharedCounters[{i}]"))
        for i, one in enumerate(spec.shared_counters or ())
    )
    where = None if spec.per_device_node_selection else _read_where(spec)
    if any(
        use.compatibility_groups
        for one in spec.devices or ()
        for use in one.consumes_counters or ()
    ):
        # As in kube-scheduler without DRADeviceCompatibilityGroups: no node can use the slice.
        where = Where()
    return Slice(
        found.metadata.name,
        pool,
        spec.pool.generation,
        spec.pool.resource_slice_count,
        where,
        devices,
        counters,
    )


def read_device(found: objects.Device, driver: str, field: str) -> Device:
    """Parse a device of a driver; ``field`` is where it stands.

    Raises:
        BadInput: as ``read_slice``.
    """
    attributes: dict[str, Value] = {}
    for name, value in sorted((found.attributes or {}).items()):
        # A name without a domain is one of the driver's; what is published in full comes first.
        full = name if "/" in name else f"{driver}/{name}"
        if "/" in name or full not in (found.attributes or {}):
            attributes[full] = _read_value(value)
    where = _read_where(found)
    return Device(
        found.name,
        tuple(sorted(attributes.items())),
        tuple(
            (name, _read_amount(one, f"{field}.capacity[{name}]"))
            for name, one in sorted((found.capacity or {}).items())
        ),
        tuple(
            Draw(one.counter_set, _read_counters(one.counters, f"{field}.consumesCounters[{i}]"))
            for i, one in enumerate(found.consumes_counters or ())
        ),
        read_taints(found.taints or ()),
        found.allow_multiple_allocations,
        found.binds_to_node,
        tuple(found.binding_conditions or ()),
        tuple(found.binding_failure_conditions or ()),
        where if where.is_known else None,
    )


def read_class(found: objects.DeviceClass) -> DeviceClass:
    """Parse a class."""
    spec, meta = found.spec, found.metadata
    return DeviceClass(
        meta.name,
        tuple(one.cel.expression if one.cel else None for one in spec.selectors or ()),
        tuple(spec.config or ()),
        spec.extended_resource_name or "",
        meta.creation_timestamp,
    )


def read_taint_rule(found: objects.DeviceTaintRule) -> TaintRule | None:
    """Parse a rule; None for a rule that taints no device, or whose taint keeps no claim off."""
    chosen, taints = found.spec.device_selector, read_taints([found.spec.taint])
    if chosen is None or not taints:
        return None
    return TaintRule(found.metadata.name, chosen.driver, chosen.pool, chosen.device, taints[0])


def read_taints(found: Iterable[objects.DeviceTaint]) -> tuple[Taint, ...]:
    """Parse those taints that keep claims off, sorted."""
    return tuple(sorted({(t.key, t.value, t.effect) for t in found if t.effect in _EFFECTS}))


def read_quantity(value: objects.Quantity, field: str) -> int:
    """Read an amount in thousandths.

    Raises:
        BadInput: it is no quantity.
    """
    try:
        return read_milli(value)
    except BadQuantity as error:
        raise BadInput(field, str(error)) from None


def _read_value(found: objects.Attribute) -> Value:
    if found.int_ is not None:
        return INT, found.int_
    if found.bool_ is not None:
        return BOOL, found.bool_
    if found.string is not None:
        return STRING, found.string
    if found.version is not None:
        return VERSION, found.version
    if found.versions is not None:
        return VERSIONS, tuple(found.versions)
    lists = (one for one in (found.ints, found.bools, found.strings) if one is not None)
    values = next(lists, None)
    return (NO_TYPE, "") if values is None else (LIST, tuple(values))


def _read_amount(found: objects.Capacity, field: str) -> Amount:
    value, given = read_quantity(found.value, f"{field}.value"), found.request_policy
    if given is None:
        return Amount(value)

    def read(amount: objects.Quantity | None) -> int | None:
        return None if amount is None else read_quantity(amount, f"{field}.requestPolicy")

    span = given.valid_range
    return Amount(
        value,
        Policy(
            read(given.default),
            tuple(sorted(read_quantity(one, field) for one in given.valid_values or ())),
            *((read(span.min) or 0, read(span.max), read(span.step)) if span else ()),
        ),
    )


def _read_counters(found: Mapping[str, objects.Counter], field: str) -> tuple[tuple[str, int], ...]:
    return tuple(
        (name, read_quantity(one.value, f"{field}.counters[{name}]"))
        for name, one in sorted(found.items())
    )


def _read_where(found: Any) -> Where:
    """Read where a slice or a device can be used, by the fields that both have."""
    if found.node_name:
        return Where(found.node_name)
    chosen: wire.NodeTerms | None = found.node_selector
    if chosen is not None:
        terms = chosen.node_selector_terms or ()
        return Where(terms=selectors.read_node_terms(terms))
    return Where(is_everywhere=bool(found.all_nodes))
