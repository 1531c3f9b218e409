"""``format`` of texts: clauses such as ``%s`` and what may stand in each.

The same walk over a format checks it when an expression is compiled (with types) and carries it out (with values).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from scheduler.devices.cel.conversions import CONVERSIONS, read_double
from scheduler.devices.cel.errors import CelError
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.semver import quote
from scheduler.devices.cel.values import (
    MAPS,
    Duration,
    Timestamp,
    TypeName,
    Uint,
    iterate_keys,
    name_type,
    show,
)

_SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_STRINGS = CONVERSIONS.functions
_WORDS = frozenset(["NaN", "Infinity", "-Infinity"])
_PRECISION = 6
_WIDEST = 1000
_UNTIL = "could not find end of precision specifier"
_EVERY = frozenset(
    [
        "list",
        "map",
        "int",
        "uint",
        "double",
        "bool",
        "string",
        "bytes",
        "type",
        "null_type",
        "google.protobuf.Timestamp",
        "google.protobuf.Duration",
    ]
)
_TAKES = {
    "s": _EVERY,
    "d": frozenset(["int", "uint"]),
    "f": frozenset(["double", "string"]),
    "e": frozenset(["double", "string"]),
    "b": frozenset(["int", "uint", "bool"]),
    "x": frozenset(["int", "uint", "string", "bytes"]),
    "X": frozenset(["int", "uint", "string", "bytes"]),
    "o": frozenset(["int", "uint"]),
}
_SAYS = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and"
    " timestamps, was given {}",
    "d": "decimal clause can only be used on integers, was given {}",
    "f": "fixed-point clause can only be used on doubles, was given {}",
    "e": "scientific clause can only be used on doubles, was given {}",
    "b": "only integers and bools can be formatted as binary, was given {}",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    "o": "octal clause can only be used on integers, was given {}",
}


class Clause(NamedTuple):
    """One place of a format: the argument that it shows, its letter, and how many digits are wanted."""

    argument: int
    letter: str
    precision: int


class Misfit(Exception):  # noqa: N818 - reads as a noun where it is caught
    """An argument of a format has a type that its clause does not take."""

    def __init__(self, clause: Clause, name: str) -> None:
        says = _SAYS[clause.letter.lower()].format(name)
        super().__init__(f"error during formatting: {says}")
        self.clause = clause


def check_clause(clause: Clause, name: str) -> None:
    """Check that a type may stand in a clause.

    Raises:
        Misfit: it may not.
    """
    if name not in _TAKES[clause.letter]:
        raise Misfit(clause, name)


def walk(text: str, count: int, visit: Callable[[Clause], str]) -> tuple[str, int]:
    """Return a format with what a visitor says for each clause, and how many clauses it has.

    Raises:
        CelError: the format is malformed, or has more clauses than there are arguments.
    """
    parts: list[str] = []
    at = argument = 0
    while (found := text.find("%", at)) >= 0:
        parts.append(text[at:found])
        at = found + 1
        if text.startswith("%", at):
            parts.append("%")
            at += 1
            continue
        if argument >= count:
            raise CelError(f"index {argument} out of range")
        if at >= len(text):
            raise CelError("unexpected end of string")
        clause, at = _read_clause(text, at, argument)
        parts.append(visit(clause))
        argument += 1
    parts.append(text[at:])
    return "".join(parts), argument


def _read_clause(text: str, at: int, argument: int) -> tuple[Clause, int]:
    start = "could not parse formatting clause: "
    precision = _PRECISION
    if text[at] == ".":
        end = at + 1
        while end < len(text) and text[end] in "0123456789":
            end += 1
        if end >= len(text):
            raise CelError(f"{start}error while parsing precision: {_UNTIL}")
        digits = text[at + 1 : end]
        if not digits or len(digits) > 18:
            problem = "invalid syntax" if not digits else "value out of range"
            wrong = f'error while converting precision to integer: strconv.Atoi: parsing "{digits}": {problem}'
            raise CelError(f"{start}error while parsing precision: {wrong}")
        precision, at = int(digits), end
    letter = text[at]
    if letter not in _TAKES:
        raise CelError(f'{start}unrecognized formatting clause "{letter}"')
    return Clause(argument, letter, precision), at + 1


def format_text(run: Run, text: str, args: list[Any]) -> str:
    """Return a text with arguments in the places that it has for them."""

    def visit(clause: Clause) -> str:
        shown = _show(run, clause, args[clause.argument])
        run.toil(len(shown) // 10)
        return shown

    try:
        return walk(text, len(args), visit)[0]
    except Misfit as misfit:
        raise CelError(str(misfit)) from None


def _show(run: Run, clause: Clause, value: Any) -> str:
    check_clause(clause, name_type(value))
    letter = clause.letter
    if letter == "s":
        return _show_any(run, value)
    if letter == "d":
        return str(int(value))
    if letter in "fe":
        return _show_double(clause, value)
    if type(value) in {str, bytes}:
        shown = (value.encode() if type(value) is str else value).hex()
    else:
        shown = format(int(value), letter.lower())
    return shown.upper() if letter == "X" else shown


def _show_double(clause: Clause, value: Any) -> str:
    if type(value) is str:
        if value not in _WORDS:
            raise Misfit(clause, "string")
        value = read_double(value)
    if clause.precision > _WIDEST:
        raise CelError(f"error during formatting: more than {_WIDEST} digits")
    is_fixed = clause.letter == "f"
    if not math.isfinite(value):
        shown = "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"
    elif is_fixed:
        shown = f"{value:,.{clause.precision}f}"
    else:
        number, _, exponent = f"{value:.{_PRECISION}e}".partition("e")
        shown = f"{number}×10{exponent.replace('+', '').translate(_SUPERSCRIPTS)}"
    # Upstream takes the precision of a power for its width.
    return shown if is_fixed else shown.rjust(clause.precision)


def _show_any(run: Run, value: Any) -> str:
    run.toil(1)
    cls = type(value)
    if cls is list:
        return f"[{', '.join(_show_inside(run, item) for item in value)}]"
    if cls in MAPS:
        pairs = (
            (_show_key(run, shown), _show_inside(run, kept))
            for shown, kept in zip(iterate_keys(value), value.values(), strict=True)
        )
        return f"{{{', '.join(f'{key}:{item}' for key, item in sorted(pairs))}}}"
    if value is None:
        return "null"
    if cls is TypeName:
        return str(value)
    work = _STRINGS[f"string({_SHORT.get(cls, name_type(value))}): string"]
    assert work is not None  # noqa: S101 - all conversions do something
    try:
        return str(work(run, value))
    except CelError as error:
        raise CelError(
            f'error during formatting: could not convert argument "{error}" to string'
        ) from None


_SHORT = {Duration: "duration", Timestamp: "timestamp"}


def _show_key(run: Run, key: Any) -> str:
    if type(key) not in {str, bool, int, Uint}:
        raise CelError(
            f"error during formatting: no formatting function for map key of type {name_type(key)}"
        )
    return quote(key) if type(key) is str else _show_any(run, key)


def _show_inside(run: Run, value: Any) -> str:
    cls = type(value)
    if name_type(value) not in _EVERY:
        raise CelError(f"error during formatting: no formatting function for {name_type(value)}")
    if cls is float:
        return f"{value:.{_PRECISION}f}" if math.isfinite(value) else f'"{show(value)}"'
    shown = _show_any(run, value)
    if cls is str:
        return quote(shown)
    return f"b{quote(shown)}" if cls is bytes else shown
