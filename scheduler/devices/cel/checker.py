"""The types of an expression: which it has everywhere, or that they do not go together."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from scheduler.devices.cel.errors import Complaint, Complaints
from scheduler.devices.cel.kinds import (
    BOOL,
    BYTES,
    DEVICE,
    DOUBLE,
    DYN,
    ERROR,
    FIELDS,
    INT,
    NAMED,
    NULL,
    STRING,
    UINT,
    Bindings,
    Kind,
    choose_general,
    is_ground,
    list_of,
    map_of,
    optional_of,
    unwrap_optional,
)
from scheduler.devices.cel.library import find_function, is_function
from scheduler.devices.cel.overloads import Overload
from scheduler.devices.cel.syntax import (
    Call,
    Fold,
    Ident,
    ListOf,
    Literal,
    MapOf,
    Node,
    Select,
    Slot,
    Struct,
)
from scheduler.devices.cel.values import Uint

_LITERALS: dict[type, Kind] = {
    bool: BOOL,
    int: INT,
    Uint: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}
_LOGIC = frozenset(["_&&_", "_||_"])
# So many calls are remembered, each by its name and the types that it is given.
_CALLS_MAX = 4096


class Checked:
    """A checked expression: its type, and how many variables it has."""

    def __init__(self, node: Node, kind: Kind, slots: int) -> None:
        self.node = node
        self.kind = kind
        self.slots = slots


def check(node: Node) -> Checked:
    """Write the type of every node.

    Raises:
        Complaints: types do not go together, or names are not known.
    """
    checker = _Checker()
    checker.visit(node)
    if checker.complaints:
        raise Complaints(checker.complaints)
    kinds = checker.bindings
    for one in checker.nodes:
        one.kind = kinds.resolve(one.kind, finally_dyn=True)
    return Checked(node, node.kind, checker.slots)


def _choose_overload(
    bindings: Bindings, name: str, is_member: bool, given: tuple[Kind, ...]
) -> tuple[Kind | None, Overload | None]:
    """Choose what a call returns, None if nothing is called so; and the overload, if no other one could be called."""
    function = find_function(name, len(given), is_member=is_member)
    result: Kind | None = None
    found: list[Overload] = []
    for overload in function.overloads if function else ():
        *wanted, returned = bindings.make_fresh((*overload.wanted, overload.result))
        if not bindings.accept(given, tuple(wanted)):
            continue
        found.append(overload)
        kind = bindings.resolve(returned)
        if result is None:
            result = kind
        elif result.name != "dyn" and kind != result:
            result = DYN
    return result, found[0] if len(found) == 1 else None


@lru_cache(maxsize=_CALLS_MAX)
def _choose_known(
    name: str, is_member: bool, given: tuple[Kind, ...]
) -> tuple[Kind | None, Overload | None] | None:
    """As ``_choose_overload`` for types without parameters; None if the result has one."""
    chosen = _choose_overload(Bindings(), name, is_member, given)
    return chosen if chosen[0] is None or is_ground(chosen[0]) else None


class _Checker:
    def __init__(self) -> None:
        self.complaints: list[Complaint] = []
        self.bindings = Bindings()
        self.nodes: list[Node] = []
        self.slots = 0
        self._scopes: list[Slot] = []
        self._visits: dict[type[Node], Callable[[Any], Kind]] = {
            Literal: self._check_literal,
            Ident: self._check_ident,
            Select: self._check_select,
            Call: self._check_call,
            ListOf: self._check_list,
            MapOf: self._check_map,
            Struct: self._check_struct,
            Fold: self._check_fold,
        }

    def visit(self, node: Node) -> None:
        if not node.is_checked:
            node.kind = self._visits[type(node)](node)
            node.is_checked = True
            self.nodes.append(node)

    def _complain(self, at: int, text: str) -> Kind:
        self.complaints.append(Complaint(at, text))
        return ERROR

    def _accepts(self, given: Kind, wanted: Kind) -> bool:
        return self.bindings.accept((given,), (wanted,))

    def _check_literal(self, node: Literal) -> Kind:
        return _LITERALS[type(node.value)]

    def _check_ident(self, node: Ident) -> Kind:
        name = node.name.removeprefix(".")
        if name == node.name:
            for slot in reversed(self._scopes):
                if slot.name == name:
                    node.slot = slot
                    return slot.kind
        if name == "device":
            return DEVICE
        if name in NAMED:
            return NAMED[name]
        return self._complain(node.at, f"undeclared reference to '{node.name}' (in container '')")

    def _check_select(self, node: Select) -> Kind:
        path = spell_path(node)
        if path.removeprefix(".") in NAMED and not self._is_variable(path):
            return NAMED[path.removeprefix(".")]
        kind = self._check_field(node, node.operand, node.field)
        return BOOL if node.is_test else kind

    def _is_variable(self, path: str) -> bool:
        return any(slot.name == path.partition(".")[0] for slot in self._scopes)

    def _check_field(
        self, node: Node, operand: Node, field: str, *, may_lack: bool = False
    ) -> Kind:
        self.visit(operand)
        outer = self.bindings.resolve(operand.kind)
        kind, is_optional = unwrap_optional(outer)
        if kind.name == "map":
            found = kind.parts[1]
        elif kind == DEVICE:
            found = FIELDS.get(field) or self._complain(node.at, f"undefined field '{field}'")
        elif kind.name.startswith("kubernetes."):
            found = self._complain(node.at, f"unexpected failed resolution of '{kind}'")
        else:
            if kind.name[0] == "_":
                self._accepts(DYN, kind)
            elif kind.name not in {"dyn", "error"}:
                self._complain(node.at, f"type '{kind}' does not support field selection")
            found = DYN
        return self.bindings.resolve(optional_of(found) if is_optional or may_lack else found)

    def _check_call(self, node: Call) -> Kind:
        if node.function == "_?._":
            return self._check_optional_field(node)
        for arg in node.args:
            self.visit(arg)
        if node.target is not None:
            path = spell_path(node.target)
            name = f"{path}.{node.function}".removeprefix(".")
            if path and is_function(name):
                node.target, node.function = None, name
            else:
                self.visit(node.target)
        else:
            node.function = node.function.removeprefix(".")
        if node.function.startswith("_in_") or not is_function(node.function):
            return self._complain(
                node.at, f"undeclared reference to '{node.function}' (in container '')"
            )
        if node.function in _LOGIC:
            return self._check_logic(node)
        return self._check_overloads(node)

    def _check_optional_field(self, node: Call) -> Kind:
        operand, field = node.args
        assert isinstance(field, Literal)  # noqa: S101 - the parser makes no other
        return self._check_field(node, operand, field.value, may_lack=True)

    def _check_logic(self, node: Call) -> Kind:
        is_right = True
        for arg in node.args:
            if not self._accepts(arg.kind, BOOL):
                self._complain(arg.at, f"expected type 'bool' but found '{arg.kind}'")
                is_right = False
        return BOOL if is_right else ERROR

    def _check_overloads(self, node: Call) -> Kind:
        args = node.args if node.target is None else [node.target, *node.args]
        given = tuple(arg.kind for arg in args)
        asked = node.function, node.target is not None, given
        # Types without parameters learn nothing from a call, so that the answer is always the same.
        chosen = _choose_known(*asked) if all(map(is_ground, given)) else None
        if chosen is None:
            chosen = _choose_overload(self.bindings, *asked)
        result, node.overload = chosen
        if result is not None:
            return result
        return self._complain(node.at, self._describe(node, given))

    def _describe(self, node: Call, given: tuple[Kind, ...]) -> str:
        shown = [str(self.bindings.resolve(kind, finally_dyn=True)) for kind in given]
        applied = (
            f"({', '.join(shown)})"
            if node.target is None
            else f"{shown[0]}.({', '.join(shown[1:])})"
        )
        return f"found no matching overload for '{node.function}' applied to '{applied}'"

    def _check_list(self, node: ListOf) -> Kind:
        element: Kind | None = None
        for i, item in enumerate(node.items):
            self.visit(item)
            kind = self._unwrap(item) if i in node.optional else item.kind
            element = self._join(element, kind)
        return list_of(element or self.bindings.make_parameter())

    def _check_map(self, node: MapOf) -> Kind:
        key: Kind | None = None
        value: Kind | None = None
        for entry in node.entries:
            self.visit(entry.key)
            key = self._join(key, entry.key.kind)
            self.visit(entry.value)
            kind = self._unwrap(entry.value) if entry.is_optional else entry.value.kind
            value = self._join(value, kind)
        return map_of(
            key or self.bindings.make_parameter(), value or self.bindings.make_parameter()
        )

    def _unwrap(self, node: Node) -> Kind:
        kind, is_optional = unwrap_optional(node.kind)
        if not is_optional and kind != DYN:
            self._complain(node.at, f"expected type '{optional_of(kind)}' but found '{kind}'")
        return kind

    def _join(self, before: Kind | None, kind: Kind) -> Kind:
        """Return the type of what a list or a map has, with one more in it."""
        if before is None:
            return kind
        if self._accepts(before, kind):
            return choose_general(before, kind)
        return DYN

    def _show(self, kind: Kind) -> Kind:
        return self.bindings.resolve(kind)

    def _check_struct(self, node: Struct) -> Kind:
        name = node.name.removeprefix(".")
        if name in NAMED:
            return self._complain(node.at, f"'{name}' is not a message type")
        return self._complain(node.at, f"undeclared reference to '{node.name}' (in container '')")

    def _check_fold(self, node: Fold) -> Kind:
        self.visit(node.over)
        self.visit(node.init)
        over = self.bindings.resolve(node.over.kind)
        kinds = self._list_kinds(node, over)
        self._enter(node.accu, node.init.kind)
        for slot, kind in zip(node.variables, kinds, strict=True):
            self._enter(slot, kind)
        self.visit(node.condition)
        self._want(node.condition, BOOL)
        self.visit(node.step)
        self._want(node.step, node.init.kind)
        del self._scopes[-len(node.variables) :]
        self.visit(node.result)
        self._scopes.pop()
        return self.bindings.resolve(node.result.kind)

    def _list_kinds(self, node: Fold, over: Kind) -> tuple[Kind, ...]:
        """Return the types of a loop's variables."""
        count = len(node.variables)
        if over.name == "list":
            return (over.parts[0],) if count == 1 else (INT, over.parts[0])
        if over.name == "map":
            return over.parts[:count]
        if over.name in {"dyn", "error"} or over.name[0] == "_":
            self._accepts(DYN, over)
            return (DYN,) * count
        problem = f"expression of type '{over}' cannot be range of a comprehension (must be list, map, or dynamic)"
        self._complain(node.over.at, problem)
        return (ERROR,) * count

    def _enter(self, slot: Slot, kind: Kind) -> None:
        slot.kind = kind
        slot.index = self.slots
        self.slots += 1
        self._scopes.append(slot)

    def _want(self, node: Node, kind: Kind) -> None:
        if not self._accepts(kind, node.kind):
            self._complain(
                node.at, f"expected type '{self._show(kind)}' but found '{self._show(node.kind)}'"
            )


def spell_path(node: Node) -> str:
    """Return the dotted name that a chain of names spells, or nothing."""
    fields: list[str] = []
    while isinstance(node, Select) and not node.is_test:
        fields.append(node.field)
        node = node.operand
    return ".".join([node.name, *reversed(fields)]) if isinstance(node, Ident) else ""
