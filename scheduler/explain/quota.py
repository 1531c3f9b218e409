"""Whether the quota of a ClusterQueue holds a pod, and which workloads could give some back."""

from __future__ import annotations

from typing import Any

from scheduler.api import wire
from scheduler.engine.engine import Engine
from scheduler.engine.questions.queues import (
    KnownWorkloads,
    PodsOfWorkload,
    QuotaWait,
    WhyNoQuota,
    WorkloadStanding,
)
from scheduler.printing import count_nouns

Json = dict[str, Any]
_NAMES = 3


def add_hold(engine: Engine, pod: wire.Pod, explained: Json) -> None:
    """Say in the explanation of a pod without a node that its workload waits for quota, if it does."""
    if explained["node"] is not None:
        return
    one = _find_workload(engine, pod)
    wait = engine.ask(WhyNoQuota(one.key)) if one is not None else None
    if one is None or wait is None:
        return
    queue = explained["queue"] or {"place": None, "of": 0, "ahead": [], "gates": []}
    explained["queue"] = {**queue, "heldBy": _describe(one, wait)}
    explained["state"] = "queued"


def _find_workload(engine: Engine, pod: wire.Pod) -> WorkloadStanding | None:
    """Find the workload of a pod; None if it has none."""
    prefix = f"{pod.metadata.namespace}/"
    for one in engine.ask(KnownWorkloads()):
        if one.key.startswith(prefix) and pod.metadata.uid in engine.ask(PodsOfWorkload(one.key)):
            return one
    return None


def _describe(one: WorkloadStanding, wait: QuotaWait) -> str:
    where = f"ClusterQueue {one.queue}" if one.queue else f"LocalQueue {one.local}"
    text = f"Held by quota of {where}: workload {one.key} "
    if wait.verdict == "fits":
        return f"{text}has its turn next, and there is quota for it."
    text += f"waits ({wait.reason}): {wait.message}."
    if wait.victims:
        names = ", ".join(f"{giver.key} ({giver.why})" for giver in wait.victims[:_NAMES])
        more = " and others" if len(wait.victims) > _NAMES else ""
        could = "give quota back" if wait.verdict == "goes" else "could give quota back"
        text += f" {count_nouns(len(wait.victims), 'workload')} {could}: {names}{more}."
    return f"{text} `evenkeel queue why {one.key}` says more."
