"""Says why nodes strand capacity, in sentences and cells that the table and the page of an audit share."""

from __future__ import annotations

from typing import Any

from scheduler import printing
from scheduler.audit.words import TITLES, count_nouns, write_amount, write_dollars, write_short

Json = dict[str, Any]
# How many nodes with the same cause are named.
_NAMES_MAX = 3
# How many causes are named in sentences, those of the most money.
_CAUSES_MAX = 10


def group_by_cause(audit: Json) -> dict[str, list[Json]]:
    """Group the nodes that strand something by the cause, which several nodes may share; the most money first."""
    causes: dict[str, list[Json]] = {}
    for one in audit["nodes"]:
        if one["money"] > 0:
            causes.setdefault(_describe_cause(one["why"]), []).append(one)
    return dict(sorted(causes.items(), key=lambda item: -_sum_money(item[1])))


def _sum_money(nodes: list[Json]) -> float:
    return float(sum(one["money"] for one in nodes))


def _name_some(nodes: list[Json]) -> str:
    """Name the first nodes, and the number of the others."""
    return printing.list_some([one["name"] for one in nodes], _NAMES_MAX)


def sum_stranded(nodes: list[Json]) -> list[str]:
    """Sum up what some nodes strand together, in cells by ``TITLES``, and a cell of dollars."""
    amounts = [write_amount(sum(one["stranded"][key] for one in nodes)) for key in TITLES]
    return [*amounts, f"{_sum_money(nodes):,.0f}"]


def write_heading(cause: str, nodes: list[Json]) -> str:
    """Write a cause as a heading, with the number of its nodes and what they strand."""
    told = f"{count_nouns(len(nodes), 'node')}, {_write_stranded(nodes)}"
    return f"{cause[0].upper()}{cause[1:]} ({told})"


def sum_up_rest(shown: int, others: list[Json]) -> tuple[str, str]:
    """Sum up the nodes of a cause that are not shown: their names or number, and what is left on the first."""
    if shown:
        return f"and {count_nouns(len(others), 'more node')}", ""
    first = others[0]
    what = describe_left(first["why"])
    return _name_some(others), f"{first['name']}: {what}" if what else ""


def _write_stranded(nodes: list[Json]) -> str:
    """Write what some nodes strand together; tiny amounts are left out."""
    units = {
        "gpuCompute": ("GPU", "GPUs"),
        "cpu": ("core", "cores"),
        "memory": ("GiB of memory",) * 2,
    }
    sums = {key: write_short(sum(one["stranded"][key] for one in nodes)) for key in units}
    parts = [f"{value} {units[key][value != '1']}" for key, value in sums.items() if value != "0"]
    return ", ".join([*parts, f"{write_dollars(_sum_money(nodes))} a month"])


def describe_left(why: Json | None) -> str:
    """Describe what is free on a node, and how many typical pods do not fit there."""
    if why is None:
        return ""
    if not why["misfits"]:
        return str(why["left"])
    return f"{why['left']}; {why['misfits']} {why['pods']} do not fit"


def list_worst(audit: Json) -> list[str]:
    """List a sentence for each cause, with the first nodes that share it."""
    lines, causes = [], group_by_cause(audit)
    for cause, nodes in list(causes.items())[:_CAUSES_MAX]:
        first = nodes[0]
        if len(nodes) == 1:
            lines.append(f"{first['name']} ({_write_stranded(nodes)}): {first['reason'] or cause}.")
            continue
        what = describe_left(first["why"])
        example = f" {first['name']}: {what}." if what else ""
        told = f"{count_nouns(len(nodes), 'node')} ({_name_some(nodes)}; {_write_stranded(nodes)})"
        lines.append(f"{told}: {cause}.{example}")
    others = [one for nodes in list(causes.values())[_CAUSES_MAX:] for one in nodes]
    if others:
        lines.append(
            f"{count_nouns(len(others), 'more node')} for other reasons: {_write_stranded(others)}; -o json has them."
        )
    return lines


def _describe_cause(why: Json | None) -> str:
    if why is None:
        return "less than a hundredth of each unit is stranded"
    return str(why["cause"])
