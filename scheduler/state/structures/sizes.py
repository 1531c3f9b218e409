"""How much memory values take, as a careful estimate: what a cache keeps is bounded in bytes by it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

_ATOMS = (str, bytes, int, float, bool, type(None), Enum)


def estimate_bytes(*values: Any) -> int:
    """Of values and all that they are made of, each object once; texts in lists each time."""
    left: list[Any] = list(values)
    known: set[int] = set()
    n = 0
    while left:
        one = left.pop()
        if id(one) in known:
            continue
        known.add(id(one))
        n += sys.getsizeof(one)
        if isinstance(one, _ATOMS):
            continue
        if isinstance(one, np.ndarray):
            # An array that is part of another has no bytes of its own.
            n += one.nbytes if one.base is not None else 0
        elif isinstance(one, Mapping):
            left += one.keys()
            left += one.values()
        elif isinstance(one, tuple | list) and set(map(type, one)) == {str}:
            # Lists of thousands of values take most of the time.
            n += sum(map(sys.getsizeof, one))
        elif isinstance(one, tuple | list | set | frozenset):
            left += one
        elif is_dataclass(one):
            left += [getattr(one, field.name) for field in fields(one)]
    return n
