"""Reads for how long a Workload says that it runs."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.api import kueue, wire
from scheduler.api.groups import table
from scheduler.errors import BadInput


def find_run_seconds(found: kueue.Workload) -> float | None:
    """Find for how many seconds a Workload runs at most once it is admitted, by what it and its pods say; None if nothing."""
    return min(_list_seconds(found), default=None)


def _list_seconds(found: kueue.Workload) -> Iterator[float]:
    """List what is said by the Workload itself, and by the templates of all its pods."""
    limit = found.spec.maximum_execution_time_seconds
    if limit is not None:
        yield max(0.0, limit - (found.status.accumulated_past_execution_time_seconds or 0))
    of_sets = [_read_template(one.template) for one in found.spec.pod_sets or () if one.count]
    if of_sets and None not in of_sets:
        yield max(one for one in of_sets if one is not None)


def _read_template(template: kueue.PodTemplate) -> float | None:
    try:
        return table.read_run_seconds(wire.Pod(metadata=template.metadata, spec=template.spec))
    except BadInput:
        # The pods say the same, and what is wrong with them.
        return None
