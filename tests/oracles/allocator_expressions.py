"""A judge for the few forms of expressions that the worlds and cases of the allocator's tests use, in CEL's words."""

import operator
import re
from collections.abc import Callable
from typing import Any

from tests.oracles.allocator_pools import exact
from tests.oracles.allocator_rules import CompileError, EvaluationError

Json = dict[str, Any]
HINT = "consider using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
NAME = r"""(?:\.(?P<short>\w+)|\["(?P<long>[^"]+)"\])"""
ATTRIBUTE = re.compile(
    r"""device\.attributes\["(?P<domain>[^"]+)"\]""" + NAME + r"""(?: == (?P<value>.+))?"""
)
CAPACITY = re.compile(
    r"""device\.capacity\["(?P<domain>[^"]+)"\]"""
    + NAME
    + r"""\.compareTo\(quantity\("(?P<amount>[^"]+)"\)\) (?P<how>>=|<=|>|<|==) 0"""
)
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
}
VERSION = re.compile(r"\d+\.\d+\.\d+(?:[-+].*)?")


def judge(expression: str, driver: str, device: Json) -> bool:
    if " || " in expression:
        return _any(expression.split(" || "), driver, device)
    if " && " in expression:
        return all(_answer(one, driver, device) for one in expression.split(" && "))
    return _answer(expression, driver, device)


def _any(parts: list[str], driver: str, device: Json) -> bool:
    """One that holds outweighs errors of others."""
    problems: list[EvaluationError] = []
    for part in parts:
        try:
            if judge(part, driver, device):
                return True
        except EvaluationError as problem:
            problems.append(problem)
    if problems:
        raise problems[0]
    return False


def _answer(expression: str, driver: str, device: Json) -> bool:
    if re.fullmatch(r"\w+", expression) and expression not in {"true", "false"}:
        raise CompileError(
            f"compilation failed: ERROR: <input>:1:1: undeclared reference to '{expression}' (in container '')\n"
            f" | {expression}\n | ^"
        )
    values = {name: _value(name, one) for name, one in (device.get("attributes") or {}).items()}
    if expression in {"true", "false"}:
        return expression == "true"
    if (found := re.fullmatch(r'device\.driver == "([^"]*)"', expression)) is not None:
        return found[1] == driver
    if (
        found := re.fullmatch(r"device\.allowMultipleAllocations == (\w+)", expression)
    ) is not None:
        return bool(device.get("allowMultipleAllocations")) == (found[1] == "true")
    if (found := ATTRIBUTE.fullmatch(expression)) is not None:
        value = _look_up(values, found, driver)
        return _equals(value, found["value"])
    found = CAPACITY.fullmatch(expression)
    assert found is not None, expression
    capacity = _look_up(device.get("capacity") or {}, found, driver)
    return COMPARE[found["how"]](exact(capacity["value"]), exact(found["amount"]))


def _value(name: str, attribute: Json) -> Any:
    if "version" in attribute and not VERSION.fullmatch(attribute["version"]):
        raise EvaluationError(
            f"attribute {name}: parse semantic version: No Major.Minor.Patch elements found"
        )
    if not attribute:
        raise EvaluationError(f"attribute {name}: unsupported attribute value")
    kind, value = next(iter(attribute.items()))
    return NotImplemented if kind == "version" else value


def _look_up(values: Json, found: re.Match[str], driver: str) -> Any:
    name = found["short"] or found["long"]
    for full, value in values.items():
        domain, _, short = full.rpartition("/")
        if (domain or driver, short) == (found["domain"], name):
            return value
    raise EvaluationError(f"no such key: {name}. {HINT}")


def _equals(value: Any, literal: str | None) -> bool:
    if literal is None:
        assert isinstance(value, bool)
        return value
    if value is NotImplemented:
        raise EvaluationError("no such overload")
    wanted: Any = {"true": True, "false": False}.get(literal)
    if wanted is None:
        wanted = literal[1:-1] if literal.startswith('"') else int(literal)
    return type(value) is type(wanted) and bool(value == wanted)
