"""Finds where one more pod of each frequent kind would go, what it would lose there, and why it goes there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from scheduler.api import wire
from scheduler.engine.engine import Engine
from scheduler.engine.questions.auditing import BestNodesFor
from scheduler.engine.questions.pods import KnownPods
from scheduler.state.pods import PodRecord
from scheduler.telling.advice import weighed, wishes

Json = dict[str, Any]
# How many kinds of pods are shown, the most frequent first.
_KINDS = 5


def find_upcoming(engine: Engine, pods: Sequence[wire.Pod], own: Collection[str]) -> list[Json]:
    """Make the part ``next`` of the audit; pods with the uids ``own`` belong to their node, and no more of them come."""
    alike: dict[int, list[PodRecord]] = defaultdict(list)
    for uid, record in engine.ask(KnownPods()).items():
        if uid not in own:
            alike[id(record.template)].append(record)
    words = {pod.metadata.uid: pod for pod in pods}
    kinds = sorted(alike.values(), key=lambda records: (-len(records), records[0].key))
    return [
        _describe_kind(engine, words[records[0].uid], len(records)) for records in kinds[:_KINDS]
    ]


def _describe_kind(engine: Engine, example: wire.Pod, n: int) -> Json:
    another, config = wishes.copy_pod(example), engine.config
    another.metadata.uid = f"another {example.metadata.uid}"
    another.spec.node_name = None
    if another.spec.scheduler_name not in config.scheduler_names:
        another.spec.scheduler_name = config.scheduler_name
    found = engine.ask(BestNodesFor(another, 2))
    nodes = [
        {
            "node": one.node,
            "preference": one.preference,
            "scores": one.scores["scores"],
            "weighted": one.scores["weighted"],
            "loss": weighed.make_values(one.loss) if one.loss else None,
        }
        for one in found.nodes
    ]
    return {
        "like": f"{example.metadata.namespace}/{example.metadata.name}",
        "pods": n,
        "asks": weighed.write_amounts(found.requests),
        "fitting": found.n_fitting,
        "nodes": nodes,
        "why": weighed.write_comparison(nodes, found.weights, found.objective)
        if len(nodes) > 1
        else "",
    }
