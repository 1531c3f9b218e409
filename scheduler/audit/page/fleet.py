"""Every node as a cell, whatever the size of the fleet: sorted into kinds, the worst first, coloured by kind.

Cells are plain boxes of a fixed size that wrap, so 5,000 of them are as good on a phone as on paper. What a
kind means and how many nodes are of it is written above its cells; what a cell is, is its title, and
in the list of names below.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

from scheduler.audit.page import parts
from scheduler.audit.words import counted, short

Json = dict[str, Any]
_FEW, _SOME = 100, 1000
# Less than this share of a node is no part of it worth a colour.
_LEAST = 0.05


class _Kind(NamedTuple):
    name: str
    least: float
    meaning: str


_STRANDED = (
    _Kind("s3", 0.5, "half or more stranded"),
    _Kind("s2", 0.25, "a quarter to a half stranded"),
    _Kind("s1", _LEAST, "less than a quarter stranded"),
)
_IDLE = _Kind("idle", _LEAST, "usable and unused in part, next to nothing stranded")
_FULL = _Kind("full", 0.0, "in use, or what is left is no loss")
_CLOSED = _Kind("closed", 0.0, "closed: cordoned or not healthy")
_KINDS = (*_STRANDED, _IDLE, _FULL, _CLOSED)


class _Cell(NamedTuple):
    kind: _Kind
    stranded: float
    usable: float
    name: str
    title: str


def draw(rows: Sequence[Json]) -> str:
    """Nodes with GPUs by their GPUs, the others by their cores or memory, whichever is stranded more."""
    size = "few" if len(rows) <= _FEW else "some" if len(rows) <= _SOME else "many"
    pools = (
        ("Nodes with GPUs, by their GPUs", ("gpuCompute",), "GPUs"),
        ("Nodes without GPUs, by their cores and memory", ("cpu", "memory"), "cores"),
    )
    has_gpus = [row["hasGpus"] for row in rows]
    body = []
    for wanted, (title, keys, unit) in zip((True, False), pools, strict=True):
        cells = [
            _cell(row, keys, unit) for row, has in zip(rows, has_gpus, strict=True) if has == wanted
        ]
        if cells:
            body.append(f"<h3>{title}</h3>\n{_pool(cells)}")
    return f'<div class="{size}">\n' + "\n".join(body) + "\n</div>"


def _cell(row: Json, keys: Sequence[str], unit: str) -> _Cell:
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
        f"{row['name']}: {short(row['stranded'][key])} of {short(row['capacity'][key])} {unit} stranded, "
        f"{short(row['usable'][key])} usable"
    )
    return _Cell(kind, stranded, usable, row["name"], title)


def _pool(cells: list[_Cell]) -> str:
    lines, named = [], []
    for kind in _KINDS:
        of_kind = sorted(
            (cell for cell in cells if cell.kind is kind),
            key=lambda cell: (-cell.stranded, -cell.usable, cell.name),
        )
        if not of_kind:
            continue
        told = f"{counted(len(of_kind), 'node')}: {kind.meaning}"
        boxes = "".join(f'<i class="{kind.name}" title="{escape(c.title)}"></i>' for c in of_kind)
        lines.append(
            f'<p class="kind">{escape(told)}</p>\n'
            f'<div class="cells" role="img" aria-label="{escape(told)}">{boxes}</div>'
        )
        named.append((told, ", ".join(cell.name for cell in of_kind)))
    names = parts.table(("nodes", "names, the worst first"), named, words=1)
    return "\n".join([*lines, f"<details><summary>By name</summary>\n{names}</details>"])
