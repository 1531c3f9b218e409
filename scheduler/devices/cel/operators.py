"""Operators: arithmetic, comparison, membership."""

from __future__ import annotations

import math
from math import ceil
from typing import Any

from scheduler.devices.cel.errors import CelError
from scheduler.devices.cel.overloads import Library, Work
from scheduler.devices.cel.quantity import Quantity
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.semver import Semver
from scheduler.devices.cel.times import add_times, check_moment, check_span
from scheduler.devices.cel.values import (
    INT_MAX,
    INT_MIN,
    MAPS,
    NUMBERS,
    UINT_MAX,
    Address,
    Duration,
    NamedFormat,
    Network,
    Timestamp,
    Uint,
    Url,
    contains,
    has_entry,
    is_equal,
    measure,
    measure_inside,
)

_NAN = "NaN values cannot be ordered"
ADDED = frozenset([int, Uint, float, str, bytes, list, Duration, Timestamp])
COMPARED = frozenset([bool, int, Uint, float, str, bytes, Duration, Timestamp])
# The classes of what an operator may have on its left; strings, and times, say no to everything else by themselves.
_LEFT = {
    "_+_": ADDED,
    "_-_": frozenset([int, Uint, float, Duration, Timestamp]),
    "_*_": frozenset([int, Uint, float]),
    "_/_": frozenset([int, Uint, float]),
    "_%_": frozenset([int, Uint]),
    "-_": frozenset([int, float, bool, Duration]),
    "!_": frozenset([int, float, bool, Duration]),
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), COMPARED),
}
RECEIVERS = frozenset([str, Duration, Timestamp])
# Kubernetes' own values cost 1 to compare, whatever their size.
_OF_KUBERNETES = frozenset([Quantity, Semver, Address, Network, NamedFormat, Url])


def _refuse(name: str) -> Work:
    def refuse(_run: Run, left: Any, *_rest: Any) -> Any:
        cls = type(left)
        is_bare = name == "!_" or cls in _LEFT[name] or cls in RECEIVERS
        raise CelError("no such overload" if is_bare else f"no such overload: {name}")

    return refuse


def _negate_any(run: Run, value: Any) -> Any:
    """Negate what has no overload for it: a duration, if it is only known when it is there."""
    return check_span(-value.nanos) if type(value) is Duration else _refuse("-_")(run, value)


def _check_int(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise CelError("integer overflow")


def _check_uint(value: int) -> Uint:
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise CelError("unsigned integer overflow")


def _divide_int(_run: Run, a: int, b: int) -> int:
    if b == 0:
        raise CelError("division by zero")
    quotient = abs(a) // abs(b)
    return _check_int(quotient if (a < 0) == (b < 0) else -quotient)


def _divide_uint(_run: Run, a: int, b: int) -> Uint:
    if b == 0:
        raise CelError("division by zero")
    return Uint(a // b)


def _divide_double(_run: Run, a: float, b: float) -> float:
    if b == 0:
        if a == 0 or math.isnan(a):
            return math.nan
        return math.copysign(math.inf, a) * math.copysign(1, b)
    try:
        return a / b
    except OverflowError:
        return math.copysign(math.inf, a) * math.copysign(1, b)


def _modulo_int(_run: Run, a: int, b: int) -> int:
    if b == 0:
        raise CelError("modulus by zero")
    if a == INT_MIN and b == -1:
        raise CelError("integer overflow")
    rest = abs(a) % abs(b)
    return rest if a >= 0 else -rest


def _modulo_uint(_run: Run, a: int, b: int) -> Uint:
    if b == 0:
        raise CelError("modulus by zero")
    return Uint(int(a) % int(b))


def _add_texts(_run: Run, a: Any, b: Any) -> Any:
    return a + b


def _add_lists(run: Run, a: list[Any], b: list[Any]) -> list[Any]:
    run.toil(len(a) + len(b))
    return a + b


def _subtract_moments(_run: Run, a: Timestamp, b: Timestamp) -> Duration:
    return check_span(a.nanos - b.nanos)


def compare(a: Any, b: Any) -> int:
    """Return -1, 0 or 1 for values that have an order.

    Raises:
        CelError: these two have none.
    """
    cls, other = type(a), type(b)
    if cls in NUMBERS and other in NUMBERS:
        if a != a or b != b:  # noqa: PLR0124 - NaN
            raise CelError(_NAN)
        if float in {cls, other}:
            # As cel-go compares an int and a double.
            a, b = float(a), float(b)
    elif cls is not other or cls not in COMPARED:
        raise CelError("no such overload")
    elif cls in {Duration, Timestamp}:
        a, b = a.nanos, b.nanos
    return int(a > b) - int(a < b)


def compare_any(a: Any, b: Any) -> int | None:
    """Return -1, 0 or 1 for values that have an order, nothing for others."""
    try:
        return compare(a, b)
    except CelError:
        return None


def _less(_run: Run, a: Any, b: Any) -> bool:
    return compare(a, b) < 0


def _less_equal(_run: Run, a: Any, b: Any) -> bool:
    return compare(a, b) <= 0


def _greater(_run: Run, a: Any, b: Any) -> bool:
    return compare(a, b) > 0


def _greater_equal(_run: Run, a: Any, b: Any) -> bool:
    return compare(a, b) >= 0


def _equal(run: Run, a: Any, b: Any) -> bool:
    answer = is_equal(a, b, run)
    if answer is None:
        raise CelError("no such overload")
    return answer


def _unequal(run: Run, a: Any, b: Any) -> bool:
    return is_equal(a, b, run) is not True


def _is_in(run: Run, item: Any, where: Any) -> bool:
    if type(where) is list:
        return contains(where, item, run)
    if type(where) in MAPS:
        return has_entry(where, item)
    raise CelError("no such overload")


def _list_orders() -> dict[str, Work]:
    """Write every pair of types that have an order."""
    orders = {"_<_": _less, "_<=_": _less_equal, "_>_": _greater, "_>=_": _greater_equal}
    numbers = {
        "int": ("int", "double", "uint"),
        "uint": ("uint", "double", "int"),
        "double": ("double", "int", "uint"),
    }
    pairs = [("bool", "bool"), *((one, two) for one, others in numbers.items() for two in others)]
    pairs += [(one, one) for one in ("string", "bytes", "timestamp", "duration")]
    return {
        f"{name}({one}, {two}): bool": work for name, work in orders.items() for one, two in pairs
    }


def _cost_equal(a: Any, b: Any) -> int:
    return 1 if type(a) in _OF_KUBERNETES else _cost_unequal(a, b)


def _cost_unequal(a: Any, b: Any) -> int:
    return ceil(min(measure_inside(a), measure_inside(b)) * 0.1)


def _cost_order(a: Any, b: Any) -> int:
    return _cost_unequal(a, b) if type(a) in {str, bytes} or type(b) in {str, bytes} else 1


def _cost_sum(a: Any, b: Any) -> int:
    is_text = type(a) in {str, bytes} or type(b) in {str, bytes}
    return ceil((measure(a) + measure(b)) * 0.1) if is_text else 1


OPERATORS = Library(
    functions={
        # In upstream's order: the first that fits decides about types that are not known yet.
        "_+_(bytes, bytes): bytes": _add_texts,
        "_+_(double, double): double": lambda _, a, b: a + b,
        "_+_(duration, duration): duration": add_times,
        "_+_(duration, timestamp): timestamp": add_times,
        "_+_(timestamp, duration): timestamp": add_times,
        "_+_(int, int): int": lambda _, a, b: _check_int(a + b),
        "_+_(list(A), list(A)): list(A)": _add_lists,
        "_+_(string, string): string": _add_texts,
        "_+_(uint, uint): uint": lambda _, a, b: _check_uint(a + b),
        "_-_(double, double): double": lambda _, a, b: a - b,
        "_-_(duration, duration): duration": lambda _, a, b: check_span(a.nanos - b.nanos),
        "_-_(int, int): int": lambda _, a, b: _check_int(a - b),
        "_-_(timestamp, duration): timestamp": lambda _, a, b: check_moment(a.nanos - b.nanos),
        "_-_(timestamp, timestamp): duration": _subtract_moments,
        "_-_(uint, uint): uint": lambda _, a, b: _check_uint(a - b),
        "_*_(double, double): double": lambda _, a, b: a * b,
        "_*_(int, int): int": lambda _, a, b: _check_int(a * b),
        "_*_(uint, uint): uint": lambda _, a, b: _check_uint(a * b),
        "_/_(double, double): double": _divide_double,
        "_/_(int, int): int": _divide_int,
        "_/_(uint, uint): uint": _divide_uint,
        "_%_(int, int): int": _modulo_int,
        "_%_(uint, uint): uint": _modulo_uint,
        "-_(double): double": lambda _, a: -a,
        "-_(int): int": lambda _, a: _check_int(-a),
        "!_(bool): bool": lambda _, a: not a,
        "_==_(A, A): bool": _equal,
        "_!=_(A, A): bool": _unequal,
        "@in(A, list(A)): bool": _is_in,
        "@in(A, map(A, B)): bool": _is_in,
        **_list_orders(),
        "_?_:_(bool, A, A): A": None,
        "_&&_(bool, bool): bool": None,
        "_||_(bool, bool): bool": None,
        "@not_strictly_false(bool): bool": None,
        "_[_](list(A), int): A": None,
        "_[_](map(A, B), A): B": None,
        "_[_](optional(list(V)), int): optional(V)": None,
        "_[_](optional(map(K, V)), K): optional(V)": None,
        "_[?_](list(V), int): optional(V)": None,
        "_[?_](optional(list(V)), int): optional(V)": None,
        "_[?_](map(K, V), K): optional(V)": None,
        "_[?_](optional(map(K, V)), K): optional(V)": None,
    },
    costs={"_==_": _cost_equal, "_!=_": _cost_unequal},
    sure_costs={
        "_+_": _cost_sum,
        **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _cost_order),
        "@in": lambda _, where: len(where) if type(where) is list else 1,
    },
    otherwise={name: _refuse(name) for name in _LEFT} | {"@in": _is_in, "-_": _negate_any},
)
