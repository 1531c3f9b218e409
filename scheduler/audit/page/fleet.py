"""Draws every node as a cell, whatever the size of the fleet: sorted into kinds, the worst first, coloured by kind.

Cells are plain boxes of a fixed size that wrap, so 5,000 of them are as good on a phone as on paper. The meaning of a
kind and the number of its nodes are written above its cells. Every kind has a letter and each of its cells a number, so
that ``B12`` is found in the list of names below, which is printed, too; up to a thousand nodes have their number in
the cell. Pods that wait are cells as well, grouped by what they request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, NamedTuple

from scheduler.audit.words import count_nouns, write_short

Json = dict[str, Any]
_FEW, _SOME = 100, 1000
# The most cells of waiting pods of one kind; more would not show more.
_PODS_MAX = 200
# The most requests of waiting pods with a letter of their own; the others are together, so that letters suffice.
_REQUESTS_MAX = 12
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# A smaller share of a node gets no colour.
_LEAST = 0.05


class _NodeKind(NamedTuple):
    name: str
    least: float
    meaning: str


_STRANDED = (
    _NodeKind("s3", 0.5, "half or more stranded"),
    _NodeKind("s2", 0.25, "a quarter to a half stranded"),
    _NodeKind("s1", _LEAST, "less than a quarter stranded"),
)
_IDLE = _NodeKind("idle", _LEAST, "partly unused and usable, next to nothing stranded")
_FULL = _NodeKind("full", 0.0, "in use, or the rest is no loss")
_CLOSED = _NodeKind("closed", 0.0, "out of service: cordoned or unhealthy")
_KINDS = (*_STRANDED, _IDLE, _FULL, _CLOSED)


class _Cell(NamedTuple):
    kind: _NodeKind
    stranded: float
    usable: float
    name: str
    title: str


class _Row(NamedTuple):
    """Cells of one kind: their style, the text about all of them, and the name and title of each."""

    style: str
    told: str
    cells: list[tuple[str, str]]


def draw_fleet(rows: Sequence[Json], waiting: Sequence[Json]) -> str:
    """Draw nodes by their GPUs, or else by cores or memory, whichever is stranded more; and the pods that wait."""
    letters, is_numbered = iter(_LETTERS), len(rows) <= _SOME
    size = "few" if len(rows) <= _FEW else "some" if len(rows) <= _SOME else "many"
    pools = (
        ("Nodes with GPUs, by their GPUs", ("gpuCompute",), "GPUs"),
        ("Nodes without GPUs, by their cores and memory", ("cpu", "memory"), "cores"),
    )
    has_gpus = [row["hasGpus"] for row in rows]
    body = []
    for wanted, (title, keys, unit) in zip((True, False), pools, strict=True):
        cells = [
            _make_cell(row, keys, unit)
            for row, has in zip(rows, has_gpus, strict=True)
            if has == wanted
        ]
        if cells:
            body.append(
                f"<h3>{title}</h3>\n{_draw_pool(_group_by_kind(cells), letters, is_numbered=is_numbered)}"
            )
    if waiting:
        told = f"<h3>Pods that wait, by what each requests</h3>\n{_draw_pool(_group_by_request(waiting), letters, is_numbered=is_numbered)}"
        body.append(told)
    return f'<div class="{size}">\n' + "\n".join(body) + "\n</div>"


def _make_cell(row: Json, keys: Sequence[str], unit: str) -> _Cell:
    capacity = [row["capacity"][key] or 1.0 for key in keys]
    stranded, usable = (
        max(row[figure][key] / whole for key, whole in zip(keys, capacity, strict=True))
        for figure in ("stranded", "usable")
    )
    if row["isClosed"]:
        kind = _CLOSED
    elif stranded >= _LEAST:
        kind = next(one for one in _STRANDED if stranded >= one.least)
    else:
        kind = _IDLE if usable >= _LEAST else _FULL
    key = keys[0]
    title = (
        f"{row['name']}: {write_short(row['stranded'][key])} of {write_short(row['capacity'][key])} {unit} stranded, "
        f"{write_short(row['usable'][key])} usable"
    )
    return _Cell(kind, stranded, usable, row["name"], title)


def _group_by_kind(cells: list[_Cell]) -> Iterator[_Row]:
    for kind in _KINDS:
        of_kind = sorted(
            (cell for cell in cells if cell.kind is kind),
            key=lambda cell: (-cell.stranded, -cell.usable, cell.name),
        )
        if of_kind:
            told = f"{count_nouns(len(of_kind), 'node')}: {kind.meaning}"
            yield _Row(kind.name, told, [(cell.name, cell.title) for cell in of_kind])


def _group_by_request(waiting: Sequence[Json]) -> Iterator[_Row]:
    """Group waiting pods by their requests, those for the most GPUs first; pods are in the order of their creation."""
    groups: dict[tuple[float, ...], list[str]] = {}
    for pod in waiting:
        groups.setdefault((pod["gpus"], pod["cpu"], pod["memory"]), []).append(pod["pod"])
    ordered = sorted(groups.items(), reverse=True)
    if len(ordered) > _REQUESTS_MAX:
        others = [name for _, names in ordered[_REQUESTS_MAX:] for name in names]
        ordered = ordered[:_REQUESTS_MAX]
    else:
        others = []
    for (gpus, cpu, memory), names in ordered:
        cores = f"{write_short(cpu)} {'core' if cpu == 1 else 'cores'}"
        told = f"{count_nouns(len(names), 'pod')}: {count_nouns(int(gpus), 'GPU')}, {cores}, {write_short(memory)} GiB"
        yield _Row("waits", told, [(name, f"{name} waits") for name in names])
    if others:
        told = f"{count_nouns(len(others), 'pod')}: other requests"
        yield _Row("waits", told, [(name, f"{name} waits") for name in others])


def _draw_pool(rows: Iterable[_Row], letters: Iterator[str], *, is_numbered: bool) -> str:
    lines, named = [], []
    for row in rows:
        letter = next(letters)
        most = _PODS_MAX if row.style == "waits" else len(row.cells)
        told = f"{letter}. {row.told}" + (f" ({most} shown)" if len(row.cells) > most else "")
        boxes = "".join(
            f'<i class="{row.style}" title="{letter}{i} {escape(title)}">{i if is_numbered else ""}</i>'
            for i, (_, title) in enumerate(row.cells[:most], 1)
        )
        lines.append(
            f'<p class="kind">{escape(told)}</p>\n'
            f'<div class="cells" role="img" aria-label="{escape(told)}">{boxes}</div>'
        )
        names = "".join(
            f"<li>{letter}{i} {escape(name)}</li>"
            for i, (name, _) in enumerate(row.cells[:most], 1)
        )
        named.append(f"<ul>{names}</ul>")
    listed = "\n".join(named)
    return "\n".join(
        [*lines, f'<details class="names"><summary>By name</summary>\n{listed}</details>']
    )
