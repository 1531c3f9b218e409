"""Macros: calls that are written as functions and stand for loops."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.devices.cel.errors import Complaint
from scheduler.devices.cel.syntax import (
    Call,
    Fold,
    Ident,
    ListOf,
    Literal,
    MapOf,
    Node,
    Select,
)

ACCU = "@result"
_ACCUS = frozenset([ACCU, "__result__"])
_Expanded = Node | Complaint | None
_Expander = Callable[[int, list[Node], Node], _Expanded]


def expand_macro(at: int, function: str, args: list[Node], target: Node | None) -> _Expanded:
    """Return what a call stands for, what is wrong with it, or nothing if it is no macro."""
    if target is None:
        return _expand_has(at, args) if (function, len(args)) == ("has", 1) else None
    expander = _MACROS.get((function, len(args)))
    return expander(at, args, target) if expander else None


def _expand_has(at: int, args: list[Node]) -> _Expanded:
    field = args[0]
    if not isinstance(field, Select):
        return Complaint(field.at, "invalid argument to has() macro")
    return Select(at, field.operand, field.field, is_test=True)


def _read_variables(args: list[Node], count: int, *, problem: str) -> tuple[str, ...] | Complaint:
    names: list[str] = []
    for arg in args[:count]:
        if not isinstance(arg, Ident):
            return Complaint(arg.at, problem)
        names.append(arg.name)
    if count == 2 and names[0] == names[1]:
        return Complaint(args[1].at, f"duplicate variable name: {names[0]}")
    for arg, name in zip(args, names, strict=False):
        if name in _ACCUS:
            return Complaint(arg.at, "iteration variable overwrites accumulator variable")
    return tuple(names)


def _make_quantifier(count: int, build: Callable[[Fold, Node], None]) -> _Expander:
    def expand(at: int, args: list[Node], target: Node) -> _Expanded:
        names = _read_variables(args, count, problem="argument must be a simple name")
        if isinstance(names, Complaint):
            return names
        fold = Fold(at, target, names, ACCU)
        build(fold, args[-1])
        return fold

    return expand


def _build_all(fold: Fold, predicate: Node) -> None:
    at = fold.at
    fold.init = Literal(at, value=True)
    fold.condition = Call(at, "@not_strictly_false", [Ident(at, ACCU)])
    fold.step = Call(at, "_&&_", [Ident(at, ACCU), predicate])


def _build_exists(fold: Fold, predicate: Node) -> None:
    at = fold.at
    fold.condition = Call(at, "@not_strictly_false", [Call(at, "!_", [Ident(at, ACCU)])])
    fold.step = Call(at, "_||_", [Ident(at, ACCU), predicate])


def _build_exists_one(fold: Fold, predicate: Node) -> None:
    at = fold.at
    fold.init = Literal(at, 0)
    more = Call(at, "_+_", [Ident(at, ACCU), Literal(at, 1)])
    fold.step = Call(at, "_?_:_", [predicate, more, Ident(at, ACCU)])
    fold.result = Call(at, "_==_", [Ident(at, ACCU), Literal(at, 1)])


def _make_transform(
    count: int, problem: str, build: Callable[[int, tuple[str, ...], Node], Node]
) -> _Expander:
    """Build a loop that adds something for each element, or for each that a filter lets through."""

    def expand(at: int, args: list[Node], target: Node) -> _Expanded:
        names = _read_variables(args, count, problem=problem)
        if isinstance(names, Complaint):
            return names
        fold = Fold(at, target, names, ACCU)
        fold.step = build(at, names, args[-1])
        fold.init = ListOf(at, []) if fold.step.function == "_+_" else MapOf(at, [])  # type: ignore[attr-defined]
        if len(args) == count + 2:
            fold.step = Call(at, "_?_:_", [args[count], fold.step, Ident(at, ACCU)])
        return fold

    return expand


def _add_item(at: int, _names: tuple[str, ...], item: Node) -> Node:
    return Call(at, "_+_", [Ident(at, ACCU), ListOf(at, [item])])


def _insert_value(at: int, names: tuple[str, ...], value: Node) -> Node:
    return Call(at, "cel.@mapInsert", [Ident(at, ACCU), Ident(at, names[0]), value])


def _insert_entries(at: int, _names: tuple[str, ...], entries: Node) -> Node:
    return Call(at, "cel.@mapInsert", [Ident(at, ACCU), entries])


def _expand_filter(at: int, args: list[Node], target: Node) -> _Expanded:
    # The element itself, for those that the predicate lets through.
    return _MAP(at, [args[0], args[1], args[0]], target)


def _bind(at: int, name: str, value: Node, result: Node) -> Node:
    fold = Fold(at, ListOf(at, []), ("#unused",), name)
    fold.init = value
    fold.condition = Literal(at, value=False)
    fold.step = Ident(at, name)
    fold.result = result
    return fold


def _expand_bind(at: int, args: list[Node], target: Node) -> _Expanded:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    if not isinstance(args[0], Ident):
        return Complaint(args[0].at, "cel.bind() variable names must be simple identifiers")
    return _bind(at, args[0].name, args[1], args[2])


def _make_optional_map(function: str, wrap: Callable[[int, Node], Node]) -> _Expander:
    def expand(at: int, args: list[Node], target: Node) -> _Expanded:
        if not isinstance(args[0], Ident):
            return Complaint(args[0].at, f"{function}() variable name must be a simple identifier")
        mapped = _bind(at, args[0].name, Call(at, "value", [], target), args[1])
        has_value = Call(at, "hasValue", [], target)
        return Call(at, "_?_:_", [has_value, wrap(at, mapped), Call(at, "optional.none", [])])

    return expand


def _expand_sort_by(at: int, args: list[Node], target: Node) -> _Expanded:
    if isinstance(target, Literal | MapOf):
        problem = "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
        return Complaint(target.at, problem)
    name = "@__sortBy_input__"
    keys = _MAP(at, args, Ident(at, name))
    if not isinstance(keys, Node):
        return keys
    return _bind(at, name, target, Call(at, "@sortByAssociatedKeys", [keys], Ident(at, name)))


_MAP = _make_transform(1, "argument is not an identifier", _add_item)
_SIMPLE = "argument must be a simple name"
_MACROS: dict[tuple[str, int], _Expander] = {
    ("all", 2): _make_quantifier(1, _build_all),
    ("all", 3): _make_quantifier(2, _build_all),
    ("exists", 2): _make_quantifier(1, _build_exists),
    ("exists", 3): _make_quantifier(2, _build_exists),
    ("exists_one", 2): _make_quantifier(1, _build_exists_one),
    ("exists_one", 3): _make_quantifier(2, _build_exists_one),
    ("existsOne", 3): _make_quantifier(2, _build_exists_one),
    ("map", 2): _MAP,
    ("map", 3): _MAP,
    ("filter", 2): _expand_filter,
    **{("transformList", n): _make_transform(2, _SIMPLE, _add_item) for n in (3, 4)},
    **{("transformMap", n): _make_transform(2, _SIMPLE, _insert_value) for n in (3, 4)},
    **{("transformMapEntry", n): _make_transform(2, _SIMPLE, _insert_entries) for n in (3, 4)},
    ("optMap", 2): _make_optional_map("optMap", lambda at, node: Call(at, "optional.of", [node])),
    ("optFlatMap", 2): _make_optional_map("optFlatMap", lambda _, node: node),
    ("sortBy", 2): _expand_sort_by,
    ("bind", 3): _expand_bind,
}
