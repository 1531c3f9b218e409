"""The engine's answer on the same objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduler import config
from scheduler.simulate import schedule
from tests.differential.answers import Answer
from tests.differential.worlds import SCHEDULER

Json = dict[str, Any]
# kube-scheduler's own sum.
CONFIG = config.parse(
    {"schedulerName": SCHEDULER, "placement": {"scoring": {"mode": "kube-scheduler"}}}
)


def answer(objects: Sequence[Json], pod: Json) -> Answer:
    """Where the pod goes among the objects, and what every node says of it."""
    result = schedule([*objects, pod], config=CONFIG, with_nodes=True)
    (row,) = [one for one in result["pods"] if one["name"] == pod["metadata"]["name"]]
    nodes = {name: node for name, node in row.get("nodes", {}).items() if node["feasible"]}
    scores = {
        name: {plugin: points for plugin, points in node["weighted"].items() if points}
        for name, node in nodes.items()
    }
    return Answer(
        row["node"],
        frozenset(nodes),
        scores,
        row["unschedulable"] or "",
        row.get("nominated"),
        frozenset(f"{one['namespace']}/{one['name']}" for one in row["victims"]),
    )
