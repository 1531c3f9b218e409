"""Fewer pods where all of them do not fit (pkg/scheduler/flavorassigner/podset_reducer.go)."""

from collections.abc import Callable
from typing import TypeVar

from tests.oracles.kueue.workloads import Manifest

Result = TypeVar("Result")


def check_reducible(manifest: Manifest) -> bool:
    return any(
        one["count"] > one.get("minCount", one["count"]) for one in manifest["spec"]["podSets"]
    )


def search_counts(
    manifest: Manifest, try_counts: Callable[[list[int]], Result | None]
) -> Result | None:
    """Search by bisection for the smallest common reduction that is taken.

    What the search passes over is not tried, so a smaller reduction may have been taken too.
    """
    pod_sets = manifest["spec"]["podSets"]
    full = [int(one["count"]) for one in pod_sets]
    deltas = [int(one["count"]) - int(one.get("minCount", one["count"])) for one in pod_sets]
    total = sum(deltas)
    good_at, good = 0, None
    low, high = 0, total + 1
    while total and low < high:
        at = (low + high) // 2
        result = try_counts(
            [count - delta * at // total for count, delta in zip(full, deltas, strict=True)]
        )
        if result is None:
            low = at + 1
        else:
            high, good_at, good = at, at, result
    return good if low == good_at else None
