"""JSON patches as the API server applies them (RFC 6902): adds, replaces and removes."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]


def apply_patch(found: Json, operations: Sequence[Json]) -> Json:
    """Apply operations to a copy of an object; a place that is not there is an error."""
    made = copy.deepcopy(found)
    for one in operations:
        *under, last = (
            step.replace("~1", "/").replace("~0", "~") for step in one["path"].split("/")[1:]
        )
        holder: Any = made
        for step in under:
            holder = holder[int(step)] if isinstance(holder, list) else holder[step]
        _apply(holder, last, one)
    return made


def _apply(holder: Any, last: str, one: Json) -> None:
    if isinstance(holder, list):
        if last == "-":
            holder.append(copy.deepcopy(one["value"]))
        else:
            holder[int(last)] = copy.deepcopy(one["value"])
    elif one["op"] == "remove":
        del holder[last]
    else:
        assert one["op"] == "add" or last in holder
        holder[last] = copy.deepcopy(one["value"])
