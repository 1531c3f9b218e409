"""Very large pods: each field is measured as text first, and decoded only if it is within a bound.

An API server takes objects of more than a megabyte. Most of that is commands and environment, which are
skipped; but 30,000 affinity terms cost 50 ms to decode, for each change of each such pod.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from scheduler.api import limits, wire
from scheduler.api.limits import PodLimits

# Smaller pods are decoded at once: they cannot cost much.
LARGE_BYTES = 64 * 1024

_PLAIN = (str, int, bool, str | None)
# What a running pod holds is read whatever its size. The API server itself bounds the size of annotations.
_UNBOUNDED = frozenset({
    "metadata.annotations", "spec.overhead", "spec.resources",
    "spec.containers[].resources", "spec.initContainers[].resources",
})  # fmt: skip
# A pod is changed before a bind of it can be given up, and etcd takes no more than 1.5 MiB: a pod that is
# nearly as large is not bound, because it could not be changed any more.
UNCHANGEABLE_BYTES = 1_300_000
_PARTS: dict[str, type[msgspec.Struct]] = {
    "metadata": wire.Meta,
    "spec": wire.PodSpec,
    "status": wire.PodStatus,
}
_LISTS = frozenset({"spec.containers", "spec.initContainers"})


def decode_pod(raw: bytes | msgspec.Raw, bounds: PodLimits) -> wire.Pod:
    """Decode a pod from JSON. A pod beyond the bounds keeps only what it is charged for; ``oversized`` says why.

    If it has no node, it is charged nothing, and is held: none of its requests are kept.

    Raises:
        MsgspecError: the JSON is no pod.
    """
    oversized: list[str] = []
    bound = bounds.text
    parts = _make_text_decoder(wire.Pod).decode(raw)
    found = {
        name: _assemble(getattr(parts, name), kind, bound, name, oversized)
        for name, kind in _PARTS.items()
        if getattr(parts, name)
    }
    made = wire.Pod(
        **found, oversized=limits.report_too_large(oversized[0], bound) if oversized else None
    )
    # The size of the whole pod is named only where no field is too long.
    problem = limits.find_excess(made, bounds)
    if problem is None and len(raw) > UNCHANGEABLE_BYTES:
        problem = limits.report_too_large("pod", UNCHANGEABLE_BYTES)
    if problem is None:
        return made
    kept = limits.cut_pod(made, bounds, problem)
    if not kept.spec.node_name:
        kept.spec.containers, kept.spec.init_containers = [], None
    return kept


def _assemble(
    raw: msgspec.Raw, kind: type[msgspec.Struct], bound: int, path: str, oversized: list[str]
) -> Any:
    measured = _make_text_decoder(kind).decode(raw)
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        value, where = getattr(measured, field.name), f"{path}.{field.encode_name}"
        if not isinstance(value, msgspec.Raw):
            values[field.name] = value
        elif not value:
            continue
        elif where in _LISTS:
            values[field.name] = _decode_containers(value, bound, where, oversized)
        elif len(value) > bound and where not in _UNBOUNDED:
            oversized.append(where)
        else:
            values[field.name] = _make_decoder(field.type).decode(value)
    return kind(**values)


def _decode_containers(
    raw: msgspec.Raw, bound: int, path: str, oversized: list[str]
) -> list[wire.Container]:
    parts = _make_decoder(list[msgspec.Raw] | None).decode(raw) or ()
    if all(len(part) <= bound for part in parts):
        whole: list[wire.Container] = _make_decoder(list[wire.Container] | None).decode(raw) or []
        return whole
    return [_assemble(part, wire.Container, bound, f"{path}[]", oversized) for part in parts]


@cache
def _make_decoder(kind: Any) -> Any:
    return msgspec.json.Decoder(kind)


@cache
def _make_text_decoder(kind: type[msgspec.Struct]) -> Any:
    """Make a decoder of the same fields that leaves all fields but plain ones as text."""
    fields: list[tuple[str, Any, Any]] = [
        (field.name, field.type, msgspec.field(name=field.encode_name, default=field.default))
        if field.type in _PLAIN
        else (field.name, msgspec.Raw, msgspec.field(name=field.encode_name, default=msgspec.Raw()))
        for field in msgspec.structs.fields(kind)
    ]
    return msgspec.json.Decoder(msgspec.defstruct(f"Measured{kind.__name__}", fields, gc=False))
