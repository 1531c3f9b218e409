"""Which devices the requests of a claim may have, by what the devices are: selectors, taints, and capacities when unused.

Selectors are CEL. An expression is compiled once, and evaluated once for each kind of devices. Only where it reads
attributes that name the single device is it evaluated for devices, once for those with equal values.

Source: k8s.io/dynamic-resource-allocation v0.37.1, structured/internal/incubating, isSelectable and selectorsMatch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from scheduler.api.claims.amounts import find_consumed, write_quantity
from scheduler.api.claims.devices import VERSION, VERSIONS, DeviceClass, Taint, Value
from scheduler.api.claims.requests import ClaimShape, Leaf
from scheduler.devices import cel
from scheduler.schema import columns as c
from scheduler.state.claims.kinds import DeviceKind
from scheduler.state.claims.store import Claims
from scheduler.state.claims.table import DeviceTable
from scheduler.state.structures.recent import Recent

# A compiled expression takes some 110 bytes for each letter.
_EXPRESSIONS_MAX, _EXPRESSIONS_BYTES_MAX, _BYTES_OF_A_LETTER = 4096, 48 << 20, 110
# What evaluating all selectors of a claim may cost, by Kubernetes' measure, and what each device adds to that.
_COST_MAX, _COST_OF_A_DEVICE, _COST_OF_A_LETTER = 200_000, 32, 4
# Selectors that cost too much are evaluated again when there were so many times the devices.
_FEWER_DEVICES = 2
_COSTLY = "claim {claim}: its selectors cost too much to evaluate"
_OVER_LIMIT = "cost limit exceeded"
# Stands in a problem for the name of the claim.
CLAIM = "{claim}"


class Mask(NamedTuple):
    """The devices that a leaf may have.

    Attributes:
        kinds: [K] whether it may have devices of a kind.
        fails: [K] whether a selector fails on a kind; why, by kind: ``problems``.
        barred: [K] whether the kind would do but for its taints.
        picked: [D] which single devices it may have; None where the kinds say all.
        consumed: by kind what it consumes of a shareable device.
    """

    kinds: c.Flags
    fails: c.Flags
    barred: c.Flags
    picked: c.Flags | None
    consumed: Mapping[int, tuple[int, ...]]
    problems: Mapping[int, str]


@dataclass(slots=True)
class Masks:
    """The masks of all leaves of a claim, in their order; ``problem`` is why the claim cannot be allocated at all."""

    versions: tuple[int, int, int]
    leaves: list[Mask]
    problem: str = ""
    n_devices: int = 0

    def may_change(self, n_devices: int) -> bool:
        """Whether other devices may change them, although they are of known kinds; now there are ``n_devices``."""
        if self.problem == _COSTLY:
            # With fewer devices the selectors cost less.
            return n_devices * _FEWER_DEVICES < self.n_devices
        return bool(self.problem) or any(one.picked is not None for one in self.leaves)


class _Unjudged(Exception):  # noqa: N818 - it never leaves the module
    """A selector fails on a device; the text says why."""


class _TooCostly(Exception):  # noqa: N818 - likewise
    """The selectors of a claim have cost as much as they may."""


class _Expression:
    """A CEL expression: compiled, with its answers by kind."""

    def __init__(self, text: str) -> None:
        self.selector: cel.Selector | None = None
        self.problem = ""
        try:
            self.selector = cel.compile_selector(text)
        except cel.CompileError as error:
            self.problem = f"CEL compile error: {error}"
        self.answers: dict[int, bool | str] = {}

    def reads_any(self, own: set[str]) -> bool:
        """Whether the expression may read any of these attributes, by full name."""
        if self.selector is None:
            return False
        read = self.selector.attributes
        return read is None or not read.isdisjoint(own)

    def evaluate(self, device: cel.SelectedDevice, cache: _Cache) -> bool | str:
        """Return whether a device matches, or why the expression fails on it.

        Raises:
            _TooCostly: the claim may cost no more.
        """
        if self.selector is None:
            return self.problem
        if cache.left <= 0:
            raise _TooCostly
        try:
            return self.selector.matches(device, min(cel.COST_LIMIT, cache.left))
        except cel.EvaluationError as error:
            if _OVER_LIMIT in str(error):
                if cache.left < cel.COST_LIMIT:
                    raise _TooCostly from None
                # It would take as long for each kind of devices.
                self.problem = f"CEL runtime error: {error}"
            return f"CEL runtime error: {error}"
        finally:
            cache.left -= self.selector.spent + 1


class _Cache:
    """What was evaluated for the claims of one cluster; ``left`` is what the claim at hand may still cost."""

    def __init__(self) -> None:
        self.left = 0
        self.expressions: Recent[str, _Expression] = Recent(
            _EXPRESSIONS_MAX, _EXPRESSIONS_BYTES_MAX, lambda text, _: _BYTES_OF_A_LETTER * len(text)
        )
        self.masks: WeakKeyDictionary[ClaimShape, Masks] = WeakKeyDictionary()
        # By kind: a device with what all devices of the kind have in common.
        self._devices: dict[int, cel.SelectedDevice] = {}

    def get_device(self, number: int, kind: DeviceKind) -> cel.SelectedDevice:
        """Return a device of a kind, without what single devices have."""
        found = self._devices.get(number)
        if found is None:
            found = self._devices[number] = _make_device(kind, dict(kind.attributes))
        return found

    def get_expression(self, text: str | None, where: str) -> _Expression:
        """Return an expression that compiles.

        Raises:
            _Unjudged: there is none, or it does not compile.
            _TooCostly: the claim may cost no more.
        """
        if text is None:
            raise _Unjudged(f"{where}: CEL expression empty (unsupported selector type?)")
        found = self.expressions.get(text)
        if found is None:
            if self.left <= 0:
                raise _TooCostly
            self.left -= _COST_OF_A_LETTER * len(text)
            found = self.expressions.put(text, _Expression(text))
        if found.problem:
            raise _Unjudged(f"{where}: {found.problem}")
        return found


_caches: WeakKeyDictionary[Claims, _Cache] = WeakKeyDictionary()


def get_masks(claims: Claims, shape: ClaimShape) -> Masks:
    """Return the masks of a claim for the classes and devices that are there now."""
    cache = _caches.get(claims)
    if cache is None:
        cache = _caches[claims] = _Cache()
    table = claims.table
    versions = claims.version, table.version, table.written
    known = cache.masks.get(shape)
    if known is not None:
        if known.versions == versions:
            return known
        is_same = known.versions[:2] == versions[:2]
        if is_same and not known.may_change(table.n_devices):
            known.versions = versions
            return known
    found = cache.masks[shape] = Masks(versions, [], n_devices=table.n_devices)
    cache.left = _COST_MAX + _COST_OF_A_DEVICE * table.n_devices
    for request in shape.requests:
        try:
            masks = [_judge_leaf(claims, cache, leaf) for leaf in request.leaves]
        except _TooCostly:
            found.problem = _COSTLY
            found.leaves += [_make_empty(table)] * (len(shape.leaves) - len(found.leaves))
            return found
        found.leaves += masks
        if not any(one.kinds.any() or one.barred.any() for one in masks) and not found.problem:
            # No other device would do either.
            found.problem = next((text for one in masks for text in one.problems.values()), "")
    return found


def _judge_leaf(claims: Claims, cache: _Cache, leaf: Leaf) -> Mask:
    """Make the mask of a leaf."""
    table, of_class = claims.table, claims.classes.get(leaf.of_class)
    known = table.kinds.table.values
    kinds = np.zeros(len(known), np.bool_)
    picked: c.Flags | None = None
    consumed: dict[int, tuple[int, ...]] = {}
    fails, barred = np.zeros(len(known), np.bool_), np.zeros(len(known), np.bool_)
    problems: dict[int, str] = {}
    if of_class is None:
        return _make_empty(table)
    selectors = _list_selectors(of_class, leaf)
    requested = dict(leaf.capacity)
    for number in table.list_kinds():
        kind = known[number]
        amounts = find_consumed(requested, kind.capacities)
        try:
            found = _judge_kind(cache, selectors, table, number)
        except _Unjudged as error:
            fails[number], problems[number] = True, str(error)
            continue
        if found is False or amounts is None:
            continue
        if list_untolerated(leaf, kind):
            barred[number] = True
            continue
        kinds[number] = True
        if not isinstance(found, bool):
            picked = np.ones(table.columns.kind.size, np.bool_) if picked is None else picked
            rows = table.list_rows(number)
            picked[rows[~found]] = False
        if kind.is_shareable:
            consumed[number] = amounts
    return Mask(kinds, fails, barred, picked, consumed, problems)


def _list_selectors(of_class: DeviceClass, leaf: Leaf) -> list[tuple[str, int, str | None]]:
    """List all selectors that a device must match: whose each is, its number there, and its text."""
    return [
        (owner, i, text)
        for owner, texts in (
            (f"class {of_class.name}", of_class.selectors),
            (f"claim {CLAIM}", leaf.selectors),
        )
        for i, text in enumerate(texts)
    ]


def find_refusing(claims: Claims, leaf: Leaf, row: int) -> tuple[str, int, str] | None:
    """Find the first selector that a device does not match: whose it is, its number there, and its text.

    None: the device matches all of them, or one of them fails on it. What this costs counts for no claim.
    """
    of_class, cache, table = claims.classes.get(leaf.of_class), _caches.get(claims), claims.table
    if of_class is None or cache is None:
        return None
    kind = table.kinds.table.values[int(table.columns.kind[row])]
    device = _make_device(kind, table.find_attributes(row))
    cache.left = _COST_MAX
    try:
        for owner, i, text in _list_selectors(of_class, leaf):
            expression = cache.get_expression(text, owner)
            answer = expression.evaluate(device, cache)
            if answer is not True:
                return None if isinstance(answer, str) else (owner, i, text or "")
    except (_Unjudged, _TooCostly):
        pass
    return None


def list_untolerated(leaf: Leaf, kind: DeviceKind) -> list[Taint]:
    """List the taints of a kind that a leaf does not tolerate."""
    return [one for one in kind.taints if not any(each.tolerates(one) for each in leaf.tolerations)]


def _make_empty(table: DeviceTable) -> Mask:
    """Make the mask of a leaf that may have no device."""
    n = len(table.kinds.table)
    kinds, fails, barred = (np.zeros(n, np.bool_) for _ in range(3))
    return Mask(kinds, fails, barred, None, {}, {})


def _judge_kind(
    cache: _Cache,
    selectors: Iterable[tuple[str, int, str | None]],
    table: DeviceTable,
    number: int,
) -> bool | c.Flags:
    """Find whether the devices of a kind match, or which of them [n].

    Raises:
        _Unjudged: a selector fails on one of them.
    """
    kind = table.kinds.table.values[number]
    found: c.Flags | None = None
    for owner, i, text in selectors:
        where = f"{owner}: selector #{i}"
        expression = cache.get_expression(text, where)
        if expression.reads_any(table.kinds.own):
            rows = table.list_rows(number)
            found = np.ones(rows.size, np.bool_) if found is None else found
            found &= _judge_devices((expression, cache), table, rows, found, where)
            if not found.any():
                return False
            continue
        answer = expression.answers.get(number)
        if answer is None:
            device = cache.get_device(number, kind)
            answer = expression.answers[number] = expression.evaluate(device, cache)
        if isinstance(answer, str):
            rows = table.list_rows(number)
            at = int(rows[0] if found is None else rows[found][0])
            raise _Unjudged(f"{where} on device {table.find_key(at)}: {answer}")
        if not answer:
            return False
    return True if found is None or bool(found.all()) else found


def _judge_devices(
    at_hand: tuple[_Expression, _Cache],
    table: DeviceTable,
    rows: c.Ints,
    among: c.Flags,
    where: str,
) -> c.Flags:
    """Evaluate an expression for single devices; devices that differ in nothing that it reads share the answer.

    Raises:
        _Unjudged: a selector fails on one of them.
    """
    expression, cache = at_hand
    found = np.zeros(rows.size, np.bool_)
    read = expression.selector.attributes if expression.selector is not None else None
    values = table.columns.values[table.list_attributes(read)][:, rows]
    answers: dict[bytes, bool | str] = {}
    for i in np.flatnonzero(among).tolist():
        key = values[:, i].tobytes()
        answer = answers.get(key)
        if answer is None:
            kind = table.kinds.table.values[int(table.columns.kind[rows[i]])]
            device = _make_device(kind, table.find_attributes(int(rows[i])))
            answer = answers[key] = expression.evaluate(device, cache)
        if isinstance(answer, str):
            raise _Unjudged(f"{where} on device {table.find_key(int(rows[i]))}: {answer}")
        found[i] = answer
    return found


def _make_device(kind: DeviceKind, attributes: Mapping[str, Value]) -> cel.SelectedDevice:
    return cel.SelectedDevice(
        driver=kind.driver,
        allow_multiple_allocations=kind.is_shareable,
        attributes={name: _make_value(value) for name, value in attributes.items()},
        capacity={
            name: cel.read_quantity(write_quantity(amount.value))
            for name, amount in kind.capacities
        },
    )


def _make_value(value: Value) -> cel.Value:
    type_, found = value
    if type_ == VERSION:
        return cel.Version(str(found))
    if type_ == VERSIONS and isinstance(found, tuple):
        return tuple(cel.Version(str(one)) for one in found)
    return found if type_ else cel.BROKEN
