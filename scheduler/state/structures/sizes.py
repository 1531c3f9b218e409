"""Estimates how much memory values take; caches are bounded in bytes by these estimates."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np

_ListParts = Callable[[Any], Iterable[Any]]
# Types of most values, which have no parts.
_WHOLE = frozenset({str, int, bool, float})


def estimate_bytes(*values: Any) -> int:
    """Estimate the bytes of values and all their parts; each object counts once, but texts in lists count each time."""
    left: list[Any] = list(values)
    known: set[int] = set()
    n = 0
    while left:
        one = left.pop()
        if one is None or id(one) in known:
            continue
        known.add(id(one))
        n += sys.getsizeof(one)
        if type(one) in _WHOLE:
            continue
        if isinstance(one, np.ndarray):
            # A view of another array has no bytes of its own.
            n += one.nbytes if one.base is not None else 0
        elif isinstance(one, tuple | list) and set(map(type, one)) == {str}:
            # Lists of thousands of values would take most of the time.
            n += sum(map(sys.getsizeof, one))
        elif (list_parts := _find_parts(type(one))) is not None:  # type: ignore[arg-type]
            left += list_parts(one)
    return n


@cache
def _find_parts(kind: type[Any]) -> _ListParts | None:
    """Find how to list the parts of values of a type; None for types whose values have no parts."""
    if issubclass(kind, Mapping):
        return lambda one: (*one.keys(), *one.values())
    if issubclass(kind, tuple | list | set | frozenset):
        return lambda one: one
    if is_dataclass(kind):
        names = [field.name for field in fields(kind)]
        # One name is given twice, so that the answer is a tuple for any number of them.
        return attrgetter(*names, names[0]) if names else None
    return None
