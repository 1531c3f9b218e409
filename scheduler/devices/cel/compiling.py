"""A checked expression as functions that call one another, each of which gets the run and returns a value.

What a run is charged follows cel-go: constants are free, names and fields cost 1, calls what they say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler.devices.cel.calling import (
    make_alternative,
    make_call,
    make_lenient,
    make_logic,
    make_membership,
)
from scheduler.devices.cel.chains import Link, check_key, make_chain
from scheduler.devices.cel.conversions import CONVERTERS
from scheduler.devices.cel.errors import CelError
from scheduler.devices.cel.folding import make_fold, read_slot
from scheduler.devices.cel.kinds import NAMED
from scheduler.devices.cel.library import find_function
from scheduler.devices.cel.matching import compile_pattern
from scheduler.devices.cel.overloads import Function
from scheduler.devices.cel.regexes import PATTERNED, prepare
from scheduler.devices.cel.running import Run
from scheduler.devices.cel.syntax import (
    Call,
    Code,
    Constant,
    Fold,
    Ident,
    ListOf,
    Literal,
    MapOf,
    Node,
    Select,
)
from scheduler.devices.cel.values import (
    Optional,
    TypeName,
    as_key,
    show,
)

_CHAINED = frozenset(["_[_]", "_[?_]", "_?._"])
_NO_OVERLOAD = "no such overload"


def compile_tree(node: Node) -> Code:
    """Return an expression as a function.

    Raises:
        CelError: a part of it can be computed beforehand and is an error.
    """
    return _Compiler().compile(node)


class _Compiler:
    def __init__(self) -> None:
        self._compilers: dict[type[Node], Callable[[Any], Code]] = {
            Literal: lambda node: Constant(node.value),
            Ident: self._compile_attribute,
            Select: self._compile_attribute,
            Call: self._compile_call,
            ListOf: self._compile_list,
            MapOf: self._compile_map,
            Fold: self._compile_fold,
        }

    def compile(self, node: Node) -> Code:
        if node.code is None:
            node.code = self._compilers[type(node)](node)
        return node.code

    def _compile_attribute(self, node: Node) -> Code:
        resolve = self._resolve(node)
        if isinstance(resolve, Constant):
            return resolve
        # Names and chains cost 1 beside their steps; a choice does not, nor does a test for something.
        is_test = isinstance(node, Select) and node.is_test
        cost = (not _is_choice(_find_base(node))) - is_test

        def read(run: Run) -> Any:
            run.cost += cost
            value = resolve(run)
            return bool(value.values) if is_test and type(value) is Optional else value

        return read

    def _resolve(self, node: Node) -> Code:
        """Return what finds a name's or a chain's value, without the cost of having it."""
        chain: list[Select | Call] = []
        while True:
            if isinstance(node, Select):
                if node.kind.name == "type" and not chain and (named := _name_type(node)):
                    return Constant(named)
                chain.append(node)
                node = node.operand
            elif isinstance(node, Call) and node.function in _CHAINED:
                chain.append(node)
                node = node.args[0]
            else:
                break
        base = self._resolve_base(node)
        return (
            make_chain(base, [self._make_link(one) for one in reversed(chain)]) if chain else base
        )

    def _make_link(self, node: Select | Call) -> Link:
        if isinstance(node, Select):
            return Link(node.field, None, is_optional=False, is_test=node.is_test)
        is_optional = node.function != "_[_]"
        index = node.args[1]
        code = self._resolve_any(index)
        if isinstance(code, Constant):
            return Link(check_key(code.value), None, is_optional=is_optional, is_test=False)
        return Link(None, code, is_optional=is_optional, is_test=False)

    def _resolve_any(self, node: Node) -> Code:
        """Return what finds any value, without the cost of having it if it is a name's or a chain's."""
        if _is_choice(node):
            return self._compile_choice(node)
        return self._resolve(node) if _is_attribute(node) else self.compile(node)

    def _resolve_base(self, node: Node) -> Code:
        if not isinstance(node, Ident):
            return self.compile(node)
        slot = node.slot
        if slot is not None:
            # Upstream looks up what is a type among the types that have names.
            if node.kind.name == "type" and slot.name not in NAMED:
                raise CelError(f"reference to undefined type: {slot.name}")
            return read_slot(slot)
        if (name := node.name.removeprefix(".")) in NAMED:
            return Constant(TypeName(name))
        return _read_device

    def _compile_call(self, node: Call) -> Code:
        name = node.function
        if name in _CHAINED:
            return self._compile_attribute(node)
        if name == "_?_:_":
            return self._compile_choice(node)
        args = node.args if node.target is None else [node.target, *node.args]
        codes = [self.compile(arg) for arg in args]
        special = _SPECIAL.get(name)
        return special(codes) if special else _compile_plain(node, codes)

    def _compile_choice(self, node: Node) -> Code:
        """``condition ? one : other``, which costs nothing itself; neither does reading a name there."""
        assert isinstance(node, Call)  # noqa: S101 - only calls are choices
        condition = self.compile(node.args[0])
        then, otherwise = (self._resolve_any(arg) for arg in node.args[1:])

        def choose(run: Run) -> Any:
            answer = condition(run)
            if answer is True:
                return then(run)
            if answer is False:
                return otherwise(run)
            raise CelError(_NO_OVERLOAD)

        return choose

    def _compile_list(self, node: ListOf) -> Code:
        codes = [self.compile(item) for item in node.items]
        if all(isinstance(code, Constant) for code in codes) and not node.optional:
            return Constant([code.value for code in codes if isinstance(code, Constant)])
        if not node.optional:

            def build(run: Run) -> Any:
                run.charge(10)
                return [code(run) for code in codes]

            return build
        optional = node.optional

        def build_some(run: Run) -> Any:
            items: list[Any] = []
            run.charge(10)
            for i, code in enumerate(codes):
                value = code(run)
                if i not in optional:
                    items.append(value)
                    continue
                if type(value) is not Optional:
                    raise CelError(
                        f"cannot initialize optional list element from non-optional value {show(value)}"
                    )
                items.extend(value.values)
            return items

        return build_some

    def _compile_map(self, node: MapOf) -> Code:
        entries = [
            (self.compile(one.key), self.compile(one.value), one.is_optional)
            for one in node.entries
        ]

        def build(run: Run) -> Any:
            built: dict[Any, Any] = {}
            run.charge(30)
            for key_code, value_code, is_optional in entries:
                key = key_code(run)
                value = value_code(run)
                kept = as_key(key)
                if is_optional:
                    if type(value) is not Optional:
                        raise CelError(
                            f"cannot initialize optional entry '{show(key)}' from non-optional value {show(value)}"
                        )
                    if not value.values:
                        built.pop(kept, None)
                        continue
                    value = value.values[0]
                built[kept] = value
            return built

        if all(isinstance(code, Constant) for key, value, _ in entries for code in (key, value)):
            return Constant(build(Run(None, 0, 30)))
        return build

    def _compile_fold(self, node: Fold) -> Code:
        return make_fold(node, self.compile)


def _compile_plain(node: Call, codes: list[Code]) -> Code:
    """Compile a call of a function; what can be known of it beforehand is computed."""
    name = node.function
    function = find_function(name, len(codes), is_member=node.target is not None)
    assert function is not None  # noqa: S101 - the checker has found it
    last = codes[1] if len(codes) > 1 else None
    known = None
    if name == "@in" and node.overload and isinstance(last, Constant) and type(last.value) is list:
        found = make_membership(codes[0], last.value)
        if found is not None:
            return found
    elif name in PATTERNED and isinstance(last, Constant) and type(last.value) is str:
        known = prepare(name, compile_pattern(None, last.value))
    elif name in CONVERTERS and isinstance(codes[0], Constant):
        value = codes[0].value
        return Constant(function.find((value,))(Run(None, 0, 0), value))
    if name in _PURE and all(isinstance(code, Constant) for code in codes):
        prepared = _prepare(function, [code.value for code in codes if isinstance(code, Constant)])
        if prepared is not None:
            return prepared
    return make_call(function, codes, known, overload=node.overload)


# What these make of constants is made once; each time it is charged all the same.
_PURE = frozenset(["quantity", "semver", "ip", "cidr", "url"])


def _prepare(function: Function, args: list[Any]) -> Code | None:
    assert function.cost is not None  # noqa: S101 - all of these have one
    try:
        value = function.find(tuple(args))(Run(None, 0, 0), *args)
    except CelError:
        return None
    cost = function.cost(*args)

    def charge(run: Run) -> Any:
        run.cost += cost
        return value

    return charge


_SPECIAL: dict[str, Callable[[list[Code]], Code]] = {
    "_&&_": lambda codes: make_logic(codes, decisive=False),
    "_||_": lambda codes: make_logic(codes, decisive=True),
    "@not_strictly_false": lambda codes: make_lenient(codes[0]),
    "or": lambda codes: make_alternative(*codes, takes_value=False),
    "orValue": lambda codes: make_alternative(*codes, takes_value=True),
}


def _find_base(node: Node) -> Node:
    while isinstance(node, Select) or (isinstance(node, Call) and node.function in _CHAINED):
        node = node.operand if isinstance(node, Select) else node.args[0]
    return node


def _is_choice(node: Node) -> bool:
    return isinstance(node, Call) and node.function == "_?_:_"


def _is_attribute(node: Node) -> bool:
    return isinstance(node, Ident | Select) or (
        isinstance(node, Call) and node.function in _CHAINED
    )


def _name_type(node: Select) -> TypeName | None:
    fields: list[str] = []
    here: Node = node
    while isinstance(here, Select):
        fields.append(here.field)
        here = here.operand
    if not isinstance(here, Ident) or here.is_checked:
        return None
    name = ".".join([here.name, *reversed(fields)]).removeprefix(".")
    return TypeName(name) if name in NAMED else None


def _read_device(run: Run) -> Any:
    return run.device
