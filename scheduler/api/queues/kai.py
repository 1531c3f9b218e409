"""Reads KAI's queues.

Source: KAI-Scheduler (2026-03), ``pkg/apis/scheduling/v2/queue_types.go`` and
``pkg/scheduler/plugins/proportion``: a queue has a quota, a limit and a weight for CPU, memory and GPUs.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from scheduler.api import kai, values
from scheduler.api.groups.readers import reading
from scheduler.errors import BadInput

# The resources of a queue, in this order everywhere: milli-CPU, bytes, millionths of a card.
CPU, MEMORY, GPU = 0, 1, 2
NAMES = "cpu", "memory", "gpu"
# What one of KAI's units of a quota is in ours: it writes milli-CPU, MB and cards.
UNITS = 1, 1_000_000, 1_000_000
CARD = UNITS[GPU]
# A quota or a limit without a bound.
UNLIMITED = -1
# Amounts of the three resources.
Vector = tuple[int, int, int]
NOTHING: Vector = (0, 0, 0)
PRIORITY = 100
# No amount of a cluster is larger in KAI's units.
_MOST = 10**12
_INT32 = 2**31
# The names of MIG slices that count.
_MIG = re.compile(r"nvidia\.com/mig-([0-9]{1,2})g\.[0-9]+gb")
# A queue may say that its pods are not protected, whatever the queue above says.
_ZERO = re.compile(r"(?:0+(?:\.0+)?(?:h|m|s|ms|us|ns)?)+")


class KaiQueue(NamedTuple):
    """One of KAI's queues.

    Attributes:
        name: its name, which is unique in the cluster.
        created: the creation time as the API writes it.
        parent: the name of the queue above; empty for none.
        priority: queues of higher priority get their part of what is over all quotas first.
        quota: what belongs to it; ``UNLIMITED``: everything.
        limit: what it may have at most; ``UNLIMITED``: everything. Nothing is written: it may have nothing.
        weights: its parts of what is over all quotas.
        preempt_seconds: for so long a pod runs before one of its own queue may take its place; None: the queue above
            says so.
        reclaim_seconds: likewise for a pod of another queue.
        mistake: what is wrong with it; empty for nothing. Such a queue starts no pod.
    """

    name: str
    created: str = ""
    parent: str = ""
    priority: int = PRIORITY
    quota: Vector = NOTHING
    limit: Vector = NOTHING
    weights: tuple[float, float, float] = (0.0, 0.0, 0.0)
    preempt_seconds: float | None = None
    reclaim_seconds: float | None = None
    mistake: str = ""


def read_queue(found: kai.Queue) -> KaiQueue:
    """Read a queue of KAI.

    Raises:
        BadInput: a field is not what is allowed; the error names the field.
    """
    meta = found.metadata
    spec = values.read_mapping(found.spec, "spec")
    field = "spec.resources"
    resources = values.read_mapping(spec.get("resources"), field)
    given = [values.read_mapping(resources.get(name), f"{field}.{name}") for name in NAMES]
    quota, limit = (_read_amounts(given, name) for name in ("quota", "limit"))
    return KaiQueue(
        meta.name,
        meta.creation_timestamp,
        parent=reading.read_optional_name(spec, "parentQueue", "spec"),
        priority=PRIORITY
        if spec.get("priority") is None
        else values.read_integer(spec["priority"], "spec.priority", -_INT32, _INT32 - 1),
        quota=quota,
        limit=limit,
        weights=_read_weights(given),
        preempt_seconds=_read_seconds(spec, "preemptMinRuntime"),
        reclaim_seconds=_read_seconds(spec, "reclaimMinRuntime"),
    )


@lru_cache(maxsize=1024)
def count_mig_cards(resource: str) -> int:
    """Count as how many cards one unit of a resource counts by its name: a MIG slice as its number of compute slices.

    Source: KAI-Scheduler (2026-03), ``pkg/scheduler/api/common_info/resources/mig.go``.
    """
    found = _MIG.fullmatch(resource)
    return int(found[1]) if found is not None else 0


def _read_amounts(given: list[Mapping[str, Any]], name: str) -> Vector:
    found = [_read_number(one, i, name) for i, one in enumerate(given)]
    cpu, memory, gpu = (
        UNLIMITED if one == UNLIMITED else round(one * unit)
        for one, unit in zip(found, UNITS, strict=True)
    )
    return cpu, memory, gpu


def _read_weights(given: list[Mapping[str, Any]]) -> tuple[float, float, float]:
    name = "overQuotaWeight"
    found = [_read_number(one, i, name) for i, one in enumerate(given)]
    if UNLIMITED in found:
        field = f"spec.resources.{NAMES[found.index(UNLIMITED)]}.{name}"
        raise BadInput(field, "-1 is not a number of at least 0")
    cpu, memory, gpu = found
    return cpu, memory, gpu


def _read_number(raw: Mapping[str, Any], resource: int, name: str) -> float:
    """Read a number of at least 0, or -1; what is not there is 0."""
    given = raw.get(name)
    if given is None:
        return 0.0
    field = f"spec.resources.{NAMES[resource]}.{name}"
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if not is_number or not math.isfinite(given) or not (given == UNLIMITED or 0 <= given <= _MOST):
        text = f"is not a number from 0 to {_MOST}"
        if name != "overQuotaWeight":
            text += ", nor -1 for no bound"
        raise BadInput(field, f"{values.quote(given)} {text}")
    return float(given)


def _read_seconds(spec: Mapping[str, Any], name: str) -> float | None:
    given = spec.get(name)
    if given is None:
        return None
    field = f"spec.{name}"
    if not isinstance(given, str):
        raise BadInput(field, f"{values.quote(given)} is not a duration such as 10m")
    return 0.0 if _ZERO.fullmatch(given) else reading.parse_seconds(given, field)


def write_in_units(resource: int, amount: int) -> str:
    """Write an amount in KAI's units, as a plain decimal number."""
    unit = UNITS[resource]
    whole, rest = divmod(abs(amount), unit)
    places = len(str(unit)) - 1
    text = f"{whole}.{rest:0{places}d}".rstrip("0").rstrip(".") if rest else str(whole)
    return f"-{text}" if amount < 0 else text


def add(one: Vector, other: Vector, sign: int = 1) -> Vector:
    """Add amounts, or take the second ones from the first ones."""
    return one[0] + sign * other[0], one[1] + sign * other[1], one[2] + sign * other[2]
