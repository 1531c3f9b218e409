"""Writes how large a group may be now, and what would have to move for a larger one: cells and sentences."""

from __future__ import annotations

from typing import Any

from scheduler import printing
from scheduler.audit.words import count_nouns, write_short

Json = dict[str, Any]
HEADINGS = ("within one", "there are", "fits now", "next size", "GPUs to move")
_WHOLE = "cluster"
# So many of what would have to move are named.
_NAMES_MAX = 5


def write_heading(kind: Json) -> str:
    """Write what the groups are of which the levels of a kind of node tell."""
    per = "its one GPU" if kind["gpusPerNode"] == 1 else f"all {kind['gpusPerNode']:,} GPUs"
    return (
        f"The largest group that fits now on {count_nouns(kind['nodes'], 'node')} with {kind['model']}, if each pod requests "
        f"{per} of a node"
    )


def describe_taints(kind: Json) -> list[str]:
    """Describe in a sentence which taints pods of a group must tolerate to use all nodes of a kind."""
    taints = [f"{one['taint']} ({count_nouns(one['nodes'], 'node')})" for one in kind["taints"]]
    if not taints:
        return []
    noun = "this taint" if len(taints) == 1 else "these taints"
    listed = printing.list_some(taints, _NAMES_MAX)
    return [f"For all these nodes the pods of the group must tolerate {noun}: {listed}."]


def list_levels(kind: Json) -> list[tuple[str, ...]]:
    """List a row of cells for each level."""
    return [
        (
            level["label"] or _WHOLE,
            f"{level['domains']:,}",
            _write_size(level["largest"]),
            _write_size(level["next"]) if level["next"] else "no room",
            write_short(level["next"]["moves"]["gpus"]) if level["next"] else "",
        )
        for level in kind["levels"]
    ]


def describe_moves(kind: Json) -> list[str]:
    """Describe in a sentence for each level what would have to move for the next size."""
    lines = []
    for level in kind["levels"]:
        larger = level["next"]
        if larger is None:
            continue
        units = [f"{one['unit']} ({_count_gpus(one['gpus'])})" for one in larger["moves"]["units"]]
        where = (
            f"{level['label']} {'/'.join(larger['domain'])}" if level["label"] else "the cluster"
        )
        verb = "has" if len(units) == 1 else "have"
        lines.append(
            f"For {_count_gpus(larger['gpus'])} in {where}: {printing.list_some(units, _NAMES_MAX)} {verb} to move to "
            "other nodes."
        )
    return lines


def _write_size(size: Json) -> str:
    where = f" in {'/'.join(size['domain'])}" if size["domain"] and size["gpus"] else ""
    return f"{_count_gpus(size['gpus'])}{where}"


def _count_gpus(gpus: float) -> str:
    text = write_short(gpus)
    return f"{text} GPU" if text == "1" else f"{text} GPUs"
