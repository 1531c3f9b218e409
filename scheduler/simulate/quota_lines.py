"""Prints the workloads in queues in the answer of ``evenkeel simulate``: who gets quota, who waits, and who gives it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.cells import cell_len

from scheduler import printing

Json = dict[str, Any]
_GAP = "  "
_HEADS = ("WORKLOAD", "QUEUE", "STATE", "USES OR REASON")
# The most rows of workloads of one queue and one state.
_ROWS_MAX = 8
_LEAST_COLUMNS = 20


def name_workload(row: Json) -> str:
    """Name a workload: by its job if it has one."""
    job = row["job"]
    if job is None:
        return f"{row['namespace']}/{row['name']}"
    return f"{job['kind']} {row['namespace']}/{job['name']}"


def print_workloads(rows: Sequence[Json], width: int) -> Iterator[str]:
    """Print the workloads of which something is decided, and how many others have quota already; nothing for none."""
    names = {f"{one['namespace']}/{one['name']}": name_workload(one) for one in rows}
    told = [one for one in rows if one["state"] != "running" and _is_told(one)]
    cells: list[tuple[str, ...]] = []
    for (queue, state), some in groupby(
        told, key=lambda one: (one["queue"] or "-", _find_state(one))
    ):
        those = list(some)
        shown = those if len(those) <= _ROWS_MAX else those[: _ROWS_MAX - 1]
        cells += [(name_workload(one), queue, state, _find_remark(one, names)) for one in shown]
        if len(those) > len(shown):
            cells.append((f"… ({len(those) - len(shown)} more)", queue, state, ""))
    if cells:
        yield from print_table(_HEADS, cells, width)
    n_running = sum(one["state"] == "running" for one in rows)
    if n_running:
        have = "has" if n_running == 1 else "have"
        yield f"{printing.count_nouns(n_running, 'workload')} {have} quota as before"


def _is_told(row: Json) -> bool:
    """Whether a workload has quota or a reason; one that is finished has neither."""
    return bool(row["state"] in {"admitted", "waits"} or row["reason"])


def _find_state(row: Json) -> str:
    return "evicted" if (row["preempted"] or row["evicted"]) and row["state"] != "admitted" else str(row["state"])  # fmt: skip


def _find_remark(row: Json, names: Mapping[str, str]) -> str:
    if row["state"] == "admitted":
        return ", ".join(
            f"{use['amount']} {use['resource']} ({use['flavor']})" for use in row["uses"]
        )
    if row["preempted"] is not None:
        by = row["preempted"]["by"]
        return f"by {names.get(by, by)} ({row['preempted']['reason']})"
    if row["evicted"] is not None:
        return str(row["evicted"]["reason"])
    return str(row["reason"])


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Print a table whose last cells go on in new lines where they are too wide for the page."""
    cells = [heads, *rows]
    widths = [max(cell_len(row[i]) for row in cells) for i in range(len(heads) - 1)]
    indent = sum(widths) + len(_GAP) * len(widths)
    room = width - indent
    for row in cells:
        padded = (text + " " * (n - cell_len(text)) for text, n in zip(row, widths, strict=False))
        start = _GAP.join(padded)
        if room < _LEAST_COLUMNS:
            yield start.rstrip()
            if row[-1]:
                yield from printing.wrap_prose(row[-1], width, "    ").splitlines()
            continue
        first, *more = printing.wrap_prose(row[-1], room).splitlines() or [""]
        yield f"{start}{_GAP}{first}".rstrip()
        yield from (" " * indent + line for line in more)
