"""Other queues than those of the baseline: the world before the change, and who gains and loses by the change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from scheduler.simulate.reading import kinds
from scheduler.simulate.reading.gathering import Gathered

Json = dict[str, Any]
_HAVE_QUOTA = frozenset({"admitted", "running"})


class By(StrEnum):
    """What makes the difference: the queues of one's own files, or the changes that are simulated."""

    FILES = "files"
    CHANGES = "changes"


def has_queues(gathered: Gathered) -> bool:
    """Whether there are any queues among the objects."""
    return any(kinds.find_kind(body) in kinds.QUEUES for body in gathered.objects)


def find_before(gathered: Gathered) -> Gathered | None:
    """Find the objects as they are without the queues of one's own files; None if these, or all others, have no queues.

    One's other objects, such as jobs, are there before and after: only what the queues change is compared.
    """
    # The origins of what changes add stand behind those of the objects.
    pairs = list(zip(gathered.origins, gathered.objects, strict=False))
    kept = [
        (origin, body)
        for origin, body in pairs
        if origin.file not in gathered.own or kinds.find_kind(body) not in kinds.QUEUES
    ]
    if len(kept) == len(pairs):
        return None
    kept += gathered.replaced
    if not any(kinds.find_kind(body) in kinds.QUEUES for _, body in kept):
        return None
    return replace(
        gathered, origins=[origin for origin, _ in kept], objects=[body for _, body in kept]
    )


def compare(before: Json, after: Json, by: By) -> Json | None:
    """Compare the queues and the workloads of two results of a simulation; None if neither has any.

    Returns:
        ``by``, what makes the difference; ``queues``: those that differ, each as it is before and after, and
        ``workloads``: those that have quota in one of the two only, or other quota, with the reason.
    """
    if not any(one["queues"] or one["workloads"] for one in (before, after)):
        return None
    return {
        "by": str(by),
        "queues": list(_compare_queues(before["queues"], after["queues"])),
        "workloads": list(_compare_workloads(before["workloads"], after["workloads"])),
    }


def _compare_queues(before: Sequence[Json], after: Sequence[Json]) -> Iterator[Json]:
    olds, news = ({(one["kind"], one["name"]): one for one in some} for some in (before, after))
    for kind, name in dict.fromkeys((*news, *olds)):
        old, new = olds.get((kind, name)), news.get((kind, name))
        if old != new:
            yield {"kind": kind, "name": name, "before": old, "after": new}


def _compare_workloads(before: Sequence[Json], after: Sequence[Json]) -> Iterator[Json]:
    olds, news = (
        {(one["namespace"], one["name"]): one for one in some} for some in (before, after)
    )
    for key in dict.fromkeys((*news, *olds)):
        old, new = olds.get(key), news.get(key)
        had, has = _list_uses(old), _list_uses(new)
        if had != has:
            yield _describe(new or old or {}, old, new)


def _list_uses(row: Json | None) -> Json | None:
    """List what a workload has; None for one without quota."""
    if row is None or row["state"] not in _HAVE_QUOTA:
        return None
    return {"queue": row["queue"], "uses": row["uses"]}


def _name_change(had: Json | None, has: Json | None) -> str:
    if had is None or has is None:
        return "gains" if had is None else "loses"
    places = [
        (one["queue"], {(use["flavor"], use["resource"]) for use in one["uses"]})
        for one in (had, has)
    ]
    return "changes" if places[0] == places[1] else "moves"


def _describe(row: Json, old: Json | None, new: Json | None) -> Json:
    had, has = _list_uses(old), _list_uses(new)
    change = _name_change(had, has)
    said: Mapping[str, Any] = new or {"reason": "", "message": "", "preempted": None}
    preempted = said["preempted"] if change == "loses" else None
    return {
        "namespace": row["namespace"],
        "name": row["name"],
        "job": row["job"],
        "change": change,
        "before": had,
        "after": has,
        "by": preempted and preempted["by"],
        "reason": preempted["reason"] if preempted else said["reason"],
        "message": said["message"],
    }
