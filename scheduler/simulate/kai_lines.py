"""Prints which queues of KAI, and which pods in them, have more or less by a change, in the answer of ``evenkeel simulate``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduler.simulate.quota_lines import (
    ARROW,
    MAKERS,
    Table,
    count_by_change,
    print_tables,
    write_both,
)

Json = dict[str, Any]
_QUEUE_HEADS = ("QUEUE", "RESOURCE", "QUOTA", "LIMIT", "WEIGHT", "FAIR", "HELD")
_POD_HEADS = ("POD", "CHANGE", "WHERE OR WHY")
_CELLS = "quota", "limit", "weight", "fairShare", "held"
_CHANGES = {
    "gains": ("gains a node", "gain a node"),
    "loses": ("loses its node", "lose their node"),
}


def print_changes(changes: Json, width: int) -> Iterator[str]:
    """Print who gains and who loses."""
    yield count_changes(changes)
    yield from print_tables(list_tables(changes), "pod", width)


def list_tables(changes: Json) -> list[Table]:
    """List the tables of what differs; the last one is of pods."""
    return [(_QUEUE_HEADS, _list_queue_rows(changes)), (_POD_HEADS, _list_pod_rows(changes))]


def count_changes(changes: Json) -> str:
    """Count the pods that gain and lose a node."""
    by, none = MAKERS[changes["by"]]
    if not (changes["queues"] or changes["pods"]):
        return f"{none}: every queue and every pod has what it had"
    said = count_by_change(changes["pods"], "pod", _CHANGES)
    return f"{by}: {said or 'no pod gains or loses a node'}"


def _list_queue_rows(changes: Json) -> list[tuple[str, ...]]:
    """List the cells of the resources of queues that differ; heads are ``_QUEUE_HEADS``."""
    rows: list[tuple[str, ...]] = []
    for one in changes["queues"]:
        olds, news = (
            {use["resource"]: use for use in (one[when] or {"uses": ()})["uses"]}
            for when in ("before", "after")
        )
        for resource in dict.fromkeys((*news, *olds)):
            both = {"before": olds.get(resource), "after": news.get(resource)}
            cells = [
                write_both(both, lambda use, key=key: f"{use[key]:.13g}" if key == "weight" else str(use[key]))  # type: ignore[misc]
                for key in _CELLS
            ]  # fmt: skip
            if any(ARROW in cell for cell in cells):
                rows.append((one["name"], resource, *cells))
    return rows


def _list_pod_rows(changes: Json) -> list[tuple[str, ...]]:
    """List the cells of pods that gain or lose a node; heads are ``_POD_HEADS``."""
    rows: list[tuple[str, ...]] = []
    for one in sorted(changes["pods"], key=lambda one: list(_CHANGES).index(one["change"])):
        why = (
            f"on {one['node']}"
            if one["node"]
            else f"evicted for {one['by']}"
            if one["by"]
            else one["message"]
        )
        rows.append((f"{one['namespace']}/{one['name']}", one["change"], why))
    return rows
