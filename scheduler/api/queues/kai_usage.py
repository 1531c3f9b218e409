"""What a queue of KAI's has used over time, as an annotation of its object, so that a restart goes on from there."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from scheduler.api import names, values
from scheduler.errors import BadInput

Parts = tuple[float, float, float]
_FIELD = f"metadata.annotations[{names.KAI_USAGE}]"
_BYTES_MAX = 1024
# A queue may hold more than there is, if nodes have gone.
_PART_MAX = 1e6
_SECONDS_MAX = 2.0**40


class UsageRecord(NamedTuple):
    """What a queue had used at some time; parts of all CPU, memory and cards that there are.

    Attributes:
        at: the time, in seconds since 1970.
        weight: the weight of all times that are in the average: 1 once they are long.
        holds: what it held then.
        before: what it had held until then, recent times counting more; not divided by ``weight``.
    """

    at: float
    weight: float
    holds: Parts
    before: Parts


def write_record(record: UsageRecord) -> str:
    """Write a record; ``read_record`` gives it back to the last digit."""
    return json.dumps(record._asdict(), separators=(",", ":"))


def read_record(annotations: Mapping[str, str] | None) -> UsageRecord | None:
    """Read the record of a queue; None if its annotations have none.

    Raises:
        BadInput: the annotation is not what is written.
    """
    text = (annotations or {}).get(names.KAI_USAGE)
    if text is None:
        return None
    try:
        given = msgspec.json.decode(text) if len(text) <= _BYTES_MAX else None
    except msgspec.MsgspecError:
        given = None
    if not isinstance(given, dict) or given.keys() != set(UsageRecord._fields):
        keys = ", ".join(UsageRecord._fields)
        raise BadInput(_FIELD, f"{values.quote(text)} is not a JSON object with {keys}")
    return UsageRecord(
        _read_number(given["at"], "at", _SECONDS_MAX),
        _read_number(given["weight"], "weight", 1.0),
        _read_parts(given["holds"], "holds"),
        _read_parts(given["before"], "before"),
    )


def _read_parts(raw: Any, key: str) -> Parts:
    if not isinstance(raw, list) or len(raw) != len(("cpu", "memory", "gpu")):
        raise BadInput(_FIELD, f"{key}: {values.quote(raw)} is not a list of three numbers")
    cpu, memory, gpu = (_read_number(one, key, _PART_MAX) for one in raw)
    return cpu, memory, gpu


def _read_number(raw: Any, key: str, most: float) -> float:
    is_number = isinstance(raw, int | float) and not isinstance(raw, bool)
    if not is_number or not math.isfinite(raw) or not 0 <= raw <= most:
        text = f"{key}: {values.quote(raw)} is not a number from 0 to {most:g}"
        raise BadInput(_FIELD, text)
    return float(raw)
