"""Functions of lists and sets."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from scheduler.devices.cel.errors import CelError, LimitError
from scheduler.devices.cel.operators import ADDED, COMPARED, OPERATORS, compare_any
from scheduler.devices.cel.overloads import Cost, Library, Work, cost_traversal
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.values import (
    NONE,
    Duration,
    Optional,
    Uint,
    contains,
    is_equal,
    measure,
    name_for_go,
    name_type,
    show,
)

_ORDERED = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_CREATE = 11  # a call, and a list
_by_order = functools.cmp_to_key(lambda one, other: compare_any(one, other) or 0)


def _check_order(items: list[Any]) -> None:
    if any(type(item) not in COMPARED for item in items):
        raise CelError("no such overload")


def _is_sorted(_run: Run, items: list[Any]) -> bool:
    _check_order(items)
    return all(compare_any(one, other) != 1 for one, other in itertools.pairwise(items))


def _sum_from(zero: Any) -> Work:
    def add_up(run: Run, items: list[Any]) -> Any:
        total = zero
        for item in items:
            work = _ADD.get((type(total), type(item)))
            if work is None:
                raise CelError("no such overload")
            total = work(run, total, item)
        return total

    return add_up


_ADD = {
    (cls, cls): OPERATORS.functions[f"_+_({kind}, {kind}): {kind}"]
    for cls, kind in ((int, "int"), (Uint, "uint"), (float, "double"), (Duration, "duration"))
}
_ZEROS: dict[str, Any] = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}


def _choose(name: str, sign: int) -> Work:
    def choose(_run: Run, items: list[Any]) -> Any:
        if not items:
            raise CelError(f"{name} called on empty list")
        _check_order(items)
        best = items[0]
        for item in items[1:]:
            if compare_any(best, item) == sign:
                best = item
        return best

    return choose


def _index_of(run: Run, items: list[Any], item: Any) -> int:
    run.toil(len(items))
    return next((i for i, one in enumerate(items) if is_equal(one, item, run)), -1)


def _last_index_of(run: Run, items: list[Any], item: Any) -> int:
    run.toil(len(items))
    return next((i for i in range(len(items) - 1, -1, -1) if is_equal(items[i], item, run)), -1)


def _includes(run: Run, where: Any, item: Any) -> bool:
    if type(where) is not list:
        return is_equal(where, item, run) is True
    run.toil(len(where))
    return any(is_equal(one, item, run) for one in where)


def _slice(run: Run, items: list[Any], start: int, end: int) -> list[Any]:
    problem = ""
    if start < 0 or end < 0:
        problem = "negative indexes not supported"
    elif start > end:
        problem = "start index must be less than or equal to end index"
    elif len(items) < end:
        problem = f"list is length {len(items)}"
    if problem:
        run.charge(1)
        raise CelError(f"cannot slice({start}, {end}), {problem}")
    run.charge(end - start)
    return items[start:end]


def _flatten(run: Run, items: list[Any], depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    flat: list[Any] = []
    run.toil(len(items))
    for item in items:
        if type(item) is list and depth > 0:
            flat += _flatten(run, item, depth - 1)
        else:
            flat.append(item)
    return flat


def _flatten_any(run: Run, where: Any, *depth: Any) -> list[Any]:
    if type(where) is not list or {type(one) for one in depth} - {int}:
        raise CelError(
            f"no such overload: {name_type(where)}.flatten({''.join(map(name_type, depth))})"
        )
    return _flatten(run, where, *depth)


def _sort_any(run: Run, where: Any, keys: Any = None) -> list[Any]:
    if type(where) is not list:
        raise CelError("no such overload" if type(where) is str else "no such overload: sort")
    by = where if keys is None else keys
    if type(by) is not list:
        raise CelError("no such overload")
    if by and type(by[0]) not in COMPARED:
        raise CelError("list elements must be comparable")
    return _sort_by(run, where, by)


def _sort_by(run: Run, items: list[Any], keys: list[Any]) -> list[Any]:
    if not items:
        return items
    run.toil(20 * len(items))
    kinds = {type(key) for key in keys}
    if len(kinds) > 1:
        raise CelError("list elements must have the same type")
    order = sorted(range(len(items)), key=lambda i: _by_order(keys[i]))
    return [items[i] for i in order]


def _sort(run: Run, items: list[Any]) -> list[Any]:
    return _sort_by(run, items, items)


def _range(_run: Run, count: int) -> list[int]:
    if count < 0:
        raise CelError(f"lists.range: size must be non-negative, got {count}")
    return list(range(count))


def _distinct(run: Run, items: list[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if not contains(found, item, run):
            found.append(item)
    return found


def _sets_contain(run: Run, items: list[Any], wanted: list[Any]) -> bool:
    return all(contains(items, item, run) for item in wanted)


def _sets_intersect(run: Run, one: list[Any], other: list[Any]) -> bool:
    return any(contains(other, item, run) for item in one)


def _sets_equal(run: Run, one: list[Any], other: list[Any]) -> bool:
    return _sets_contain(run, one, other) and _sets_contain(run, other, one)


def _first(_run: Run, items: list[Any]) -> Optional:
    return Optional(items[0]) if items else NONE


def _last(_run: Run, items: list[Any]) -> Optional:
    return Optional(items[-1]) if items else NONE


def _unwrap(run: Run, items: list[Any]) -> list[Any]:
    run.toil(len(items))
    for item in items:
        if type(item) is not Optional:
            raise CelError(f"value {show(item)} is not optional")
    return [item.values[0] for item in items if item.values]


def _cost_of(result: Any) -> Cost:
    return lambda *args: _CREATE + max(0, int(result(*args)))


def _cost_square(items: Any, *rest: Any) -> int:
    keys = rest[0] if rest else items
    if type(keys) is not list:
        # Upstream breaks here, and so ends the evaluation even where it could do without.
        name, missing = name_for_go(keys), "Contains" if type(keys) in ADDED else "Add"
        raise LimitError(
            f"internal error: interface conversion: {name} is not traits.Lister: missing method {missing}"
        )
    factor = 2.1 if keys and type(keys[0]) in {str, bytes} else 2.0
    return _CREATE + int(len(keys) * len(keys) * factor)


def _cost_sets(factor: int) -> Cost:
    return lambda one, other: 1 + factor * measure(one) * measure(other)


def _cost_slice(items: Any, *ends: Any) -> int:
    """Return the cost of what comes before the length of the result, or of an error."""
    return _CREATE + (type(items) is not list or any(type(end) is not int for end in ends))


def _cost_flatten(items: Any, depth: Any = 1) -> int:
    return measure(items) * depth if type(depth) is int else 0


LISTS = Library(
    functions={
        "lists.range(int): list(int)": _range,
        "sets.contains(list(T), list(T)): bool": _sets_contain,
        "sets.intersects(list(T), list(T)): bool": _sets_intersect,
        "sets.equivalent(list(T), list(T)): bool": _sets_equal,
        "optional.unwrap(list(optional(V))): list(V)": _unwrap,
    },
    members={
        **{f"isSorted(list({kind})): bool": _is_sorted for kind in _ORDERED},
        **{f"sum(list({kind})): {kind}": _sum_from(zero) for kind, zero in _ZEROS.items()},
        **{f"max(list({kind})): {kind}": _choose("max", -1) for kind in _ORDERED},
        **{f"min(list({kind})): {kind}": _choose("min", 1) for kind in _ORDERED},
        "indexOf(list(A), A): int": _index_of,
        "lastIndexOf(list(A), A): int": _last_index_of,
        "includes(dyn, dyn): bool": _includes,
        "slice(list(T), int, int): list(T)": _slice,
        "flatten(list(list(T))): list(T)": _flatten,
        "flatten(list(dyn), int): list(dyn)": _flatten,
        **{f"sort(list({kind})): list({kind})": _sort for kind in _ORDERED},
        **{f"@sortByAssociatedKeys(list(T), list({kind})): list(T)": _sort_by for kind in _ORDERED},
        "reverse(list(T)): list(T)": lambda _, items: items[::-1],
        "distinct(list(T)): list(T)": _distinct,
        "first(list(V)): optional(V)": _first,
        "last(list(V)): optional(V)": _last,
        "unwrapOpt(list(optional(V))): list(V)": _unwrap,
    },
    costs={
        **dict.fromkeys(
            ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes"), cost_traversal
        ),
        "slice": _cost_slice,
        "flatten": _cost_of(_cost_flatten),
        "lists.range": _cost_of(lambda count: count if type(count) is int and count >= 0 else 1),
        "reverse": _cost_of(measure),
        "distinct": _cost_square,
        "sets.contains": _cost_sets(1),
        "sets.intersects": _cost_sets(1),
        "sets.equivalent": _cost_sets(2),
    },
    sure_costs={"sort": _cost_square, "@sortByAssociatedKeys": _cost_square},
    otherwise={"flatten": _flatten_any, "sort": _sort_any, "@sortByAssociatedKeys": _sort_any},
)
