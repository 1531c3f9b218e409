"""Where a module can be changed by a small mistake, and the module with one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

_OTHER_COMPARISON: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OTHER_SUM: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
# What Python does not run, or what no caller sees.
_PASSED_OVER = ("annotation", "returns", "decorator_list", "bases", "type_params")


class Mistake(NamedTuple):
    """One small mistake: its line, what it is, and how it is made in the tree that it was found in."""

    line: int
    what: str
    make: Callable[[], None]


def find_mistakes(tree: ast.Module) -> list[Mistake]:
    """Return every mistake that can be made in a module, in the order of its text."""
    return [one for node in _nodes(tree) for one in _of_node(node)]


def with_mistake(source: str, i: int) -> tuple[str, Mistake]:
    """Return the module with the mistake of that number, and the mistake."""
    tree = ast.parse(source)
    mistake = find_mistakes(tree)[i]
    mistake.make()
    return ast.unparse(ast.fix_missing_locations(tree)), mistake


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes that are run, a node before what is in it."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in _PASSED_OVER:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _nodes(child)


def _of_node(node: ast.AST) -> Iterator[Mistake]:
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            other = _OTHER_COMPARISON[type(op)]
            yield Mistake(node.lineno, f"{type(op).__name__} → {other.__name__}", _put(node.ops, i, other()))  # fmt: skip
    elif isinstance(node, ast.BoolOp):
        other_word = ast.Or if isinstance(node.op, ast.And) else ast.And
        what = f"{type(node.op).__name__} → {other_word.__name__}"
        yield Mistake(node.lineno, what, _set(node, "op", other_word()))
    elif isinstance(node, ast.BinOp) and type(node.op) in _OTHER_SUM:
        other_sum = _OTHER_SUM[type(node.op)]
        what = f"{type(node.op).__name__} → {other_sum.__name__}"
        yield Mistake(node.lineno, what, _set(node, "op", other_sum()))
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        for step in (1, -1):
            what = f"{node.value} → {node.value + step}"
            yield Mistake(node.lineno, what, _set(node, "value", node.value + step))
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        negated = ast.UnaryOp(ast.Not(), node.test)
        yield Mistake(node.test.lineno, "condition negated", _set(node, "test", negated))
    yield from _removals(node)


def _removals(node: ast.AST) -> Iterator[Mistake]:
    for name in ("body", "orelse", "finalbody"):
        statements = getattr(node, name, None)
        if not isinstance(statements, list):
            continue
        for i, one in enumerate(statements):
            if _is_removable(one):
                what = f"removed: {ast.unparse(one).partition(chr(10))[0]}"
                yield Mistake(one.lineno, what, _put(statements, i, ast.Pass()))


def _is_removable(statement: ast.stmt) -> bool:
    """Whether the module without it is still one that Python can run."""
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.Assign):
        return all(isinstance(one, ast.Attribute | ast.Subscript) for one in statement.targets)
    return isinstance(statement, ast.AugAssign | ast.Delete | ast.Raise | ast.Continue | ast.Break)


def _set(node: ast.AST, name: str, value: object) -> Callable[[], None]:
    return lambda: setattr(node, name, value)


def _put(values: list[Any], i: int, value: object) -> Callable[[], None]:
    return lambda: values.__setitem__(i, value)
