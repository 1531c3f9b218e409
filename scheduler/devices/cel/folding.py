"""Loops as functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from scheduler.devices.cel.errors import CelError
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.syntax import (
    Call,
    Code,
    Constant,
    Fold,
    Ident,
    ListOf,
    MapOf,
    Node,
    Slot,
)
from scheduler.devices.cel.values import MAPS, iterate_keys, name_for_go

# The steps that beginning a loop counts for, beside those that Kubernetes counts.
_BEGUN = 20
_Compile = Callable[[Node], Code]


class Pending:
    """A variable that is computed when it is first read; the value, or the error, is kept."""

    __slots__ = ("_code", "_index", "_is_made")

    def __init__(self, code: Code, index: int, *, is_made: bool) -> None:
        self._code = code
        self._index = index
        self._is_made = is_made

    def __call__(self, run: Run) -> Any:
        """Compute it."""
        try:
            value = self._code(run)
        except CelError as error:
            value = error
        if self._is_made:
            # The loop adds to it, so it must be its own.
            value = value.copy()
        run.slots[self._index] = value
        return value


def read_slot(slot: Slot) -> Code:
    """Return what reads a variable."""
    index = slot.index

    def read(run: Run) -> Any:
        value = run.slots[index]
        if type(value) is Pending:
            value = value(run)
        if type(value) is CelError:
            raise value
        return value

    return read


def make_fold(node: Fold, compile_node: _Compile) -> Code:
    """Return a loop as a function."""
    over, init = compile_node(node.over), compile_node(node.init)
    condition = compile_node(node.condition)
    step = _compile_step(node, compile_node)
    result = compile_node(node.result)
    accu = node.accu.index
    is_made = isinstance(node.init, ListOf | MapOf) and node.accu.name == "@result"
    count = len(node.variables)
    first, last = node.variables[0].index, node.variables[-1].index

    def fold(run: Run) -> Any:
        run.toil(_BEGUN)
        slots = run.slots
        values = over(run)
        slots[accu] = Pending(init, accu, is_made=is_made)
        for one, other in _iterate(values, count):
            slots[last] = other
            slots[first] = one
            try:
                if condition(run) is not True:
                    break
            except CelError:
                pass
            run.charge(0)
            try:
                slots[accu] = step(run)
            except CelError as error:
                slots[accu] = error
        return result(run)

    return fold


def _iterate(values: Any, count: int) -> Iterable[tuple[Any, Any]]:
    """Yield what the variables of a loop are for each element: of one, the first is taken."""
    cls = type(values)
    if cls is list:
        return enumerate(values) if count == 2 else ((value, value) for value in values)
    if cls in MAPS:
        keys = iterate_keys(values)
        return (
            zip(keys, values.values(), strict=True) if count == 2 else ((key, key) for key in keys)
        )
    if count == 2:
        raise CelError(f"unsupported comprehension range type: {name_for_go(values)}")
    raise CelError(f"got '{name_for_go(values)}', expected iterable type")


def _compile_step(node: Fold, compile_node: _Compile) -> Code:
    """Compile what a loop does for each element; one that makes a list adds to it in place."""
    added = node.step
    if isinstance(added, Call) and added.function == "_?_:_":
        filtered, added = added.args[0], added.args[1]
        item = _find_item(added)
        if item is None:
            return compile_node(node.step)
        return _make_filter(
            compile_node(filtered), _make_append(node, item, compile_node), read_slot(node.accu)
        )
    item = _find_item(added)
    return compile_node(node.step) if item is None else _make_append(node, item, compile_node)


def _find_item(step: Node) -> Node | None:
    """Return what a step adds to a list that its loop makes."""
    if not isinstance(step, Call) or step.function != "_+_":
        return None
    accu, more = step.args
    if isinstance(accu, Ident) and accu.name == "@result" and isinstance(more, ListOf):
        return more.items[0]
    return None


def _make_append(node: Fold, item: Node, compile_node: _Compile) -> Code:
    code, accu = compile_node(item), read_slot(node.accu)
    # A name, a list unless it is a constant, and the sum of both.
    cost = 2 if isinstance(compile_node(ListOf(item.at, [item])), Constant) else 12

    def append(run: Run) -> Any:
        run.cost += cost
        problem: CelError | None = None
        items: list[Any] = []
        try:
            items = accu(run)
        except CelError as error:
            problem = error
        try:
            value = code(run)
        except CelError as error:
            raise problem or error from None
        if problem is not None:
            raise problem
        items.append(value)
        return items

    return append


def _make_filter(condition: Code, append: Code, accu: Code) -> Code:
    def add(run: Run) -> Any:
        answer = condition(run)
        if answer is True:
            return append(run)
        if answer is False:
            return accu(run)
        raise CelError("no such overload")

    return add
