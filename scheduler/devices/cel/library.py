"""All functions that an expression about a device may call."""

from __future__ import annotations

from scheduler.devices.cel.addresses import ADDRESSES
from scheduler.devices.cel.amounts import AMOUNTS
from scheduler.devices.cel.conversions import CONVERSIONS
from scheduler.devices.cel.formats import FORMATS
from scheduler.devices.cel.lists import LISTS
from scheduler.devices.cel.operators import OPERATORS
from scheduler.devices.cel.optionals import OPTIONALS
from scheduler.devices.cel.overloads import Function, collect
from scheduler.devices.cel.regexes import REGEXES
from scheduler.devices.cel.strings import STRINGS
from scheduler.devices.cel.times import TIMES
from scheduler.devices.cel.urls import URLS

_FUNCTIONS = collect(
    *(
        OPERATORS,
        CONVERSIONS,
        TIMES,
        STRINGS,
        LISTS,
        OPTIONALS,
        AMOUNTS,
        REGEXES,
        ADDRESSES,
        URLS,
        FORMATS,
    )
)
_NAMES = frozenset(name for name, _ in _FUNCTIONS)


def is_function(name: str) -> bool:
    """Say whether there is a function of a name, with whatever arguments."""
    return name in _NAMES


def find_function(name: str, count: int, *, is_member: bool) -> Function | None:
    """Return the function that takes as many arguments, a member's first among them."""
    return _FUNCTIONS.get((name, is_member), {}).get(count)
