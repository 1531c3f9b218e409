"""Static types: what the checker knows of a value before there is one.

A type parameter has a name that begins with ``_``; ``Bindings`` says what such a parameter has turned out to be.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Kind(NamedTuple):
    """A type: its name, and the types of what is in it."""

    name: str
    parts: tuple[Kind, ...] = ()

    def __str__(self) -> str:
        """Return the type as complaints write it."""
        name = _WRITTEN.get(self.name, self.name)
        return f"{name}({', '.join(map(str, self.parts))})" if self.parts else name

    def spell(self) -> str:
        """Return the type with its full name."""
        return (
            f"{self.name}({', '.join(part.spell() for part in self.parts)})"
            if self.parts
            else self.name
        )


# What complaints call types that have longer names.
_WRITTEN = {
    "null_type": "null",
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "duration",
    "error": "!error!",
}

BOOL, INT, UINT, DOUBLE = Kind("bool"), Kind("int"), Kind("uint"), Kind("double")
STRING, BYTES, NULL = Kind("string"), Kind("bytes"), Kind("null_type")
DYN, ERROR = Kind("dyn"), Kind("error")
QUANTITY = Kind("kubernetes.Quantity")
DEVICE = Kind("kubernetes.DRADevice")

_NEVER_NULL = frozenset(["bool", "int", "uint", "double", "string", "bytes", "list", "map", "type"])


def is_ground(kind: Kind) -> bool:
    """Whether there is no parameter in a type."""
    return kind.name[0] != "_" and all(map(is_ground, kind.parts))


def list_of(element: Kind) -> Kind:
    """Return the type of lists of a type."""
    return Kind("list", (element,))


def map_of(key: Kind, value: Kind) -> Kind:
    """Return the type of maps from a type to another."""
    return Kind("map", (key, value))


def optional_of(value: Kind) -> Kind:
    """Return the type of a value that may be missing."""
    return Kind("optional_type", (value,))


def unwrap_optional(kind: Kind) -> tuple[Kind, bool]:
    """Return what is in an optional, and whether it is one."""
    return (kind.parts[0], True) if kind.name == "optional_type" else (kind, False)


# What a device is to an expression.
FIELDS = {
    "driver": STRING,
    "allowMultipleAllocations": BOOL,
    "attributes": map_of(STRING, map_of(STRING, DYN)),
    "capacity": map_of(STRING, map_of(STRING, QUANTITY)),
}
# Names of types, which are values in an expression.
NAMED = {
    kind.name: Kind("type", (kind,))
    for kind in (
        *(BOOL, INT, UINT, DOUBLE, STRING, BYTES, NULL, list_of(DYN), map_of(DYN, DYN)),
        *(optional_of(DYN), Kind("net.IP"), Kind("net.CIDR")),
        *(Kind("google.protobuf.Timestamp"), Kind("google.protobuf.Duration")),
    )
} | {"type": Kind("type", (Kind("type"),))}

_TOKENS = re.compile(r"[\w.]+|[(),]")


def read_kind(text: str) -> Kind:
    """Read a type as the tables of functions write it, such as ``list(A)``; one capital letter is a parameter."""
    kind, _ = _read(_TOKENS.findall(text), 0)
    return kind


def _read(tokens: list[str], at: int) -> tuple[Kind, int]:
    name, at = tokens[at], at + 1
    parts = []
    if at < len(tokens) and tokens[at] == "(":
        while tokens[at] != ")":
            part, at = _read(tokens, at + 1)
            parts.append(part)
        at += 1
    if len(name) == 1:
        name = f"_{name}"
    return Kind(_SHORT.get(name, name), tuple(parts)), at


_SHORT = {
    "quantity": "kubernetes.Quantity",
    "semver": "kubernetes.Semver",
    "url": "kubernetes.URL",
    "named_format": "kubernetes.NamedFormat",
    "ip": "net.IP",
    "cidr": "net.CIDR",
    "optional": "optional_type",
    "timestamp": "google.protobuf.Timestamp",
    "duration": "google.protobuf.Duration",
}


class Bindings:
    """What type parameters stand for, as the checker finds out."""

    def __init__(self) -> None:
        self._bound: dict[str, Kind] = {}
        self._made = 0

    def make_parameter(self) -> Kind:
        """Return a new parameter."""
        self._made += 1
        return Kind(f"_var{self._made - 1}")

    def make_fresh(self, kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
        """Return types with parameters of their own instead of those in them."""
        fresh: dict[str, Kind] = {}
        return tuple(self._freshen(kind, fresh) for kind in kinds)

    def _freshen(self, kind: Kind, fresh: dict[str, Kind]) -> Kind:
        if kind.name[0] == "_":
            if kind.name not in fresh:
                fresh[kind.name] = self.make_parameter()
            return fresh[kind.name]
        if not kind.parts:
            return kind
        return Kind(kind.name, tuple(self._freshen(part, fresh) for part in kind.parts))

    def resolve(self, kind: Kind, *, finally_dyn: bool = False) -> Kind:
        """Put in what is known; a parameter that stands for nothing yet stays, or becomes ``dyn``."""
        while kind.name[0] == "_":
            bound = self._bound.get(kind.name)
            if bound is None:
                return DYN if finally_dyn else kind
            kind = bound
        if not kind.parts:
            return kind
        return Kind(
            kind.name, tuple(self.resolve(part, finally_dyn=finally_dyn) for part in kind.parts)
        )

    def accept(self, given: tuple[Kind, ...], wanted: tuple[Kind, ...]) -> bool:
        """Say whether values of types may be given where types are wanted, and learn from it if so."""
        if len(given) != len(wanted):
            return False
        if given == wanted:
            return True
        before = dict(self._bound)
        if all(map(self._accepts, given, wanted)):
            return True
        self._bound = before
        return False

    def _accepts(self, one: Kind, other: Kind) -> bool:
        if other.name[0] == "_":
            valid, was_bound = self._binds(one, other)
            if valid or was_bound:
                return valid
        if one.name[0] == "_":
            return self._binds(other, one)[0]
        if {one.name, other.name} & {"dyn", "error"}:
            return True
        if "null_type" in {one.name, other.name}:
            there = other if one.name == "null_type" else one
            return there.name not in _NEVER_NULL
        is_same = one.name == other.name and (
            one.name == "type" or len(one.parts) == len(other.parts)
        )
        return is_same and (one.name == "type" or all(map(self._accepts, one.parts, other.parts)))

    def _binds(self, kind: Kind, parameter: Kind) -> tuple[bool, bool]:
        """Return whether a parameter can stand for a type, and whether it already stood for one."""
        if kind == parameter:
            return True, True
        bound = self._bound.get(parameter.name)
        if bound is not None:
            if kind == bound:
                return True, True
            if self._accepts(kind, bound):
                general = choose_general(kind, bound)
                if not self._mentions(general, parameter):
                    self._bound[parameter.name] = general
                return True, True
            return False, True
        if self._mentions(kind, parameter):
            return False, False
        self._bound[parameter.name] = kind
        return True, False

    def _mentions(self, kind: Kind, parameter: Kind) -> bool:
        if kind == parameter:
            return True
        if kind.name[0] == "_":
            bound = self._bound.get(kind.name)
            return bound is not None and self._mentions(bound, parameter)
        return any(self._mentions(part, parameter) for part in kind.parts)


def choose_general(one: Kind, other: Kind) -> Kind:
    """Return the more general of two types that go together."""
    return one if _is_general(one, other) else other


def _is_general(one: Kind, other: Kind) -> bool:
    if one.name == "dyn" or one.name[0] == "_":
        return True
    if other.name == "dyn" or other.name[0] == "_" or one.name != other.name:
        return False
    if one.name == "type":
        return True
    return len(one.parts) == len(other.parts) and all(map(_is_general, one.parts, other.parts))
