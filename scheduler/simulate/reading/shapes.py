"""Describes wrong types of fields in YAML's words; msgspec reports types in JSON's words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_WRONG_TYPE = re.compile(r"Expected `([^`]+)`, got `([^`]+)`")
_WORDS = {
    "object": "a map",
    "array": "a list",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "empty",
}


_STEP = re.compile(r"\[\.\.\.\]|\[(\d+)\]|\.?([^.\[]+)")
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "bool"),
    (int, "int"),
    (float, "float"),
    (str, "str"),
    (Mapping, "object"),
    (list, "array"),
    (type(None), "null"),
)


def add_keys(field: str, problem: str, body: Any) -> str:
    """Add the keys that msgspec leaves out to the path of a wrong value: ``labels[...]`` becomes ``labels[app]``."""
    found = _WRONG_TYPE.fullmatch(problem)
    if found is None or "[...]" not in field:
        return field
    steps = list(_STEP.finditer(field))
    return _find_path(steps, body, found[2]) or field


def describe_several(field: str, problem: str, body: Any) -> tuple[str, str] | None:
    """Describe a map of which several values have a wrong type; msgspec reports only the first one."""
    found = _WRONG_TYPE.fullmatch(problem)
    if found is None or not field.endswith("[...]") or field.count("[...]") > 1:
        return None
    value = body
    for step in list(_STEP.finditer(field))[:-1]:
        value = value[step[2] if step[1] is None else int(step[1])]
    allowed = {"null", *found[1].split(" | ")}
    if not isinstance(value, Mapping) or not allowed <= _WORDS.keys():
        return None
    kinds = {key: _find_kind(one) for key, one in value.items()}
    wrong = {key: kind for key, kind in kinds.items() if kind and kind not in allowed}
    if len(wrong) < 2:
        return None
    each = (f"[{key}] is {_WORDS[kind]}" for key, kind in wrong.items())
    return field.removesuffix("[...]"), f"values {_name_types(found[1])}: {', '.join(each)}"


def _find_path(steps: Sequence[re.Match[str]], value: Any, kind: str) -> str | None:
    """Find the path to the first value of a kind behind these steps; None if there is none."""
    if not steps:
        return "" if _find_kind(value) == kind else None
    step, rest = steps[0], steps[1:]
    if step[0] == "[...]":
        for key, inner in value.items() if isinstance(value, Mapping) else ():
            if (behind := _find_path(rest, inner, kind)) is not None:
                return f"[{key}]{behind}"
        return None
    try:
        behind = _find_path(rest, value[step[2] if step[1] is None else int(step[1])], kind)
    except (KeyError, IndexError, TypeError):
        return None
    return None if behind is None else f"{step[0]}{behind}"


def _find_kind(value: Any) -> str:
    return next((word for types, word in _KINDS if isinstance(value, types)), "")


def describe_type(problem: str) -> str:
    """Describe a wrong type in YAML's words; other problems keep their text."""
    found = _WRONG_TYPE.fullmatch(problem)
    if found is None:
        return problem
    if not {*found[1].split(" | "), found[2]} <= _WORDS.keys():
        return problem
    return f"{_name_types(found[1])}, is {_WORDS[found[2]]}"


def _name_types(types: str) -> str:
    # A null means an absent field: no message recommends one.
    wanted = [word for word in types.split(" | ") if word != "null"]
    if {"int", "float"} <= set(wanted):
        wanted.remove("int")
    return f"must be {' or '.join(_WORDS[word] for word in wanted)}"
