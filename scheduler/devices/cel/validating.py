"""What Kubernetes wants of an expression beyond types that go together: literals that make sense."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from scheduler.devices.cel.errors import CelError, Complaint, Complaints
from scheduler.devices.cel.formatting import Clause, Misfit, check_clause, walk
from scheduler.devices.cel.kinds import Kind
from scheduler.devices.cel.patterns import PatternError, parse_pattern
from scheduler.devices.cel.syntax import Call, Fold, ListOf, Literal, MapOf, Node, Select
from scheduler.devices.cel.times import check_moment, read_duration, read_timestamp

# What reads a literal that is an argument of a function, by their types.
_LITERALS: dict[tuple[str, type], Callable[[Any], object]] = {
    ("duration", str): read_duration,
    ("timestamp", str): read_timestamp,
    ("timestamp", int): lambda seconds: check_moment(seconds * 10**9),
    ("matches", str): parse_pattern,
}


def validate(node: Node) -> None:
    """Look at the literals of a checked expression.

    Raises:
        Complaints: some are wrong.
    """
    complaints = [
        complaint for one, is_free in walk_tree(node) for complaint in _look(one, is_free=is_free)
    ]
    if complaints:
        raise Complaints(complaints)


def walk_tree(root: Node) -> Iterator[tuple[Node, bool]]:
    """Yield every node once, and whether it is within a format, whose arguments may be of any types."""
    seen: set[int] = set()
    waiting = [(root, False)]
    while waiting:
        node, is_free = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node, is_free
        is_free = is_free or (isinstance(node, Call) and node.function == "format")
        waiting.extend((child, is_free) for child in list_children(node))


def list_children(node: Node) -> list[Node]:
    """Return the nodes right below a node."""
    match node:
        case Select():
            return [node.operand]
        case Call():
            return node.args if node.target is None else [node.target, *node.args]
        case ListOf():
            return node.items
        case MapOf():
            return [child for entry in node.entries for child in (entry.key, entry.value)]
        case Fold():
            return [node.over, node.init, node.condition, node.step, node.result]
    return []


def _look(node: Node, *, is_free: bool) -> Iterator[Complaint]:
    if isinstance(node, Call):
        yield from _look_at_literal(node)
        yield from _look_at_format(node)
    elif isinstance(node, ListOf) and not is_free:
        # Of a list, the first that differs is named; of a map, all are.
        items = [(item, i in node.optional) for i, item in enumerate(node.items)]
        yield from itertools.islice(_want_one_type(items), 1)
    elif isinstance(node, MapOf) and not is_free:
        yield from _want_one_type([(entry.key, False) for entry in node.entries])
        yield from _want_one_type([(entry.value, entry.is_optional) for entry in node.entries])


def _look_at_literal(node: Call) -> Iterator[Complaint]:
    literal = node.args[0] if node.args else None
    if not isinstance(literal, Literal):
        return
    reader = _LITERALS.get((node.function, type(literal.value)))
    if reader is None:
        return
    try:
        reader(literal.value)
    except (CelError, PatternError):
        yield Complaint(literal.at, f"invalid {node.function} argument")


def _want_one_type(items: Iterable[tuple[Node, bool]]) -> Iterator[Complaint]:
    """Complain of what has another type than the first; ``dyn`` is a type like any other here."""
    first: Kind | None = None
    for node, is_optional in items:
        kind = node.kind.parts[0] if is_optional and node.kind.parts else node.kind
        if first is None:
            first = kind
        elif first != kind:
            yield Complaint(node.at, f"expected type '{first}' but found '{kind}'")


def _look_at_format(node: Call) -> Iterator[Complaint]:
    is_format = (
        node.function == "format"
        and isinstance(node.target, Literal)
        and isinstance(node.target.value, str)
    )
    if not is_format or not isinstance(node.args[0], ListOf):
        return
    args = node.args[0].items

    def visit(clause: Clause) -> str:
        _check_argument(clause, args[clause.argument])
        return ""

    try:
        _, count = walk(node.target.value, len(args), visit)  # type: ignore[union-attr]
    except _MisfitAt as misfit:
        yield Complaint(misfit.at, str(misfit))
    except CelError as error:
        yield Complaint(node.at, str(error))
    else:
        if len(args) > count:
            problem = (
                f"too many arguments supplied to string.format (expected {count}, got {len(args)})"
            )
            yield Complaint(node.at, problem)


class _MisfitAt(Exception):  # noqa: N818 - reads as a noun where it is caught
    def __init__(self, at: int, text: str) -> None:
        super().__init__(text)
        self.at = at


def _check_argument(clause: Clause, node: Node) -> None:
    """Check the type of an argument, and for ``%s`` those of all that is written in it."""
    waiting = [node]
    while waiting:
        one = waiting.pop(0)
        if one.kind.name != "dyn":
            try:
                check_clause(clause, one.kind.name)
            except Misfit as misfit:
                raise _MisfitAt(one.at, str(misfit)) from None
        if clause.letter == "s" and isinstance(one, ListOf | MapOf):
            waiting += list_children(one)
