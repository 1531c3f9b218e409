"""Functions of optionals, and the one by which loops make maps."""

from __future__ import annotations

from typing import Any

from scheduler.devices.cel.errors import CelError
from scheduler.devices.cel.overloads import Library
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.values import (
    NONE,
    Duration,
    Optional,
    OuterMap,
    Uint,
    as_key,
    iterate_keys,
    show,
)


def _is_zero(value: Any) -> bool:
    if type(value) is Duration:
        return not value.nanos
    return value is None or (type(value) in _WITH_ZERO and not value)


_WITH_ZERO = frozenset([bool, int, Uint, float, str, bytes, list, dict, OuterMap])


def _get(_run: Run, value: Optional) -> Any:
    if not value.values:
        raise CelError("optional.none() dereference")
    return value.values[0]


def insert(_run: Run, entries: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    """Add an entry to a map that a loop is making; the map itself changes."""
    kept = as_key(key)
    if kept in entries:
        raise CelError(f"insert failed: key {show(key)} already exists")
    entries[kept] = value
    return entries


def insert_all(run: Run, entries: dict[Any, Any], more: dict[Any, Any]) -> dict[Any, Any]:
    """Add the entries of a map."""
    for key, value in zip(iterate_keys(more), more.values(), strict=True):
        insert(run, entries, key, value)
    return entries


OPTIONALS = Library(
    functions={
        "optional.of(V): optional(V)": lambda _, value: Optional(value),
        "optional.ofNonZeroValue(V): optional(V)": lambda _, value: (
            NONE if _is_zero(value) else Optional(value)
        ),
        "optional.none(): optional(V)": lambda _: NONE,
        "cel.@mapInsert(map(K, V), K, V): map(K, V)": insert,
        "cel.@mapInsert(map(K, V), map(K, V)): map(K, V)": insert_all,
    },
    members={
        "value(optional(V)): V": _get,
        "hasValue(optional(V)): bool": lambda _, value: bool(value.values),
        "or(optional(V), optional(V)): optional(V)": None,
        "orValue(optional(V), V): V": None,
    },
)
