"""Reads plain values from YAML or JSON one at a time, with errors that name the field."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any, TypeVar

from scheduler.errors import BadInput

T = TypeVar("T")

_BRIEF = reprlib.Repr()
_BRIEF.maxlevel, _BRIEF.maxdict, _BRIEF.maxlist = 2, 4, 4
_BRIEF.maxstring, _BRIEF.maxlong, _BRIEF.maxother = 160, 40, 80


def quote(raw: Any) -> str:
    """Return a value as a message shows it: on one line and not too long, whatever it is."""
    try:
        return _BRIEF.repr(raw)
    except ValueError:
        # Python refuses to print a number of more than some thousand digits.
        return "a number with thousands of digits"


def read_mapping(raw: Any, field: str) -> Mapping[str, Any]:
    """Read an object; an absent one is empty."""
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise BadInput(field, "must be an object")
    return raw


def read_items(raw: Any, field: str, kind: type[T]) -> list[T]:
    """Read a list of texts or of objects; an absent one is empty."""
    if raw is None:
        return []
    if not isinstance(raw, list):
        raise BadInput(field, "must be a list")
    for i, item in enumerate(raw):
        if not isinstance(item, kind):
            wanted = "a text" if kind is str else "an object"
            raise BadInput(f"{field}[{i}]", f"{quote(item)} is not {wanted}")
    return raw


def refuse_unknown(raw: Mapping[str, Any], field: str, allowed: tuple[str, ...]) -> None:
    """Refuse fields that are not allowed."""
    for key in raw:
        if key not in allowed:
            raise BadInput(f"{field}.{key}", f"unknown field; allowed are {', '.join(allowed)}")


def read_flag(raw: Any, field: str) -> bool:
    """Read true or false."""
    if not isinstance(raw, bool):
        raise BadInput(field, f"{raw!r} is neither true nor false")
    return raw


def read_integer(raw: Any, field: str, low: int, high: int) -> int:
    """Read an integer within bounds."""
    if not isinstance(raw, int) or isinstance(raw, bool) or not low <= raw <= high:
        raise BadInput(field, f"{quote(raw)} is not an integer within {low}..{high}")
    return raw


def write_camel(name: str) -> str:
    """Write the name of an attribute as the name of a field: ``per_node`` as ``perNode``."""
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)
