"""Summarises runs that differ only in their seed by mean and spread."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from scheduler.replay.measures.averages import Record, Value


def summarise_records(
    records: Sequence[Record], by: Sequence[str], leave_out: Sequence[str]
) -> list[Record]:
    """Make one record per distinct ``by``, in the order of their first records: each figure's mean, and its spread.

    ``<figure>_sd`` is the sample standard deviation (n - 1) over the runs, None for a single one;
    ``runs`` counts the runs. Fields of ``leave_out`` and fields that are no numbers are left out.
    """
    groups: dict[tuple[Value, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(tuple(record[key] for key in by), []).append(record)
    summary: list[Record] = []
    for key, group in groups.items():
        one: Record = {**dict(zip(by, key, strict=True)), "runs": len(group)}
        for name in group[0]:
            if name not in by and name not in leave_out:
                found = [r[name] for r in group]
                values = [v for v in found if isinstance(v, int | float)]
                one[name] = statistics.fmean(values) if values else None
                one[f"{name}_sd"] = statistics.stdev(values) if len(values) > 1 else None
        summary.append(one)
    return summary
