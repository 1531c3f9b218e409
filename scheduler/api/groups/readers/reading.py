"""Reads single values of groups: of labels and annotations, which are texts, and of specs, which may be anything.

A tenant writes all of them. So every number is an int32, and every list, text and name has a longest length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from scheduler.api import names, values
from scheduler.errors import BadInput

INT32_MAX = 2**31 - 1
# The most items of a list or of a map that are read: parts of a group, groups that are placed together, levels.
ITEMS_MAX = 64
# The longest name of an object, and the longest JSON within an annotation.
NAME_MAX = 253
JSON_MAX = 16_384
_DIGITS = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)
# A duration as Go writes it; each unit with its seconds.
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PIECE = r"([0-9]{1,10}(?:\.[0-9]{0,9})?)(h|ms|m|s|us|µs|ns)"
_PIECES = re.compile(_PIECE)
_DURATION = re.compile(rf"(?:{_PIECE}){{1,8}}")
_TRUE, _FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")

T = TypeVar("T")
Texts = Mapping[str, str]


class Notes(NamedTuple):
    """Annotations, and where they stand."""

    texts: Texts
    field: str = "metadata"

    def name(self, key: str) -> str:
        """Return the path of one of them."""
        return f"{self.field}.annotations[{key}]"


def name_label(key: str) -> str:
    """Return the path of a label of a pod."""
    return f"metadata.labels[{key}]"


def parse_count(text: str, field: str, low: int = 1) -> int:
    """Read an integer that is written as a text."""
    # int() alone would also take underscores, blanks and the digits of other scripts.
    if _DIGITS.fullmatch(text):
        number = int(text)
        if low <= number <= INT32_MAX:
            return number
    raise BadInput(field, f"{values.quote(text)} is not an integer within {low}..{INT32_MAX}")


def parse_rank(text: str | None) -> int:
    """Read a rank that a controller has written; -1 if there is none, or it is none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else -1


def parse_truth(text: str, field: str) -> bool:
    """Read a truth value as Go reads it."""
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise BadInput(field, f"{values.quote(text)} is neither true nor false")


def parse_seconds(text: str, field: str) -> float:
    """Read a duration: seconds, or as Go writes it."""
    seconds = -1.0
    if _DIGITS.fullmatch(text):
        seconds = float(text)
    elif len(text) < NAME_MAX and _DURATION.fullmatch(text):
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PIECES.findall(text))
    if 0 < seconds <= INT32_MAX:
        return seconds
    raise BadInput(
        field,
        f"{values.quote(text)} is not a duration: write seconds (5400) or hours, minutes and seconds (1h30m)",
    )


def parse_json(text: str, field: str) -> Any:
    """Read JSON that is written in an annotation."""
    if len(text) > JSON_MAX:
        raise BadInput(field, f"has more than {JSON_MAX} characters, the maximum")
    try:
        return msgspec.json.decode(text.encode(errors="replace"))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadInput(field, f"{values.quote(text)} is not JSON") from error


def read_count(raw: Any, field: str, low: int = 0) -> int:
    """Read an integer of a spec."""
    return values.read_integer(raw, field, low, INT32_MAX)


def read_optional_count(raw: Mapping[str, Any], key: str, under: str, low: int = 0) -> int | None:
    """Read an integer of a spec, which may be absent."""
    found = raw.get(key)
    return None if found is None else read_count(found, f"{under}.{key}", low)


def read_name(raw: Any, field: str, what: str = "a name") -> str:
    """Read a name, which must be there."""
    if not isinstance(raw, str) or not 0 < len(raw) <= NAME_MAX:
        raise BadInput(field, f"{values.quote(raw)} is not {what} of 1 to {NAME_MAX} characters")
    return raw


def read_optional_name(raw: Mapping[str, Any], key: str, under: str, what: str = "a name") -> str:
    """Read a name; an absent one is empty."""
    found = raw.get(key)
    return "" if found is None or found == "" else read_name(found, f"{under}.{key}", what)


def read_few(raw: Any, field: str, kind: type[T], most: int = ITEMS_MAX) -> list[T]:
    """Read a list of not too many items; an absent one is empty."""
    if isinstance(raw, list) and len(raw) > most:
        raise BadInput(field, f"has {len(raw)} items; at most {most} are allowed")
    return values.read_items(raw, field, kind)


def read_map(raw: Any, field: str, most: int = ITEMS_MAX) -> Mapping[str, Any]:
    """Read an object of not too many fields of any names; an absent one is empty."""
    found = values.read_mapping(raw, field)
    if len(found) > most:
        raise BadInput(field, f"has {len(found)} items; at most {most} are allowed")
    for key in found:
        read_name(key, field)
    return found


def find_run_seconds(
    texts: Notes, labels: Texts, deadline: Any, deadline_field: str
) -> float | None:
    """Find after how many seconds something has ended: the least that is said of it; None if nothing is."""
    said: list[float] = []
    if names.RUN_TIME in texts.texts:
        said.append(parse_seconds(texts.texts[names.RUN_TIME], texts.name(names.RUN_TIME)))
    if names.KUEUE_RUN_TIME in labels:
        field = f"{texts.field}.labels[{names.KUEUE_RUN_TIME}]"
        said.append(parse_count(labels[names.KUEUE_RUN_TIME], field))
    if deadline is not None:
        said.append(values.read_integer(deadline, deadline_field, 1, 2**63 - 1))
    return min(said, default=None)


def read_restart(notes: Notes) -> bool | None:
    """Read whether a group of which pods are lost is to start anew as a whole; None if nothing is said."""
    text = notes.texts.get(names.ON_FAILURE)
    if text is None:
        return None
    if text not in {names.REPLACE, names.RESTART}:
        wrong = f'{values.quote(text)} is neither "{names.REPLACE}" nor "{names.RESTART}"'
        raise BadInput(notes.name(names.ON_FAILURE), wrong)
    return text == names.RESTART
