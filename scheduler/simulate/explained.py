"""What every node says of one pod, as text: the nodes that fit by their totals, the others by their reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]
_NAMED = 3


def lines(pod: Json) -> Iterator[str]:
    """Nodes that say the same share a line, with how many they are and the first names; JSON has them all."""
    nodes: Json = pod["nodes"]
    fitting = {name: node for name, node in nodes.items() if node["feasible"]}
    yield f"  {len(fitting)} of {len(nodes)} nodes fit"
    if fitting:
        yield from _scored(fitting, pod["node"])
    refusing: dict[tuple[str, str], list[str]] = {}
    for name, node in nodes.items():
        if not node["feasible"]:
            refusing.setdefault((", ".join(node["reasons"]), node["status"]), []).append(name)
    for (why, status), names in sorted(refusing.items(), key=lambda one: (-len(one[1]), one[0])):
        hopeless = " (no eviction would help)" if status == "unresolvable" else ""
        yield f"  {_count(names)} refused: {why}{hopeless}"
        yield f"    {_named(names)}"


def _scored(fitting: Json, chosen: str | None) -> Iterator[str]:
    """Totals, highest first, and below each the scores by which nodes differ; the others are said once."""
    terms = {name: _terms(node) for name, node in fitting.items()}
    first = next(iter(terms.values()))
    same = {
        score: term
        for score, term in first.items()
        if all(of_node.get(score) == term for of_node in terms.values())
    }
    if same:
        yield "  the same on each of them (points, and weighted in the total):"
        yield from (f"    {score}: {term}" for score, term in same.items())
    groups: dict[tuple[float, tuple[tuple[str, str], ...]], list[str]] = {}
    for name, node in fitting.items():
        differing = tuple(one for one in terms[name].items() if one[0] not in same)
        groups.setdefault((node["total"], differing), []).append(name)
    for (total, differing), names in sorted(
        groups.items(), key=lambda one: (chosen not in one[1], -one[0][0], one[1])
    ):
        if chosen in names:
            names.sort(key=lambda name: name != chosen)
        yield f"  total {total:g}: {_named(names)}{' <- chosen' if chosen in names else ''}"
        yield from (f"    {score}: {term}" for score, term in differing)


def _terms(node: Json) -> dict[str, str]:
    return {
        score: f"{points:.6g}, weighted {node['weighted'][score]:.6g}"
        for score, points in node["scores"].items()
    }


def _count(names: list[str]) -> str:
    return "1 node" if len(names) == 1 else f"{len(names)} nodes"


def _named(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
