"""Prints which queues of KAI, and which pods in them, have more or less by a change, in the answer of ``evenkeel simulate``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from scheduler import printing
from scheduler.simulate.quota_lines import ARROW, MAKERS, print_table, write_both

Json = dict[str, Any]
QUEUE_HEADS = ("QUEUE", "RESOURCE", "QUOTA", "LIMIT", "WEIGHT", "FAIR", "HELD")
POD_HEADS = ("POD", "CHANGE", "WHERE OR WHY")
_CELLS = "quota", "limit", "weight", "fairShare", "held"
_CHANGES = {
    "gains": ("gains a node", "gain a node"),
    "loses": ("loses its node", "lose their node"),
}
_PODS_MAX = 40


def print_changes(changes: Json, width: int) -> Iterator[str]:
    """Print who gains and who loses."""
    yield count_changes(changes)
    pods = list_pod_rows(changes)
    for heads, rows in ((QUEUE_HEADS, list_queue_rows(changes)), (POD_HEADS, pods[:_PODS_MAX])):
        if rows:
            yield ""
            yield from print_table(heads, rows, width)
    if len(pods) > _PODS_MAX:
        yield f"and {printing.count_nouns(len(pods) - _PODS_MAX, 'more pod')}"


def count_changes(changes: Json) -> str:
    """Count the pods that gain and lose a node."""
    by, none = MAKERS[changes["by"]]
    if not (changes["queues"] or changes["pods"]):
        return f"{none}: every queue and every pod has what it had"
    n_of = Counter(one["change"] for one in changes["pods"])
    said = [
        f"{printing.count_nouns(n_of[change], 'pod')} {words[n_of[change] > 1]}"
        for change, words in _CHANGES.items()
        if n_of[change]
    ]
    return f"{by}: {', '.join(said) or 'no pod gains or loses a node'}"


def list_queue_rows(changes: Json) -> list[tuple[str, ...]]:
    """List the cells of the resources of queues that differ; heads are ``QUEUE_HEADS``."""
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


def list_pod_rows(changes: Json) -> list[tuple[str, ...]]:
    """List the cells of pods that gain or lose a node; heads are ``POD_HEADS``."""
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
