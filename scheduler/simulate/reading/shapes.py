"""What a field must be and what it is, in the words of who writes YAML; msgspec tells the types of JSON."""

from __future__ import annotations

import re

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


def said(problem: str) -> str:
    """The same of a wrong type; whatever else is wrong stays as it is told."""
    found = _WRONG_TYPE.fullmatch(problem)
    if found is None:
        return problem
    # A null is a field that is absent: nobody is told to write one.
    wanted = [word for word in found[1].split(" | ") if word != "null"]
    if {"int", "float"} <= set(wanted):
        wanted.remove("int")
    if not {*wanted, found[2]} <= _WORDS.keys():
        return problem
    allowed = " or ".join(_WORDS[word] for word in wanted)
    return f"must be {allowed}, is {_WORDS[found[2]]}"
