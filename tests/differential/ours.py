"""The engine's answer on the same objects."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from scheduler import config
from scheduler.config import Config
from scheduler.simulate import schedule
from tests.differential.answers import Answer
from tests.differential.features import profiles

Json = dict[str, Any]


def file(seed: int) -> Json:
    """The configuration file of a run, of which kube-scheduler has the same."""
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return kind | profiles.file(seed)


@cache
def settings(seed: int) -> Config:
    """What it says."""
    return config.parse_config(file(seed))


def answer(objects: Sequence[Json], pod: Json, settings: Config) -> Answer:
    """Where the pod goes among the objects, and what every node says of it."""
    result = schedule([*objects, pod], config=settings, with_nodes=True)
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
