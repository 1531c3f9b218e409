"""Why nodes strand something, as sentences and cells that the table and the page of an audit share."""

from __future__ import annotations

from typing import Any

from scheduler import printing
from scheduler.audit.words import TITLES, amount, count_nouns, dollars, short

Json = dict[str, Any]
# Nodes with the same cause that are named.
_NAMES_MAX = 3
# Causes that are named in sentences, those of the most money.
_CAUSES_MAX = 10


def by_cause(audit: Json) -> dict[str, list[Json]]:
    """All nodes that strand something by why they do, which several nodes may share; the most money first."""
    causes: dict[str, list[Json]] = {}
    for one in audit["nodes"]:
        if one["money"] > 0:
            causes.setdefault(_cause(one["why"]), []).append(one)
    return dict(sorted(causes.items(), key=lambda item: -_money(item[1])))


def _money(nodes: list[Json]) -> float:
    return float(sum(one["money"] for one in nodes))


def _name_some(nodes: list[Json]) -> str:
    """The first names and the number of the others."""
    return printing.list_some([one["name"] for one in nodes], _NAMES_MAX)


def sum_stranded(nodes: list[Json]) -> list[str]:
    """Cells of what some nodes strand together, by ``TITLES``, and of the dollars."""
    amounts = [amount(sum(one["stranded"][key] for one in nodes)) for key in TITLES]
    return [*amounts, f"{_money(nodes):,.0f}"]


def of_cause(cause: str, nodes: list[Json]) -> str:
    """A cause as a heading, with how many nodes share it and what they strand."""
    told = f"{count_nouns(len(nodes), 'node')}, {_strand(nodes)}"
    return f"{cause[0].upper()}{cause[1:]} ({told})"


def rest_of_cause(shown: int, others: list[Json]) -> tuple[str, str]:
    """Of nodes that share a cause and are not shown: their names or number, and what is left on the first."""
    if shown:
        return f"and {count_nouns(len(others), 'more node')}", ""
    first = others[0]
    what = left(first["why"])
    return _name_some(others), f"{first['name']}: {what}" if what else ""


def _strand(nodes: list[Json]) -> str:
    """What some nodes strand together; only what is worth a figure."""
    units = {
        "gpuCompute": ("GPU", "GPUs"),
        "cpu": ("core", "cores"),
        "memory": ("GiB of memory",) * 2,
    }
    sums = {key: short(sum(one["stranded"][key] for one in nodes)) for key in units}
    parts = [f"{value} {units[key][value != '1']}" for key, value in sums.items() if value != "0"]
    return ", ".join([*parts, f"{dollars(_money(nodes))} a month"])


def left(why: Json | None) -> str:
    """What is free on one node, and how many typical pods do not fit there."""
    if why is None:
        return ""
    if not why["misfits"]:
        return str(why["left"])
    return f"{why['left']}; {why['misfits']} {why['pods']} do not fit"


def worst(audit: Json) -> list[str]:
    """Why nodes strand something: a sentence for each cause, with the first nodes that share it."""
    lines, causes = [], by_cause(audit)
    for cause, nodes in list(causes.items())[:_CAUSES_MAX]:
        first = nodes[0]
        if len(nodes) == 1:
            lines.append(f"{first['name']} ({_strand(nodes)}): {first['reason'] or cause}.")
            continue
        what = left(first["why"])
        example = f" {first['name']}: {what}." if what else ""
        told = f"{count_nouns(len(nodes), 'node')} ({_name_some(nodes)}; {_strand(nodes)})"
        lines.append(f"{told}: {cause}.{example}")
    others = [one for nodes in list(causes.values())[_CAUSES_MAX:] for one in nodes]
    if others:
        lines.append(
            f"{count_nouns(len(others), 'more node')} for other reasons: {_strand(others)}; -o json has them."
        )
    return lines


def _cause(why: Json | None) -> str:
    if why is None:
        return "less than a hundredth of each unit is stranded"
    return str(why["cause"])
