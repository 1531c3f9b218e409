"""Conversions between types, and the type of a value."""

from __future__ import annotations

import math
import re
from math import ceil
from typing import Any

from scheduler.devices.cel.errors import CelError
from scheduler.devices.cel.overloads import Library, Work
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.times import show_duration, show_timestamp
from scheduler.devices.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    TypeName,
    Uint,
    name_type,
    show_double,
)

_TRUE = frozenset(["1", "t", "T", "TRUE", "true", "True"])
_FALSE = frozenset(["0", "f", "F", "FALSE", "false", "False"])
_INTEGER = re.compile(r"[+-]?[0-9]{1,1000}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_HEXADECIMAL = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F_]+\.?[0-9a-fA-F_]*|\.[0-9a-fA-F_]+)[pP][+-]?[0-9]+", re.ASCII
)
_WORDS = frozenset(["inf", "infinity", "nan"])
# Texts that are longer are numbers to no one; Python would read them for a long time.
_LONGEST = 1000


def _fail(value: Any, wanted: str) -> CelError:
    return CelError(f"type conversion error from '{name_type(value)}' to '{wanted}'")


def _fit_int(value: int) -> int:
    if INT_MIN <= value <= INT_MAX:
        return value
    raise CelError("integer overflow")


def _fit_uint(value: int) -> Uint:
    if 0 <= value <= UINT_MAX:
        return Uint(value)
    raise CelError("unsigned integer overflow")


def _int_of_double(_run: Run, value: float) -> int:
    if math.isnan(value) or not -(2.0**63) < value < 2.0**63:
        raise CelError("integer overflow")
    return int(value)


def _uint_of_double(_run: Run, value: float) -> Uint:
    if math.isnan(value) or not 0 <= value < 2.0**64:
        raise CelError("unsigned integer overflow")
    return Uint(value)


def _int_of_string(_run: Run, text: str) -> int:
    if not _INTEGER.fullmatch(text) or not INT_MIN <= int(text) <= INT_MAX:
        raise _fail(text, "int")
    return int(text)


def _uint_of_string(_run: Run, text: str) -> Uint:
    if text[:1] in {"+", "-"} or not _INTEGER.fullmatch(text) or int(text) > UINT_MAX:
        raise _fail(text, "uint")
    return Uint(text)


def read_double(text: str) -> float:
    """Read a double as Go does.

    Raises:
        CelError: it is none.
    """
    try:
        if len(text) > _LONGEST:
            raise _fail(text, "double")
        if text.lstrip("+-").lower() in _WORDS and len(text) - len(text.lstrip("+-")) <= 1:
            if text[0] in "+-" and text[1:].lower() == "nan":
                raise _fail(text, "double")
            return float(text)
        if _HEXADECIMAL.fullmatch(text) and "_" not in text:
            return float.fromhex(text)
        value = float(text) if _DECIMAL.fullmatch(text) else math.inf
    except OverflowError:
        value = math.inf
    if math.isinf(value):
        raise _fail(text, "double")
    return value


def _bool_of_string(_run: Run, text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise _fail(text, "bool")


def _string_of_bytes(_run: Run, value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None


def _same(_run: Run, value: Any) -> Any:
    return value


def _cost(kind: type[str | bytes]) -> Any:
    return lambda value: ceil(len(value) * 0.1) if type(value) is kind else 1


_STRINGS: dict[str, Work] = {
    "string": _same,
    "bool": lambda _, a: "true" if a else "false",
    "bytes": _string_of_bytes,
    "double": lambda _, a: show_double(a),
    "duration": lambda _, a: show_duration(a),
    "int": lambda _, a: str(a),
    "timestamp": lambda _, a: show_timestamp(a),
    "uint": lambda _, a: str(int(a)),
    "ip": lambda _, a: a.text,
    "cidr": lambda _, a: a.text,
}

CONVERSIONS = Library(
    functions={
        "type(A): type(A)": lambda _, a: TypeName(name_type(a)),
        "dyn(A): dyn": _same,
        "bool(bool): bool": _same,
        "bool(string): bool": _bool_of_string,
        "bytes(bytes): bytes": _same,
        "bytes(string): bytes": lambda _, a: a.encode(),
        "double(double): double": _same,
        "double(int): double": lambda _, a: float(a),
        "double(string): double": lambda _, a: read_double(a),
        "double(uint): double": lambda _, a: float(a),
        "int(int): int": _same,
        "int(double): int": _int_of_double,
        "int(duration): int": lambda _, a: a.nanos,
        "int(string): int": _int_of_string,
        "int(timestamp): int": lambda _, a: a.nanos // 10**9,
        "int(uint): int": lambda _, a: _fit_int(int(a)),
        "uint(uint): uint": _same,
        "uint(double): uint": _uint_of_double,
        "uint(int): uint": lambda _, a: _fit_uint(a),
        "uint(string): uint": _uint_of_string,
        **{f"string({kind}): string": work for kind, work in _STRINGS.items()},
    },
    sure_costs={"bytes": _cost(str), "string": _cost(bytes)},
)
# Of constants, these are computed when an expression is compiled; a failure is a mistake of the expression.
CONVERTERS = frozenset(
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"]
)
