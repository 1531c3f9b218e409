"""What a ResourceClaim requests, parsed once for all claims that request the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakValueDictionary

import msgspec

from scheduler.api.claims import objects
from scheduler.api.claims.devices import Taint, read_quantity
from scheduler.errors import BadInput

# The most devices that the API lets a claim have.
DEVICES_MAX = 32
# The most alternatives that the API lets a request have.
_CHOICES_MAX = 8
_ALL, _COUNTED = "All", "ExactCount"
# A selector of so many letters takes a millisecond to compile; a loop within a loop takes as long to evaluate.
_LETTERS_A_UNIT = 512
_LOOP = re.compile(r"\.\s*(?:all|exists|exists_one|existsOne|map|filter|transform\w*)\s*\(")
_encoder = msgspec.json.Encoder(order="sorted")


class Toleration(NamedTuple):
    """A toleration of a device's taints; an empty key or effect stands for any."""

    key: str
    is_any_value: bool
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        """Whether it covers a taint (key, value, effect)."""
        key, value, effect = taint
        return (
            self.effect in {"", effect}
            and self.key in {"", key}
            and (self.is_any_value or self.value == value)
        )


class Leaf(NamedTuple):
    """A request, or one of the alternatives of a request.

    Attributes:
        name: as results name it: ``request`` or ``request/alternative``.
        of_class: the name of the class.
        selectors: CEL expressions; None for a selector of a kind that is not known.
        n: so many devices; 0 for all that match.
        is_admin: it gets devices whether or not they are in use, and does not use them.
        tolerations: of taints.
        capacity: what it consumes of each of its devices, in thousandths, by the name that is published.
        problem: why no device can be allocated for it; empty for nothing.
    """

    name: str
    of_class: str
    selectors: tuple[str | None, ...]
    n: int
    is_admin: bool
    tolerations: tuple[Toleration, ...]
    capacity: tuple[tuple[str, int], ...]
    problem: str


class Request(NamedTuple):
    """A request: the first of its leaves that can be had; ``is_choice``: the leaves are alternatives with names."""

    name: str
    leaves: tuple[Leaf, ...]
    is_choice: bool

    @property
    def n_least(self) -> int:
        """The number of devices that it needs at least, where ``All`` counts none."""
        return min((leaf.n for leaf in self.leaves), default=0)

    def measure_worth(self, leaf: Leaf) -> int:
        """Return the points of an alternative: 8 for the first one, 7 for the second …; 0 where there is no choice."""
        return _CHOICES_MAX - self.leaves.index(leaf) if self.is_choice else 0


class Constraint(NamedTuple):
    """A constraint: all devices of some requests have one value of an attribute, or each has a value of its own.

    Attributes:
        requests: names of requests or leaves; empty for all requests.
        attribute: its full name; empty for a constraint of a kind that is not known.
        is_distinct: each device has another value.
    """

    requests: frozenset[str]
    attribute: str
    is_distinct: bool

    def is_about(self, request: str, leaf: str) -> bool:
        """Whether it is about the devices of a leaf of a request."""
        return not self.requests or request in self.requests or leaf in self.requests


class Config(NamedTuple):
    """A configuration of a claim: the names of requests or leaves that it is about, empty for all, and ``opaque`` in JSON."""

    requests: tuple[str, ...]
    opaque: bytes


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class ClaimShape:
    """What claims with one spec request; equal shapes are one object, and are compared by identity.

    Attributes:
        requests, constraints: in their order.
        config: the claim's own configuration, as it stands.
        tolerations: for each leaf by name its tolerations in JSON, which results repeat.
        resources: of a claim that stands for extended resources the resource of each request: the request counts only on
            nodes where a class serves this resource. Empty for any other claim.
        leaves: all leaves with their requests, in order.
        problem: why no claim of the shape can be allocated, as kube-scheduler says it; empty for nothing.
        cost: what its selectors may cost to compile and evaluate, in units of about a millisecond, by how long they are and
            how many loops are in each other; 0 for usual selectors.
    """

    requests: tuple[Request, ...]
    constraints: tuple[Constraint, ...]
    config: tuple[Config, ...]
    tolerations: Mapping[str, bytes]
    resources: tuple[str, ...]
    leaves: tuple[tuple[Request, Leaf], ...]
    problem: str
    cost: int


class ClaimShapes:
    """The shapes of all claims that are there; a shape goes with its last claim."""

    def __init__(self) -> None:
        self._shapes: WeakValueDictionary[tuple[bytes, tuple[str, ...]], ClaimShape] = (
            WeakValueDictionary()
        )

    def get_shape(self, spec: objects.ClaimSpec, resources: tuple[str, ...] = ()) -> ClaimShape:
        """Return the shape of a spec; ``resources`` as in ``ClaimShape``."""
        key = _encoder.encode(spec), resources
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = _read_shape(spec, resources)
        return shape


def _read_shape(spec: objects.ClaimSpec, resources: tuple[str, ...]) -> ClaimShape:
    given = spec.devices
    tolerations = {
        name: _encoder.encode(leaf.tolerations)
        for one in given.requests or ()
        for name, leaf in _list_leaves(one)
        if leaf.tolerations
    }
    requests = tuple(_read_request(one) for one in given.requests or ())
    constraints = tuple(_read_constraint(one) for one in given.constraints or ())
    leaves = tuple((one, leaf) for one in requests for leaf in one.leaves)
    return ClaimShape(
        requests,
        constraints,
        tuple(
            Config(tuple(one.requests or ()), _encoder.encode(one.opaque))
            for one in given.config or ()
        ),
        tolerations,
        resources,
        leaves,
        _find_problem(requests, constraints),
        sum(_estimate_cost(text) for _, leaf in leaves for text in leaf.selectors if text),
    )


def _find_problem(requests: Iterable[Request], constraints: Iterable[Constraint]) -> str:
    """Find why nothing can be allocated for these requests, as ``ClaimShape.problem``."""
    for request in requests:
        for leaf in request.leaves:
            if leaf.problem:
                return f"request {request.name}: {leaf.problem}"
        if not request.leaves:
            return f"request {request.name}: missing device class name (unsupported request type?)"
    for i, one in enumerate(constraints):
        if not one.attribute:
            return f"constraint #{i}: empty constraint (unsupported constraint type?)"
    n_before = 0
    for request in requests:
        n = request.n_least
        if n_before + n > DEVICES_MAX:
            return (
                f"request {request.name}: adding {n} devices exceeds the claim limit of "
                f"{DEVICES_MAX}, with {n_before} already accounted for"
            )
        n_before += n
    return ""


def _estimate_cost(text: str) -> int:
    """Estimate what a selector may cost, without parsing it."""
    n_loops = len(_LOOP.findall(text))
    return len(text) // _LETTERS_A_UNIT + max(0, n_loops * n_loops - 1)


def _list_leaves(found: objects.DeviceRequest) -> list[tuple[str, objects.ExactRequest]]:
    if found.exactly is not None:
        return [(found.name, found.exactly)]
    return [(f"{found.name}/{one.name}", one) for one in found.first_available or ()]


def _read_request(found: objects.DeviceRequest) -> Request:
    leaves = tuple(_read_leaf(name, one) for name, one in _list_leaves(found))
    return Request(found.name, leaves, is_choice=found.exactly is None)


def _read_leaf(name: str, found: objects.ExactRequest) -> Leaf:
    mode, problem, count = found.allocation_mode or _COUNTED, "", found.count or 1
    if not found.device_class_name:
        problem = "missing device class name (unsupported request type?)"
    elif mode not in {_ALL, _COUNTED}:
        problem = f"unsupported count mode {mode}"
    elif mode == _COUNTED and count < 1:
        problem = f"exact count {count} is not positive"
    selectors = tuple(one.cel.expression if one.cel else None for one in found.selectors or ())
    for i, one in enumerate(selectors):
        if one is None and not problem:
            problem = f"selector #{i}: CEL expression empty (unsupported selector type?)"
    if found.derived_attributes and not problem:
        problem = "cannot handle request with derived attributes, the feature is disabled"
    given = found.capacity.requests if found.capacity else None
    try:
        capacity = tuple(
            (key, read_quantity(amount, f"capacity.requests[{key}]"))
            for key, amount in sorted((given or {}).items())
        )
    except BadInput as error:
        capacity, problem = (), problem or str(error)
    return Leaf(
        name,
        found.device_class_name,
        selectors,
        0 if mode == _ALL else count,
        bool(found.admin_access),
        tuple(
            Toleration(one.key, one.operator == "Exists", one.value, one.effect)
            for one in found.tolerations or ()
        ),
        capacity,
        problem,
    )


def _read_constraint(found: objects.DeviceConstraint) -> Constraint:
    attribute = found.match_attribute or found.distinct_attribute or ""
    return Constraint(
        frozenset(found.requests or ()), attribute, is_distinct=found.match_attribute is None
    )
