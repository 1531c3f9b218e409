"""Label selectors as text, as ``kubectl --selector`` takes them: ``a=b,c!=d,e in (x,y),f notin (z),g,!h``."""

from __future__ import annotations

import re
from typing import Any

from scheduler.api import selectors
from scheduler.api.packing import pack_texts
from scheduler.api.selectors import Requirement, Selector
from scheduler.errors import BadInput

_SET = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)")
_EQUAL = re.compile(r"(?P<key>[^\s=!]+)\s*(?P<operator>==|=|!=)\s*(?P<value>\S*)")
_KEY = re.compile(r"(?P<absent>!?)\s*(?P<key>[^\s=!]+)")
# Commas between requirements, but not those between the values of one.
_COMMA = re.compile(r",(?![^()]*\))")
_OPERATORS = {"in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn"}


def parse_text(text: str, field: str) -> Selector:
    """Parse a selector; an empty text selects nothing.

    Raises:
        BadInput: this is no selector; the error names the field and the part that cannot be read.
    """
    if not text.strip():
        return selectors.NOTHING
    return selectors.make_selector(_parse_part(one.strip(), field) for one in _COMMA.split(text))


def check_text(given: Any, field: str) -> str:
    """Return the text of a setting that is a selector.

    Raises:
        BadInput: as ``parse_text``.
    """
    if not isinstance(given, str):
        raise BadInput(field, f"{given!r} is no text; write a label selector in quotes")
    parse_text(given, field)
    return given


def _parse_part(part: str, field: str) -> Requirement:
    if found := _SET.fullmatch(part):
        wanted = [one.strip() for one in found["values"].split(",")]
        return _make(found["key"], _OPERATORS[found["operator"]], wanted, field)
    if found := _EQUAL.fullmatch(part):
        return _make(found["key"], _OPERATORS[found["operator"]], [found["value"]], field)
    if found := _KEY.fullmatch(part):
        return _make(found["key"], "DoesNotExist" if found["absent"] else "Exists", [], field)
    allowed = 'parts such as "key=value", "key!=value", "key in (a,b)", "key notin (a)", "key" or "!key", with commas between'
    raise BadInput(
        field, f"{selectors.quote(part)} is no part of a label selector; allowed are {allowed}"
    )


def _make(key: str, operator: str, wanted: list[str], field: str) -> Requirement:
    selectors.check_name(key, field)
    for one in wanted:
        selectors.check_value(one, field)
    return Requirement(key, operator, pack_texts(wanted))
