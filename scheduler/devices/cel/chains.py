"""Chains of names and indexes, such as ``device.attributes["domain"].id``, as functions.

A chain is one thing: from its first optional step on, a step that finds nothing ends it with nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from scheduler.devices.cel.errors import CelError
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.syntax import Code
from scheduler.devices.cel.values import (
    MAPS,
    NONE,
    NUMBERS,
    Optional,
    Uint,
    find_entry,
    name_for_go,
    name_type,
    show,
)


class Link(NamedTuple):
    """One step: the key, or what computes it; whether it may find nothing; whether it only tests for that."""

    key: Any
    code: Code | None
    is_optional: bool
    is_test: bool


def check_key(key: Any) -> Any:
    """Return a key.

    Raises:
        CelError: nothing can be looked up by it.
    """
    cls = type(key)
    if cls is str or cls is bool or cls in NUMBERS:
        return key
    raise CelError(f"invalid qualifier type: {name_for_go(key)}")


def _find(value: Any, key: Any) -> tuple[Any, bool]:
    """Return what a value has under a key, and whether it has it."""
    cls = type(value)
    if cls in MAPS:
        return find_entry(value, key)
    if cls is list:
        index = _read_index(key)
        return (value[index], True) if 0 <= index < len(value) else (None, False)
    return None, False


def _read_index(key: Any) -> int:
    cls = type(key)
    if cls is int:
        return int(key)
    if cls is Uint or cls is float:
        # Of doubles, neither end of the range counts as an integer.
        is_whole = key.is_integer() and key > -(2.0**63) if cls is float else True
        if not is_whole or key >= 2**63:
            raise CelError(f"unsupported index value {show(key)} in list")
        return int(key)
    raise CelError(f"unsupported index type '{name_type(key)}' in list")


def _get(value: Any, key: Any) -> Any:
    found, is_there = _find(value, key)
    if is_there:
        return found
    raise CelError(
        f"{'index out of bounds' if type(value) is list else 'no such key'}: {show(key)}"
    )


def make_chain(base: Code, links: list[Link]) -> Code:
    """Return a function that goes along a chain; each step costs 1, but those that may find nothing if they do not.

    In a chain that only tests for something, an optional step before makes the answer an optional too.
    """
    follow_links = _make_follow(links)
    if any(
        link.code or link.is_optional or link.is_test or type(link.key) is not str for link in links
    ):
        return lambda run: follow_links(run, base(run))
    keys = tuple(link.key for link in links)
    count = len(keys)

    def follow(run: Run) -> Any:
        start = value = base(run)
        try:
            for key in keys:
                value = value[key]
        except (KeyError, TypeError):
            return follow_links(run, start)
        run.cost += count
        return value

    return follow


def _make_follow(links: list[Link]) -> Callable[[Run, Any], Any]:
    def follow(run: Run, value: Any) -> Any:
        is_optional = type(value) is Optional
        if is_optional:
            if not value.values:
                return value
            value = value.values[0]
        for key, code, may_lack, is_test in links:
            is_optional = is_optional or may_lack
            if not is_optional:
                run.cost += 1
            if code is not None:
                key = check_key(code(run))  # noqa: PLW2901
            if is_test and not is_optional:
                return _find(value, key)[1]
            if not is_optional:
                value = _get(value, key)
                continue
            value, is_there = _find(value, key)
            if not is_there:
                return NONE
            run.cost += 1
        return Optional(value) if is_optional else value

    return follow
