"""Prints the answers of all nodes for one pod: nodes that fit by their totals, other nodes by their reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scheduler.printing import PROSE, count_nouns, wrap_prose

Json = Mapping[str, Any]
_Term = tuple[str, ...]
_NAMED = 3
_HEADS = ("raw", "points", "weight", "weighted")
_ABOVE = ("above all totals",)


def print_nodes(pod: Json) -> Iterator[str]:
    """Print the nodes: nodes with the same answer share a line, with their number and first names; JSON has all names."""
    if pod["cards"]:
        yield from _print_cards(pod["cards"])
    nodes: Json = pod["nodes"]
    fitting = {name: node for name, node in nodes.items() if node["feasible"]}
    verb = "fits" if len(fitting) == 1 else "fit"
    yield f"  {len(fitting)} of {count_nouns(len(nodes), 'node')} {verb}"
    if fitting:
        yield from print_scored(fitting, pod)
    refusing: dict[tuple[str, str], list[str]] = {}
    for name, node in nodes.items():
        if not node["feasible"]:
            refusing.setdefault((", ".join(node["reasons"]), node["status"]), []).append(name)
    for (why, status), names in sorted(refusing.items(), key=lambda one: (-len(one[1]), one[0])):
        hopeless = " (no eviction would help)" if status == "unresolvable" else ""
        said = f"{count_nouns(len(names), 'node')} refused: {why}{hopeless}"
        yield from wrap_prose(said, PROSE, "  ").splitlines()
        yield from wrap_prose(_name_nodes(names), PROSE, "    ").splitlines()


def _print_cards(cards: Json) -> Iterator[str]:
    """Print how the cards were ordered, and what was left on each; cards with as much left share a line."""
    yield f"  cards by {cards['by']}"
    yield "  free on each card before the pod (memory, cores, sharers)"
    alike: dict[str, list[str]] = {}
    for card in cards["before"]:
        alike.setdefault(_format_left(card["free"], card["total"]), []).append(str(card["index"]))
    yield from (f"    {', '.join(indices)}: {left}" for left, indices in alike.items())


def _format_left(free: Json, total: Json) -> str:
    return ", ".join(
        f"{free[figure]} of {total[figure]}{unit}"
        for figure, unit in (("memoryMiB", " MiB"), ("cores", " %"), ("sharers", ""))
    )


def print_scored(fitting: Json, pod: Json) -> Iterator[str]:
    """Print totals in the order of the choice, and below each the scores by which nodes differ; other scores once."""
    chosen, weights = pod["node"], pod["weights"]
    terms = {name: _list_terms(node, weights) for name, node in fitting.items()}
    every = {one for of_node in terms.values() for one in of_node.items()}
    columns = _Columns([("", *_HEADS), *((score, *term) for score, term in every)])
    yield columns.make_line("", _HEADS)
    first = next(iter(terms.values()))
    same = {
        score: term
        for score, term in first.items()
        if all(of_node.get(score) == term for of_node in terms.values())
    }
    if same:
        yield "  the same on each of these nodes"
        yield from (columns.make_line(score, term) for score, term in same.items())
    groups: dict[tuple[float, tuple[tuple[str, _Term], ...]], list[str]] = {}
    for name, node in fitting.items():
        differing = tuple(one for one in terms[name].items() if one[0] not in same)
        groups.setdefault((node["total"], differing), []).append(name)
    for (total, differing), names in sorted(
        groups.items(), key=lambda one: (chosen not in one[1], *_make_sort_key(*one[0]), one[1])
    ):
        mine = [f"{chosen} (chosen)"] if chosen in names else []
        said = f"total {total:g}: {_name_nodes([*mine, *(n for n in names if n != chosen)])}"
        yield from wrap_prose(said, PROSE, "  ", "    ").splitlines()
        yield from (columns.make_line(score, term) for score, term in differing)


def _make_sort_key(total: float, differing: tuple[tuple[str, _Term], ...]) -> tuple[bool, float]:
    """Sort highest totals first, and before these the nodes with a term that goes before all totals."""
    return all(term != _ABOVE for _, term in differing), -total


def _list_terms(node: Json, weights: Json) -> dict[str, _Term]:
    """List the columns of each score; a term that goes before all totals says so."""
    return {
        score: (
            _format_figure(node["raw"][score]),
            _format_figure(points),
            str(weights[score]),
            _format_figure(node["weighted"][score]),
        )
        if weights[score]
        else _ABOVE
        for score, points in node["scores"].items()
    }


class _Columns:
    """A table: names to the left, figures to the right; each column is as wide as its widest cell."""

    def __init__(self, rows: Sequence[tuple[str, ...]]) -> None:
        self._name = max(len(row[0]) for row in rows)
        full = [row[1:] for row in rows if len(row) == len(_HEADS) + 1]
        self._widths = [max(map(len, column)) for column in zip(*full, strict=True)]

    def make_line(self, name: str, figures: Sequence[str]) -> str:
        if len(figures) < len(_HEADS):
            return f"    {name.ljust(self._name)}  {', '.join(figures)}"
        cells = (figure.rjust(width) for figure, width in zip(figures, self._widths, strict=True))
        return f"    {name.ljust(self._name)}  {'  '.join(cells)}"


def _format_figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


def _name_nodes(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
