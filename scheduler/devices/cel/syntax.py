"""The tree of an expression.

The checker writes on each node its type; ``at`` is the place in the text by which complaints name it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler.devices.cel.kinds import DYN, Kind
from scheduler.devices.cel.overloads import Overload
from scheduler.devices.cel.running import Run

Code = Callable[[Run], Any]


class Constant:
    """A function whose value is known."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, _run: Run) -> Any:
        """Return it."""
        return self.value


class Node:
    """An expression within the expression."""

    __slots__ = ("at", "code", "is_checked", "kind")

    def __init__(self, at: int) -> None:
        self.at = at
        self.kind: Kind = DYN
        self.is_checked = False
        self.code: Code | None = None


class Literal(Node):
    """A value that stands in the text."""

    __slots__ = ("value",)

    def __init__(self, at: int, value: Any) -> None:
        super().__init__(at)
        self.value = value


class Ident(Node):
    """A name: of a variable or of a type."""

    __slots__ = ("name", "slot")

    def __init__(self, at: int, name: str) -> None:
        super().__init__(at)
        self.name = name
        self.slot: Slot | None = None


class Select(Node):
    """``operand.field``, or whether there is such a field."""

    __slots__ = ("field", "is_test", "operand")

    def __init__(self, at: int, operand: Node, field: str, *, is_test: bool = False) -> None:
        super().__init__(at)
        self.operand = operand
        self.field = field
        self.is_test = is_test


class Call(Node):
    """``function(args)`` or ``target.function(args)``; operators are functions."""

    __slots__ = ("args", "function", "overload", "target")

    def __init__(
        self, at: int, function: str, args: list[Node], target: Node | None = None
    ) -> None:
        super().__init__(at)
        self.function = function
        self.args = args
        self.target = target
        # The overload to call, if the types leave one.
        self.overload: Overload | None = None


class ListOf(Node):
    """``[items]``; of those that are optional, only the ones with a value are in it."""

    __slots__ = ("items", "optional")

    def __init__(self, at: int, items: list[Node], optional: frozenset[int] = frozenset()) -> None:
        super().__init__(at)
        self.items = items
        self.optional = optional


class Entry:
    """``key: value`` of a map; ``at`` is the colon."""

    __slots__ = ("at", "is_optional", "key", "value")

    def __init__(self, at: int, key: Node, value: Node, *, is_optional: bool) -> None:
        self.at = at
        self.key = key
        self.value = value
        self.is_optional = is_optional


class MapOf(Node):
    """``{entries}``."""

    __slots__ = ("entries",)

    def __init__(self, at: int, entries: list[Entry]) -> None:
        super().__init__(at)
        self.entries = entries


class Struct(Node):
    """``name{fields}``; no type that expressions about devices know has fields."""

    __slots__ = ("name",)

    def __init__(self, at: int, name: str) -> None:
        super().__init__(at)
        self.name = name


class Slot:
    """A variable: where a run keeps its value."""

    __slots__ = ("index", "kind", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind: Kind = DYN
        self.index = -1


class Fold(Node):
    """A loop over a list or a map, as all macros are.

    ``accu`` is the variable that is worked out: at first ``init``, then ``step`` for each element while ``condition``
    holds; the loop's value is ``result``. It is computed when it is first read.
    """

    __slots__ = ("accu", "condition", "init", "over", "result", "step", "variables")

    def __init__(self, at: int, over: Node, variables: tuple[str, ...], accu: str) -> None:
        super().__init__(at)
        self.over = over
        self.variables = tuple(Slot(name) for name in variables)
        self.accu = Slot(accu)
        self.init: Node = Literal(at, value=False)
        self.condition: Node = Literal(at, value=True)
        self.step: Node = Literal(at, value=False)
        self.result: Node = Ident(at, accu)
