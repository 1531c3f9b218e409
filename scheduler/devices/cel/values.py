"""Values: those of Python where there are such, and what is equal to what.

``int`` is an int of 64 bits, ``float`` a double, ``list`` and ``dict`` are never changed once an expression has them.
Keys of maps that are booleans are kept as ``TRUE_KEY`` and ``FALSE_KEY``, for Python takes ``True`` for 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from scheduler.devices.cel.errors import LimitError
from scheduler.devices.cel.quantity import Quantity
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.semver import Semver

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1


class Uint(int):
    """An unsigned int of 64 bits."""

    __slots__ = ()


class TypeName(str):
    """A type as a value: its name."""

    __slots__ = ()


class Optional:
    """A value that may be missing."""

    __slots__ = ("values",)

    def __init__(self, *values: Any) -> None:
        self.values = values


class OuterMap(dict[str, dict[str, Any]]):
    """The attributes of a device by domain: a domain that is not there is looked up as an empty map."""

    __slots__ = ()

    def __missing__(self, domain: Any) -> dict[str, Any]:
        return _EMPTY


class Address:
    """An IP address: its bytes, 4 or 16."""

    __slots__ = ("packed", "text")

    def __init__(self, packed: bytes, text: str) -> None:
        self.packed = packed
        self.text = text


class Network:
    """A network: an address and how many of its bits matter."""

    __slots__ = ("address", "bits")

    def __init__(self, address: Address, bits: int) -> None:
        self.address = address
        self.bits = bits

    @property
    def text(self) -> str:
        """The network as people write it."""
        return f"{self.address.text}/{self.bits}"


class Url:
    """A URL in parts."""

    __slots__ = ("host", "path", "query", "scheme", "text")

    def __init__(self, text: str, scheme: str, host: str, path: str, query: str) -> None:
        self.text = text
        self.scheme = scheme
        self.host = host
        self.path = path
        self.query = query


class NamedFormat:
    """A format that texts may have, by its name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Duration:
    """A span of time in nanoseconds."""

    __slots__ = ("nanos",)

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos


class Timestamp:
    """A moment: nanoseconds since 1970, and the offset in seconds at which it was written."""

    __slots__ = ("nanos", "offset")

    def __init__(self, nanos: int) -> None:
        self.nanos = nanos
        self.offset = 0


class Failed:
    """Stands for an argument that is an error, where the cost of a call is counted."""

    __slots__ = ()


class _Key:
    """A key that Python would take for another: it is only equal to itself."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


# Of a list or a map, messages show as many elements.
_SHOWN = 20
_EMPTY: dict[str, Any] = {}
NONE = Optional()
FAILED = Failed()
TRUE_KEY, FALSE_KEY = _Key(True), _Key(False)

# The class of each sort of value: its name to expressions, and to Go, which some messages name.
TYPES: dict[type, tuple[str, str]] = {
    bool: ("bool", "types.Bool"),
    int: ("int", "types.Int"),
    Uint: ("uint", "types.Uint"),
    float: ("double", "types.Double"),
    str: ("string", "types.String"),
    bytes: ("bytes", "types.Bytes"),
    type(None): ("null_type", "types.Null"),
    list: ("list", "*types.baseList"),
    dict: ("map", "*types.baseMap"),
    OuterMap: ("map", "cel.mapper"),
    Optional: ("optional_type", "*types.Optional"),
    TypeName: ("type", "*types.Type"),
    Quantity: ("kubernetes.Quantity", "cel.Quantity"),
    Semver: ("kubernetes.Semver", "cel.Semver"),
    Address: ("net.IP", "cel.IP"),
    Network: ("net.CIDR", "cel.CIDR"),
    Url: ("kubernetes.URL", "cel.URL"),
    NamedFormat: ("kubernetes.NamedFormat", "cel.Format"),
    Duration: ("google.protobuf.Duration", "types.Duration"),
    Timestamp: ("google.protobuf.Timestamp", "types.Timestamp"),
    Failed: ("error", "*types.Err"),
}
_CLASSES = {name: cls for cls, (name, _) in reversed(TYPES.items())}
# What Go can neither put into a map nor look up there.
UNHASHABLE = frozenset([bytes, Semver, NamedFormat])
NUMBERS = frozenset([int, Uint, float])
# Values of these are equal by Python's own judgement if both are of one class; others of their class never fail.
PLAIN = frozenset([bool, int, Uint, float, str, bytes, TypeName])
MAPS = frozenset([dict, OuterMap])


def name_type(value: Any) -> str:
    """Return the name of a value's type."""
    return TYPES[type(value)][0]


def name_for_go(value: Any) -> str:
    """Return the name of a value's class in upstream's code, which some of its messages show."""
    name = TYPES[type(value)][1]
    return f"*{name}" if type(value) is Quantity and value.is_sum else name


def find_class(name: str) -> type | None:
    """Return the class of the values of a type."""
    return _CLASSES.get(name)


def show(value: Any) -> str:
    """Write a value as it stands in messages."""
    writer = _SHOWS.get(type(value))
    return writer(value) if writer else name_type(value)


def show_double(value: float) -> str:
    """Write a double as Go does: with an exponent from a million on, and below a ten-thousandth."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
    sign = "-" if math.copysign(1, value) < 0 else ""
    _, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    figures = "".join(map(str, digits))
    point = len(figures) + int(exponent)
    if figures == "0":
        shown = "0"
    elif not -4 < point <= 6:
        rest = f".{figures[1:]}" if len(figures) > 1 else ""
        shown = f"{figures[0]}{rest}e{'-' if point < 1 else '+'}{abs(point - 1):02}"
    elif point <= 0:
        shown = f"0.{'0' * -point}{figures}"
    elif point >= len(figures):
        shown = figures.ljust(point, "0")
    else:
        shown = f"{figures[:point]}.{figures[point:]}"
    return sign + shown


def _show_list(items: list[Any]) -> str:
    return f"[{', '.join(map(show, items[:_SHOWN]))}]"


def _show_map(entries: dict[Any, Any]) -> str:
    pairs = itertools.islice(entries.items(), _SHOWN)
    return f"{{{', '.join(f'{show(key)}: {show(item)}' for key, item in pairs)}}}"


_SHOWS: dict[type, Callable[[Any], str]] = {
    bool: lambda value: "true" if value else "false",
    float: show_double,
    str: str,
    int: str,
    Uint: lambda value: str(int(value)),
    TypeName: str,
    type(None): lambda _: "null",
    list: _show_list,
    dict: _show_map,
    OuterMap: _show_map,
    Semver: lambda value: str(value.text),
    _Key: lambda key: show(key.value),
}


def as_key(value: Any) -> Any:
    """Return a value as a map keeps it as a key.

    Raises:
        LimitError: upstream breaks at such a key, which ends the evaluation.
    """
    cls = type(value)
    if cls is bool:
        return TRUE_KEY if value else FALSE_KEY
    if cls in UNHASHABLE:
        raise LimitError(f"internal error: runtime error: hash of unhashable type {TYPES[cls][1]}")
    return value if cls is str or cls in NUMBERS or value is None else _Key(value)


def iterate_keys(values: Iterable[Any]) -> list[Any]:
    """Return keys of a map as values."""
    return [key.value if type(key) is _Key else key for key in values]


def find_entry(entries: dict[Any, Any], key: Any) -> tuple[Any, bool]:
    """Return what a map has for a key, and whether it has it."""
    kept = _find_key(key)
    if kept is not _EMPTY and kept in entries:
        return entries[kept], True
    return (_EMPTY, True) if type(entries) is OuterMap else (None, False)


def has_entry(entries: dict[Any, Any], key: Any) -> bool:
    """Say whether a map really has a key.

    Raises:
        LimitError: upstream breaks at such a key, which ends the evaluation.
    """
    kept = _find_key(key)
    if kept is _EMPTY and entries and type(entries) is dict:
        as_key(key)
    return kept is not _EMPTY and kept in entries


def _find_key(key: Any) -> Any:
    """Return a value as maps may have it as a key, or ``_EMPTY`` if none has it."""
    cls = type(key)
    if cls is bool:
        return TRUE_KEY if key else FALSE_KEY
    return key if cls is str or cls in NUMBERS or key is None else _EMPTY


def is_equal(one: Any, other: Any, run: Run) -> bool | None:
    """Say whether two values are equal; none where their types cannot be compared."""
    cls, other_cls = type(one), type(other)
    if cls is other_cls and cls in PLAIN:
        return bool(one == other)
    if one is None or other is None:
        return one is other
    if cls in _COMPARED:
        return _COMPARED[cls](one, other, run)
    # Kubernetes' own types end in an error beside any other.
    if cls is not other_cls or (cls is Quantity and other.is_sum):
        return False if cls in _EVER_COMPARED else None
    return bool(_KEPT_IN[cls](one) == _KEPT_IN[cls](other))


def _same_number(one: Any, other: Any, _run: Run) -> bool:
    if type(other) not in NUMBERS:
        return False
    if type(one) is float or type(other) is float:
        return float(one) == float(other)
    return int(one) == int(other)


def _same_list(one: list[Any], other: Any, run: Run) -> bool:
    if type(other) is not list or len(one) != len(other):
        return False
    run.toil(len(one))
    # Elements that cannot be compared do not make lists differ, as it is in cel-go.
    return all(is_equal(a, b, run) is not False for a, b in zip(one, other, strict=True))


def _same_map(one: dict[Any, Any], other: Any, run: Run) -> bool:
    if type(other) not in MAPS or len(one) != len(other):
        return False
    run.toil(len(one))
    for key, value in one.items():
        there, found = find_entry(other, key.value if type(key) is _Key else key)
        if not found or is_equal(value, there, run) is False:
            return False
    return True


def _same_optional(one: Optional, other: Any, run: Run) -> bool | None:
    if type(other) is not Optional or len(one.values) != len(other.values):
        return False
    return is_equal(one.values[0], other.values[0], run) if one.values else True


_COMPARED: dict[type, Callable[[Any, Any, Run], bool | None]] = {
    **dict.fromkeys(NUMBERS, _same_number),
    list: _same_list,
    dict: _same_map,
    OuterMap: _same_map,
    Optional: _same_optional,
}


_EVER_COMPARED = PLAIN | {Duration, Timestamp}
# What of a value decides whether it is equal to another of its type.
_KEPT_IN: dict[type, Callable[[Any], Any]] = {
    Quantity: lambda value: value,
    Semver: lambda value: value,
    Address: lambda value: value.packed,
    Network: lambda value: (value.address.packed, value.bits),
    Duration: lambda value: value.nanos,
    Timestamp: lambda value: value.nanos,
    Url: lambda value: value.text,
    NamedFormat: lambda value: value.name,
}


def contains(items: list[Any], item: Any, run: Run) -> bool:
    """Say whether a list has an element that is equal to a value."""
    run.toil(len(items))
    return any(is_equal(item, one, run) for one in items)


def measure(value: Any) -> int:
    """Return the size of a value as the costs count it."""
    cls = type(value)
    if cls in {str, bytes, list, dict, OuterMap}:
        return len(value)
    if cls is Address:
        return len(value.packed)
    if cls is Network:
        return int((value.bits + 7) // 8)
    return 1


def measure_inside(value: Any) -> int:
    """Return the size of a value, or of what is in it if it is an optional."""
    if type(value) is Optional and value.values:
        return measure_inside(value.values[0])
    return measure(value)
