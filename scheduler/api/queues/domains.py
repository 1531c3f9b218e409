"""Reads and writes ``topologyAssignment`` of Workloads: in which domains of a topology the pods of a pod set are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from scheduler.api.door.workload_decisions import DomainsGiven
from scheduler.api.kinds import WORKLOADS

Json = dict[str, Any]
# More domains than pods that a workload may have on nodes are not read.
_DOMAINS_MAX = 100_000
_INT32 = 2**31


class _Values(msgspec.Struct, rename="camel"):
    prefix: str = ""
    suffix: str = ""
    roots: list[str] = []


class _ValuesOfLevel(msgspec.Struct, rename="camel"):
    universal: str | None = None
    individual: _Values | None = None


class _Counts(msgspec.Struct, rename="camel"):
    universal: int | None = None
    individual: list[int] | None = None


class _Slice(msgspec.Struct, rename="camel"):
    domain_count: int
    values_per_level: list[_ValuesOfLevel]
    pod_counts: _Counts


class _Domain(msgspec.Struct, rename="camel"):
    values: list[str]
    count: int


class _Assignment(msgspec.Struct, rename="camel"):
    levels: list[str]
    slices: list[_Slice] = []
    domains: list[_Domain] = []


def write_domains(given: DomainsGiven | None, version: str) -> Json | None:
    """Write a ``topologyAssignment``. The older version lists domains one by one; the newer one writes equal parts once."""
    if given is None:
        return None
    made: Json = {"levels": list(given.levels)}
    if version != WORKLOADS.version:
        domains = [{"values": list(values), "count": n} for values, n in given.domains]
        return made | {"domains": domains}
    by_level = zip(*(values for values, _ in given.domains), strict=True)
    slice_ = {
        "domainCount": len(given.domains),
        "valuesPerLevel": [_write_values(values) for values in by_level],
        "podCounts": _write_counts([n for _, n in given.domains]),
    }
    return made | {"slices": [slice_]}


def _write_values(values: Sequence[str]) -> Json:
    if len(set(values)) == 1:
        return {"universal": values[0]}
    return {"individual": {"roots": list(values)}}


def _write_counts(counts: Sequence[int]) -> Json:
    if len(set(counts)) == 1:
        return {"universal": counts[0]}
    return {"individual": list(counts)}


def read_domains(given: Json | None) -> DomainsGiven | None:
    """Read a ``topologyAssignment`` of any version; None if there is none, or it contradicts itself."""
    if given is None:
        return None
    try:
        found = msgspec.convert(given, _Assignment)
    except msgspec.ValidationError:
        return None
    domains = [(tuple(one.values), one.count) for one in found.domains]
    if sum(one.domain_count for one in found.slices) + len(domains) > _DOMAINS_MAX:
        return None
    try:
        for one in found.slices:
            domains += _list_domains(one)
    except ValueError:
        return None
    levels = tuple(found.levels)
    is_whole = all(len(values) == len(levels) and 0 < n < _INT32 for values, n in domains)
    return DomainsGiven(levels, tuple(sorted(domains))) if levels and domains and is_whole else None


def _list_domains(found: _Slice) -> Iterator[tuple[tuple[str, ...], int]]:
    """List the domains of a slice; the lists in it have to be of the same length."""
    by_level = [_list_values(one, found.domain_count) for one in found.values_per_level]
    counts = found.pod_counts.individual
    if counts is None:
        counts = [found.pod_counts.universal or 0] * found.domain_count
    return zip(zip(*by_level, strict=True), counts, strict=True)


def _list_values(found: _ValuesOfLevel, n: int) -> list[str]:
    if found.individual is None:
        return [found.universal or ""] * n
    return [
        f"{found.individual.prefix}{root}{found.individual.suffix}"
        for root in found.individual.roots
    ]
