"""Where one more pod of each frequent kind would go, what it would lose there, and why it goes there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from scheduler.api import wire
from scheduler.config import Config
from scheduler.cycle.schedule import Cycle
from scheduler.shapes.policies import PolicyBook
from scheduler.state.cluster import Cluster
from scheduler.telling.advice import best, weighed, wishes
from scheduler.telling.advice.asking import Asking

Json = dict[str, Any]
# Kinds of pods that are told of, the most frequent first.
_KINDS = 5


def find_upcoming(
    cluster: Cluster, pods: Sequence[wire.Pod], own: Collection[str], config: Config
) -> list[Json]:
    """The part ``next`` of the audit; pods whose uids are ``own`` belong to their node, and no more of them come.

    The cluster stays as it is.
    """
    asking = Asking(cluster, Cycle(cluster, PolicyBook(config)))
    cluster.nodes.refresh_ranks()
    asking.answers.learn()
    alike: dict[int, list[str]] = defaultdict(list)
    for uid, record in cluster.pods.items():
        if uid not in own:
            alike[id(record.template)].append(uid)
    words = {pod.metadata.uid: pod for pod in pods}
    kinds = sorted(alike.values(), key=lambda uids: (-len(uids), cluster.pods[uids[0]].key))
    return [_one(asking, words[uids[0]], len(uids), config) for uids in kinds[:_KINDS]]


def _one(asking: Asking, example: wire.Pod, n: int, config: Config) -> Json:
    another = wishes.copy(example)
    another.metadata.uid = f"another {example.metadata.uid}"
    another.spec.node_name = None
    if another.spec.scheduler_name not in config.scheduler_names:
        another.spec.scheduler_name = config.scheduler_name
    pod = asking.cluster.as_if(another)
    found = best.find_best(asking, pod, 2)
    nodes = [
        {
            "node": asking.cluster.nodes.name_of(one.row),
            "preference": one.preference,
            "scores": one.scores["scores"],
            "weighted": one.scores["weighted"],
            "loss": weighed.values(one.loss) if one.loss else None,
        }
        for one in found.nodes
    ]
    return {
        "like": f"{example.metadata.namespace}/{example.metadata.name}",
        "pods": n,
        "asks": weighed.amounts_of(dict(pod.template.requests.amounts)),
        "fitting": found.n_fitting,
        "nodes": nodes,
        "why": weighed.why(nodes, found.weights, found.objective) if len(nodes) > 1 else "",
    }
