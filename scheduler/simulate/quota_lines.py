"""Prints the workloads in queues in the answer of ``evenkeel simulate``: who gets quota, who waits, and who gives it back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.cells import cell_len

from scheduler import printing

Json = dict[str, Any]
# The heads of a table, and its rows.
Table = tuple[Sequence[str], Sequence[tuple[str, ...]]]
_GAP = "  "
_HEADS = ("WORKLOAD", "QUEUE", "STATE", "USES OR REASON")
_QUEUE_HEADS = ("QUEUE", "WITH QUOTA", "WAITING", "WEIGHT", "SHARE")
_USE_HEADS = ("QUEUE", "FLAVOR", "RESOURCE", "NOMINAL", "USED", "BORROWED")
_WORKLOAD_HEADS = ("WORKLOAD", "QUEUE", "QUOTA", "WHAT OR WHY")
ARROW = " -> "
# Who makes the difference, and what is said if there is none.
MAKERS = {
    "files": ("By the queues of your files", "The queues of your files change nothing"),
    "changes": ("By your changes", "Your changes change nothing in the queues"),
}
_CHANGES = {
    "gains": ("gains quota", "gain quota"),
    "loses": ("loses quota", "lose quota"),
    "moves": ("moves to another queue or flavor", "move to another queue or flavor"),
    "changes": ("has another amount", "have another amount"),
}
_CHANGES_MAX = 40
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
        return _write_uses(row["uses"])
    if row["preempted"] is not None:
        by = row["preempted"]["by"]
        return f"by {names.get(by, by)} ({row['preempted']['reason']})"
    if row["evicted"] is not None:
        return str(row["evicted"]["reason"])
    return str(row["reason"])


def print_changes(changes: Json, width: int) -> Iterator[str]:
    """Print who gains and who loses by other queues."""
    yield count_changes(changes)
    yield from print_tables(list_tables(changes), "workload", width)


def list_tables(changes: Json) -> list[Table]:
    """List the tables of what differs; the last one is of workloads."""
    return [
        (_QUEUE_HEADS, _list_queue_rows(changes)),
        (_USE_HEADS, _list_use_rows(changes)),
        (_WORKLOAD_HEADS, _list_workload_rows(changes)),
    ]


def print_tables(tables: Sequence[Table], noun: str, width: int) -> Iterator[str]:
    """Print tables that have rows; of the last one, which has a row for each ``noun``, the first rows."""
    *first, (heads, rows) = tables
    for some_heads, some in (*first, (heads, rows[:_CHANGES_MAX])):
        if some:
            yield ""
            yield from print_table(some_heads, some, width)
    if len(rows) > _CHANGES_MAX:
        yield f"and {printing.count_nouns(len(rows) - _CHANGES_MAX, f'more {noun}')}"


def count_changes(changes: Json) -> str:
    """Count the workloads that gain and lose by other queues."""
    by, none = MAKERS[changes["by"]]
    if not (changes["queues"] or changes["workloads"]):
        return f"{none}: every queue and every workload has what it had"
    said = count_by_change(changes["workloads"], "workload", _CHANGES)
    return f"{by}: {said or 'every workload has the quota that it had'}"


def count_by_change(rows: Sequence[Json], noun: str, words: Mapping[str, tuple[str, str]]) -> str:
    """Count rows by their change; ``words``: what is said of one and of many for each change. Empty for no rows."""
    n_of = Counter(one["change"] for one in rows)
    return ", ".join(
        f"{printing.count_nouns(n_of[change], noun)} {both[n_of[change] > 1]}"
        for change, both in words.items()
        if n_of[change]
    )


def _list_queue_rows(changes: Json) -> list[tuple[str, ...]]:
    """List the cells of the queues and cohorts that differ in what they have in all; heads are ``_QUEUE_HEADS``."""
    rows: list[tuple[str, ...]] = []
    for one in changes["queues"]:
        cells = [
            write_both(one, lambda row, key=key: f"{row[key]}")  # type: ignore[misc]
            for key in ("holding", "waiting")
        ]
        cells += [
            write_both(one, lambda row: f"{row['weight']:g}"),
            write_both(one, _write_share),
        ]
        if any(ARROW in cell for cell in cells):
            name = f"{one['name']}/" if one["kind"] == "Cohort" else one["name"]
            rows.append((name, *cells))
    return rows


def _list_use_rows(changes: Json) -> list[tuple[str, ...]]:
    """List the cells of quotas that differ, or whose use differs; heads are ``_USE_HEADS``."""
    rows: list[tuple[str, ...]] = []
    for one in changes["queues"]:
        olds, news = (
            {(use["flavor"], use["resource"]): use for use in (one[when] or {"uses": ()})["uses"]}
            for when in ("before", "after")
        )
        for flavor, resource in dict.fromkeys((*news, *olds)):
            both = {"before": olds.get((flavor, resource)), "after": news.get((flavor, resource))}
            keys = "nominal", "used", "borrowed"
            cells = [write_both(both, lambda use, key=key: str(use[key])) for key in keys]  # type: ignore[misc]
            if any(ARROW in cell for cell in cells):
                rows.append((one["name"], flavor, resource, *cells))
    return rows


def _list_workload_rows(changes: Json) -> list[tuple[str, ...]]:
    """List the cells of workloads that gain or lose quota; heads are ``_WORKLOAD_HEADS``."""
    names = {
        f"{one['namespace']}/{one['name']}": name_workload(one) for one in changes["workloads"]
    }
    rows: list[tuple[str, ...]] = []
    for one in sorted(changes["workloads"], key=lambda one: list(_CHANGES).index(one["change"])):
        held = one["after"] or one["before"]
        if one["change"] == "loses":
            by = f"by {names.get(one['by'], one['by'])} ({one['reason']})"
            why = by if one["by"] else one["reason"]
        else:
            why = _write_uses(held["uses"])
        rows.append((name_workload(one), held["queue"] or "-", one["change"], why))
    return rows


def write_both(one: Json, write: Callable[[Json], str]) -> str:
    """Write a figure before and after; once if it is the same, and a dash where there is none."""
    before, after = ("-" if one[when] is None else write(one[when]) for when in ("before", "after"))
    return before if before == after else f"{before}{ARROW}{after}"


def _write_share(row: Json) -> str:
    return "inf" if row["share"] is None else f"{row['share']:g}"


def _write_uses(uses: Sequence[Json]) -> str:
    return ", ".join(f"{use['amount']} {use['resource']} ({use['flavor']})" for use in uses)


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
